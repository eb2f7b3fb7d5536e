package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/memagent/memagent/config"
)

// lines are the log of a run, as they come.
type lines struct{ *bufio.Scanner }

// until returns the first line with this message.
func (l lines) until(t *testing.T, message string) map[string]any {
	t.Helper()
	for l.Scan() {
		var line map[string]any
		if err := json.Unmarshal(l.Bytes(), &line); err != nil {
			t.Fatalf("%q: %v", l.Text(), err)
		}
		if line["message"] == message {
			return line
		}
	}
	t.Fatalf("the log ended before %q", message)
	return nil
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestARunReadsItsConfigAgainAndABadOneLeavesTheOneBeforeInForce(t *testing.T) {
	const good = "policies: [{name: app, match: [{path: /app.slice}]}]\n"
	file := configFile(t, good)
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	r, w := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		code := run(ctx, env{out: w, err: io.Discard}, []string{"run", "-c", file, "--root", host(t), "--log", "json"})
		w.Close()
		ended <- code
	}()
	log := lines{bufio.NewScanner(r)}
	log.until(t, "decision")
	hangup := func() {
		t.Helper()
		if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
	}

	hangup()
	log.until(t, "the config says what it said before")

	write(t, file, "policies: [{name: app, match: [{path: app.slice}]}]\n")
	refused := log.until(t, "the config is not taken; the one before stays in force")
	if text, _ := refused["error"].(string); !strings.HasPrefix(text, file+":1:39: ") {
		t.Errorf("refused without the place: %v", refused)
	}

	write(t, file, "mode: enforce\n"+good)
	refused = log.until(t, "the config is not taken; the one before stays in force")
	if text, _ := refused["error"].(string); !strings.Contains(text, "systemctl restart memagent") {
		t.Errorf("enforcing: %v", refused)
	}
	hangup()
	log.until(t, "the config is not taken; the one before stays in force") // who asks is answered

	write(t, file, "state_dir: /srv/other\n"+good)
	refused = log.until(t, "the config is not taken; the one before stays in force")
	if text, _ := refused["error"].(string); !strings.Contains(text, "restart it to go from /var/lib/memagent to /srv/other") {
		t.Errorf("another state_dir: %v", refused)
	}

	write(t, file, "host: {damon: allow}\n"+good)
	refused = log.until(t, "the config is not taken; the one before stays in force")
	if text, _ := refused["error"].(string); !strings.Contains(text, "restart it to go from never to allow") {
		t.Errorf("DAMON: %v", refused)
	}

	write(t, filepath.Join(config.DropInDir(file), "bare.yaml"), "policies: [{name: bare, match: [{path: /bare.slice}]}]\n")
	write(t, file, good)
	taken := log.until(t, "the config was read again")
	if taken["policies"] != 2.0 || taken["cgroups_kept"] != 1.0 || taken["cgroups_released"] != 0.0 {
		t.Errorf("taken: %v", taken)
	}
	for log.until(t, "decision")["cgroup"] != "/bare.slice" {
	}

	stop()
	go io.Copy(io.Discard, r)
	if code := <-ended; code != exitOK {
		t.Errorf("exit code %d", code)
	}
}

func TestCheckPrintsTheSchema(t *testing.T) {
	code, out, errs := command(t, "check", "--schema")
	if code != exitOK || errs != "" || !bytes.Equal([]byte(out), config.Schema()) {
		t.Errorf("exit code %d, %q, %d bytes", code, errs, len(out))
	}
}
