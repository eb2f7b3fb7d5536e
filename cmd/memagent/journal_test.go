package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/memagent/memagent/cgroupfs"
	"github.com/memagent/memagent/config"
	"github.com/memagent/memagent/telemetry"
)

func TestWithoutAJournalTheRunGoesOnAndSaysSoOnce(t *testing.T) {
	root := host(t)
	fs, err := cgroupfs.Open(root)
	if err != nil {
		t.Fatal(err)
	}
	defer fs.Close()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	logger := zerolog.New(&said)
	cfg := config.Default()
	cfg.StateDir = file
	if j := openJournal(t.Context(), logger, &telemetry.Notices{Logger: logger}, fs, "/", cfg); j != nil {
		j.store.Close()
		t.Error("there is a journal in a file")
	}
	if lines := strings.Count(said.String(), "\n"); lines != 1 || !strings.Contains(said.String(), "memagent started again, since it could not be put back; all else goes on") || !strings.Contains(said.String(), file) {
		t.Errorf("%d lines: %s", lines, said.String())
	}
}

func TestObservingDoesNotTouchTheStateDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	file := filepath.Join(t.TempDir(), "memagent.yaml")
	text := "state_dir: " + dir + "\npolicies:\n  - name: all\n    match: [{path: /**}]\n    high: {lend: true}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, out, errs := command(t, "run", "-c", file, "--root", host(t), "--for", "1ms"); code != 0 {
		t.Fatalf("exit %d: %s%s", code, out, errs)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the state directory was made: %v", err)
	}
}
