package machine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

// ErrNoKVM is returned where there is no KVM, or none that this user may open.
var ErrNoKVM = errors.New("/dev/kvm cannot be opened")

// kvmWithin is how long a kernel may take to find that it has no root: below a second with real
// virtualisation. QEMU stops the machine and waits where KVM cannot execute what a guest does.
const kvmWithin = 20 * time.Second

// TryKVM boots a kernel with KVM, without a root. It is nil when that kernel ended as it should, in the
// panic that ends QEMU in order. A device that opens proves nothing: where this machine is a guest itself,
// KVM may refuse to set up a CPU or to run a kernel.
func TryKVM(image string) error {
	f, err := os.OpenFile("/dev/kvm", os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNoKVM, err)
	}
	f.Close()
	return tryBoot(image, kvmWithin)
}

func tryBoot(image string, within time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	base := Base{KVM}
	args := append(base.QEMU(), "-m", "256M", "-kernel", image, "-append", strings.Join(base.Kernel(), " "))
	out, err := exec.CommandContext(ctx, Program, args...).CombinedOutput()
	if ctx.Err() != nil {
		err = fmt.Errorf("a kernel did not come up within %s", within)
	}
	if err == nil {
		return nil
	}
	for line := range strings.Lines(string(out)) {
		if line = strings.TrimSpace(line); line != "" && !strings.Contains(line, "warning:") {
			return fmt.Errorf("%w; QEMU says: %s", err, line)
		}
	}
	return err
}
