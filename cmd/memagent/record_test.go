package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// recordDay records a little of a host and returns the file.
func recordDay(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "day")
	// Two looks, and however long they take on a machine that has much else to do.
	code, out, errs := command(t, "record", "-o", file, "--root", host(t), "--for", "1500ms", "-c", configFile(t, "interval: 1s\npolicies: [{name: app, match: [{path: '/**'}]}]\n"))
	if code != exitOK || !regexp.MustCompile(`\d samples in \d+s`).MatchString(out) || !strings.Contains(out, "memagent replay "+file) {
		t.Fatalf("exit code %d\n%s\n%s", code, out, errs)
	}
	return file
}

func TestWhatWasRecordedIsDecidedOnAgain(t *testing.T) {
	file := recordDay(t)
	code, out, errs := command(t, "replay", file)
	if code != exitOK || errs != "" || strings.Count(out, `"message":"decision"`) < 2 || !strings.Contains(out, `"cgroup":"/app.slice"`) {
		t.Errorf("exit code %d\n%s\n%s", code, out, errs)
	}
	if _, again, _ := command(t, "replay", file); again != out {
		t.Error("a second replay differs")
	}
	code, _, errs = command(t, "record", "-o", file, "--root", host(t))
	if code != exitHost || !strings.Contains(errs, "name another file") {
		t.Errorf("over an existing file: exit code %d, %s", code, errs)
	}
}

func TestARunThatIsRecordedLogsWhatItsReplayLogs(t *testing.T) {
	file := filepath.Join(t.TempDir(), "day")
	ctx, stop := context.WithTimeout(context.Background(), 2200*time.Millisecond)
	defer stop()
	var out, errs bytes.Buffer
	cfg := configFile(t, "interval: 1s\npolicies: [{name: app, match: [{path: '/**'}]}]\n")
	if code := run(ctx, env{out: &out, err: &errs}, []string{"run", "--record", file, "-c", cfg, "--root", host(t), "--log", "json"}); code != exitOK {
		t.Fatalf("exit code %d, %s", code, errs.String())
	}
	var want []string
	for line := range strings.Lines(out.String()) {
		if strings.Contains(line, `"message":"decision"`) {
			want = append(want, line)
		}
	}
	code, got, _ := command(t, "replay", file)
	if code != exitOK || len(want) < 2 || got != strings.Join(want, "") {
		t.Errorf("exit code %d; the run logged\n%s\nits replay\n%s", code, strings.Join(want, ""), got)
	}
}

func TestAnotherConfigIsComparedWithTheRecordedOne(t *testing.T) {
	file := recordDay(t)
	code, out, errs := command(t, "replay", file, "-c", configFile(t, "policies: [{name: other, match: [{path: /app.slice}], squeeze: {max_step: 10%}}]\n"), "--enforce")
	if code != exitOK || errs != "" || !strings.Contains(out, "WITH -c: POLICY") || !strings.Contains(out, "/bare.slice") {
		t.Errorf("exit code %d\n%s\n%s", code, out, errs)
	}
	for line := range strings.Lines(out) {
		if strings.HasPrefix(line, "/bare.slice") && !strings.Contains(line, "none") {
			t.Errorf("the other config has no policy for it: %s", line)
		}
	}
	code, out, _ = command(t, "replay", file, "-c", configFile(t, "interval: 1s\npolicies: [{name: app, match: [{path: '/**'}]}]\n"))
	if code != exitOK || !strings.Contains(out, "no decision differs") {
		t.Errorf("the same config: exit code %d\n%s", code, out)
	}
}

func TestWhatCannotBeReplayedIsSaid(t *testing.T) {
	file := recordDay(t)
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, c := range []struct {
		name, file string
		data       []byte
		args       []string
		code       int
		want       string
	}{
		{"a file that was cut short", "cut", data[:len(data)-20], nil, exitHost, "cut: the recording is cut short after"},
		{"something else", "else", []byte("policies:"), nil, exitHost, "not a recording of memagent"},
		{"no file", "", nil, nil, exitHost, "no such file"},
		{"a bad config", "whole", data, []string{"-c", configFile(t, "moed: x\n")}, exitConfig, ":1:1: moed"},
		{"a mode without a config", "whole", data, []string{"--enforce"}, exitConfig, "another config: -c FILE"},
		{"an unknown form", "whole", data, []string{"--log", "xml"}, exitConfig, "want auto, json or text"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(dir, c.file)
			if c.data != nil {
				if err := os.WriteFile(path, c.data, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if c.file == "" {
				path += "/none"
			}
			code, _, errs := command(t, append([]string{"replay", path}, c.args...)...)
			if code != c.code || !strings.Contains(errs, c.want) {
				t.Errorf("exit code %d, %q", code, errs)
			}
		})
	}
	if code, _, errs := command(t, "replay"); code != exitConfig || !strings.Contains(errs, "needs one recording") {
		t.Errorf("no argument: exit code %d, %s", code, errs)
	}
}

func TestRecordNeedsAFileAndASizeItUnderstands(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "-o FILE"},
		{[]string{"-o", filepath.Join(t.TempDir(), "x"), "--max-size", "256M"}, "want a size such as 256MiB"},
	} {
		code, _, errs := command(t, append([]string{"record", "--root", host(t)}, c.args...)...)
		if code != exitConfig || !strings.Contains(errs, c.want) {
			t.Errorf("%v: exit code %d, %s", c.args, code, errs)
		}
	}
	if _, err := os.Stat("x"); !errors.Is(err, os.ErrNotExist) {
		t.Error("a file was left behind")
	}
}
