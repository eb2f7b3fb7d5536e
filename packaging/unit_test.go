package packaging_test

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const unitFile = "systemd/memagent.service"

// mostExposure is what "systemd-analyze security" may find: 0 is a closed
// sandbox, 10 none. Raise it in the change that needs it, with the reason.
const mostExposure = 3.0

// unit returns the values of each setting of the unit, in order.
func unit(t *testing.T) map[string][]string {
	t.Helper()
	settings := map[string][]string{}
	for line := range strings.Lines(read(t, unitFile)) {
		line = strings.TrimSpace(line)
		if name, value, ok := strings.Cut(line, "="); ok && !strings.HasPrefix(line, "#") {
			settings[name] = append(settings[name], value)
		}
	}
	return settings
}

func TestTheUnitGrantsWhatMemagentNeeds(t *testing.T) {
	u := unit(t)
	for name, c := range map[string]struct{ want, why string }{
		"Type":                  {"notify", "memagent says READY=1 after the first tick that decided"},
		"ExecStart":             {"/usr/bin/memagent run -c /etc/memagent/memagent.yaml --log text", "the mode is the config's"},
		"ExecStopPost":          {"/usr/bin/memagent restore -c /etc/memagent/memagent.yaml", "values are put back however it ended"},
		"StateDirectory":        {"memagent", "the journal is in /var/lib/memagent"},
		"RuntimeDirectory":      {"memagent", "sockets are in /run/memagent"},
		"ProtectControlGroups":  {"no", "it writes to /sys/fs/cgroup"},
		"CapabilityBoundingSet": {"CAP_DAC_OVERRIDE", "rootless containers have cgroups of their own user"},
		"ProcSubset":            {"", "it reads /proc/meminfo, vmstat, swaps and pressure"},
		"PrivateNetwork":        {"", "it may be scraped over the loopback interface"},
		"PrivateUsers":          {"", "root in there is not the root that owns the files of cgroups"},
		"Slice":                 {"-.slice", "MemoryMin counts only up to that of the parent"},
		// Config and usage errors do not go away by starting again.
		"RestartPreventExitStatus": {"2", "the exit code of a wrong config"},
		"Environment":              {"GOTRACEBACK=crash", "a panic and an abort by the watchdog are no exit code 2, but a signal"},
		"LimitCORE":                {"0", "such an end leaves no dump"},
	} {
		if got := strings.Join(u[name], "; "); got != c.want {
			t.Errorf("%s=%s, want %q: %s", name, got, c.want, c.why)
		}
	}
	if u["MemoryMin"] == nil || u["OOMScoreAdjust"] == nil || u["WatchdogSec"] == nil {
		t.Errorf("MemoryMin, OOMScoreAdjust or WatchdogSec is not set")
	}
}

// The two ways to evict from one node are files below /sys, which is read-only
// for the unit. A dash lets it start where they are not there.
func TestTheUnitStartsWithoutDebugfs(t *testing.T) {
	paths := strings.Fields(strings.Join(unit(t)["ReadWritePaths"], " "))
	want := []string{"-/sys/kernel/debug/lru_gen", "-/sys/kernel/mm/damon"}
	if !slices.Equal(paths, want) {
		t.Errorf("ReadWritePaths=%q, want %q", paths, want)
	}
	if req := unit(t)["Requires"]; req != nil {
		t.Errorf("the unit requires %q", req)
	}
}

func TestTheUnitIsWhatSystemdUnderstands(t *testing.T) {
	analyze := tool(t, "systemd-analyze", "", "apt-get install systemd")
	// Verified as installed, with a program to start.
	root := t.TempDir()
	for path, content := range map[string]string{
		"usr/bin/memagent": "#!/bin/sh\n", "bin/kill": "#!/bin/sh\n",
		"usr/lib/systemd/system/memagent.service": read(t, unitFile),
	} {
		path = filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		mode := os.FileMode(0o755)
		if strings.HasSuffix(path, ".service") {
			mode = 0o644
		}
		if err := os.WriteFile(path, []byte(content), mode); err != nil {
			t.Fatal(err)
		}
	}
	for line := range strings.Lines(output(t, analyze, "verify", "--root="+root, "--man=no", "--recursive-errors=no", "memagent.service")) {
		if strings.Contains(line, "memagent.service") {
			t.Errorf("systemd-analyze verify: %s", line)
		}
	}
}

func TestTheUnitIsHardened(t *testing.T) {
	analyze := tool(t, "systemd-analyze", "", "apt-get install systemd")
	text := output(t, analyze, "security", "--offline=yes", "--no-pager", unitFile)
	_, rest, ok := strings.Cut(text, "Overall exposure level for memagent.service: ")
	if !ok {
		t.Fatalf("no figure in:\n%s", text)
	}
	got, err := strconv.ParseFloat(strings.Fields(rest)[0], 64)
	if err != nil {
		t.Fatal(err)
	}
	if got > mostExposure {
		t.Errorf("exposure %.1f, want at most %.1f:\n%s", got, mostExposure, text)
	}
	docs := read(t, "../docs/operations.md")
	if want := "exposure of " + strconv.FormatFloat(got, 'f', 1, 64); !strings.Contains(docs, want) {
		t.Errorf("docs/operations.md does not have the %s", want)
	}
}
