package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAReportIsDrawnOfARecordingAlsoOfOneThatWasCutShort(t *testing.T) {
	day := recordDay(t)
	out := filepath.Join(t.TempDir(), "report.html")
	code, text, errs := command(t, "report", day, "-o", out)
	html, err := os.ReadFile(out)
	if code != exitOK || errs != "" || err != nil || !strings.Contains(text, "2 cgroups") || !strings.Contains(string(html), "/app.slice") {
		t.Errorf("exit code %d, %s%s, %v", code, text, errs, err)
	}
	code, _, errs = command(t, "report", day, "-o", out, "--cgroups", "1")
	html, _ = os.ReadFile(out)
	if code != exitOK || !strings.Contains(errs, "--cgroups 2 draws all") || strings.Contains(string(html), "/bare.slice") {
		t.Errorf("one cgroup of two: exit code %d, %s", code, errs)
	}
	data, err := os.ReadFile(day)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(day, data[:len(data)-20], 0o600); err != nil {
		t.Fatal(err)
	}
	code, _, errs = command(t, "report", day, "-o", out)
	html, _ = os.ReadFile(out)
	if code != exitOK || !strings.Contains(errs, "cut short") || !strings.Contains(string(html), "cut short") {
		t.Errorf("cut short: exit code %d, %s", code, errs)
	}
}

func TestAReportThatCannotBeDrawnSaysWhyAndLeavesWhatIsThere(t *testing.T) {
	dir := t.TempDir()
	old := filepath.Join(dir, "report.html")
	if err := os.WriteFile(old, []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{old, "-o", old}, exitHost, "not a recording of memagent"},
		{[]string{filepath.Join(dir, "none"), "-o", old}, exitHost, "no such file"},
		{[]string{old}, exitConfig, "-o report.html"},
		{[]string{old, "-o", old, "--cgroups", "0"}, exitConfig, "want 1 or more"},
		{nil, exitConfig, "needs one recording"},
	} {
		code, _, errs := command(t, append([]string{"report"}, c.args...)...)
		if code != c.code || !strings.Contains(errs, c.want) {
			t.Errorf("%v: exit code %d, %s", c.args, code, errs)
		}
	}
	if data, _ := os.ReadFile(old); string(data) != "old" {
		t.Errorf("it holds %q", data)
	}
}
