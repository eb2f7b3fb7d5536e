package guest

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"time"
)

// Command runs a program of a guest that is a whole system and returns what it wrote, standard error
// included. A program that ends with another code than 0 is an error, which has its last lines.
func Command(ctx context.Context, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = "/"
	// Whoever inherits its output keeps it open, such as the monitor of a container.
	cmd.WaitDelay = time.Second
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		return out.String(), fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, strings.Join(lines[max(0, len(lines)-8):], "; "))
	}
	return out.String(), nil
}
