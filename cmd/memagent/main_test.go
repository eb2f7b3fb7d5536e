package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// host writes a recorded tree with two cgroups and returns where its "/" is.
func host(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	files := map[string]string{
		"proc/meminfo":                             "MemTotal: 2097152 kB\nMemFree: 1048576 kB\nMemAvailable: 1572864 kB\nSwapTotal: 1048576 kB\nSwapFree: 1048576 kB\n",
		"proc/swaps":                               "Filename\tType\tSize\tUsed\tPriority\n/dev/zram0 partition 1048576 0 100\n",
		"sys/fs/cgroup/cgroup.controllers":         "cpuset memory\n",
		"sys/fs/cgroup/cgroup.subtree_control":     "memory\n",
		"sys/fs/cgroup/cgroup.procs":               "",
		"sys/fs/cgroup/app.slice/cgroup.procs":     "1\n",
		"sys/fs/cgroup/app.slice/cgroup.events":    "populated 1\nfrozen 0\n",
		"sys/fs/cgroup/app.slice/memory.reclaim":   "untouched",
		"sys/fs/cgroup/app.slice/memory.current":   "104857600\n",
		"sys/fs/cgroup/app.slice/memory.stat":      "anon 52428800\nfile 52428800\nkernel 0\ninactive_anon 52428800\nactive_anon 0\ninactive_file 52428800\nactive_file 0\nworkingset_refault_anon 0\nworkingset_refault_file 0\npgscan 0\npgsteal 0\n",
		"sys/fs/cgroup/app.slice/memory.pressure":  "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n",
		"sys/fs/cgroup/app.slice/memory.swap.max":  "max\n",
		"sys/fs/cgroup/app.slice/memory.high":      "max\n",
		"sys/fs/cgroup/app.slice/memory.max":       "max\n",
		"sys/fs/cgroup/bare.slice/cgroup.procs":    "",
		"sys/fs/cgroup/bare.slice/cgroup.events":   "populated 0\nfrozen 0\n",
		"sys/fs/cgroup/bare.slice/memory.current":  "0\n",
		"sys/fs/cgroup/app.slice/memory.numa_stat": "anon N0=52428800\nfile N0=52428800\n",
	}
	for name, content := range files {
		name = filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func configFile(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "memagent.yaml")
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return name
}

func command(t *testing.T, args ...string) (code int, out, errs string) {
	t.Helper()
	var o, e bytes.Buffer
	code = run(context.Background(), env{out: &o, err: &e}, args)
	return code, o.String(), e.String()
}

const enforcing = `mode: enforce
policies:
  - name: app
    match: [{path: /app.slice}]
    swappiness: 0
`

func TestAWrongCommandLineSaysWhatIsWrongAndExits2(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"an unknown command":         {[]string{"chekc"}, `unknown command "chekc", did you mean "check"?`},
		"an unknown flag":            {[]string{"run", "--enforec"}, "unknown flag: --enforec"},
		"words after the command":    {[]string{"run", "now"}, `memagent run takes no argument "now"`},
		"an unknown form of the log": {[]string{"run", "--log", "xml"}, "--log xml: want auto, json or text"},
		"two modes at once":          {[]string{"run", "--observe", "--enforce"}, "--observe and --enforce contradict each other"},
		"a time before the start":    {[]string{"run", "--for", "-5s"}, "--for -5s: want a time such as 1m30s"},
		"the same of a recording":    {[]string{"record", "-o", "x", "--for", "-5s"}, "--for -5s: want a time such as 1m30s"},
		"help for what there is not": {[]string{"help", "chekc"}, `unknown command "chekc", did you mean "check"?`},
		"help with a word too many":  {[]string{"help", "run", "now"}, `memagent run takes no argument "now"`},
		"a shell that is none":       {[]string{"completion", "foo"}, `unknown command "foo"`},
		"a word after the shell":     {[]string{"completion", "bash", "foo"}, `memagent completion bash takes no argument "foo"`},
		"an unknown flag of a shell": {[]string{"completion", "bash", "--foo"}, "unknown flag: --foo"},
		"a time that is none":        {[]string{"run", "--for", "soon"}, "soon"},
	} {
		code, out, errs := command(t, c.args...)
		if code != exitConfig || !strings.Contains(errs, c.want) || out != "" {
			t.Errorf("%s: exit %d, stdout %q, stderr %q, want %q", name, code, out, errs, c.want)
		}
	}
}

func TestHelpAndCompletionsAreThere(t *testing.T) {
	_, overview, _ := command(t)
	for want, args := range map[string][]string{
		"--max-size":           {"help", "run"},
		"COMMAND --help":       {"help", "help"},
		"powershell":           {"completion"},
		"To load completions":  {"help", "completion", "bash"},
		"__start_memagent":     {"completion", "bash"},
		"explain\tSay why":     {"__complete", "help", "exp"},
		overview:               {"help"},
		"\nUsage:\n  memagent": {"--help"},
	} {
		code, out, errs := command(t, args...)
		if code != exitOK || !strings.Contains(out, want) || args[0] != "__complete" && errs != "" {
			t.Errorf("%q: exit %d, no %q in %q, stderr %q", args, code, want, out, errs)
		}
	}
}

func TestABadConfigShowsEveryErrorAndStartsNothing(t *testing.T) {
	file := configFile(t, "mode: enforce\ninterval: 1\npolicies:\n  - name: app\n    match: [{path: /app.slice}]\n    swappiness: 201\n    sqeeze: off\n")
	for _, cmd := range []string{"run", "check"} {
		code, out, errs := command(t, cmd, "-c", file, "--root", host(t))
		if code != exitConfig || out != "" {
			t.Errorf("%s: exit %d, stdout %q", cmd, code, out)
		}
		for _, place := range []string{":2:11: interval:", ":6:17: policies[0].swappiness:", ":7:5: policies[0]"} {
			if !strings.Contains(errs, file+place) {
				t.Errorf("%s: no %s in\n%s", cmd, place, errs)
			}
		}
	}
}

func TestAConfigCanBeCheckedWhereItIsNotCarriedOut(t *testing.T) {
	good, bad := configFile(t, enforcing), configFile(t, "moed: enforce\n")
	code, out, errs := command(t, "check", "--config-only", "-c", good, "--root", t.TempDir())
	if code != exitOK || out != good+" is right: mode enforce, policies for cgroups: 1\n" || errs != "" {
		t.Errorf("exit %d, %q, %q", code, out, errs)
	}
	if code, _, errs = command(t, "check", "--config-only", "-c", bad); code != exitConfig || !strings.Contains(errs, "did you mean mode?") {
		t.Errorf("a bad one: exit %d, %q", code, errs)
	}
	if code, _, errs = command(t, "check", "--config-only"); code != exitConfig || !strings.Contains(errs, "See memagent check --help") {
		t.Errorf("none: exit %d, %q", code, errs)
	}
}

func TestAMissingConfigIsNotABadOne(t *testing.T) {
	code, _, errs := command(t, "check", "-c", "/nonexistent.yaml")
	if code != exitConfig || !strings.Contains(errs, "/nonexistent.yaml") {
		t.Errorf("exit %d, %s", code, errs)
	}
}

func TestAHostWithoutTheControllerIsOneSentenceAndExit1(t *testing.T) {
	root := t.TempDir()
	for _, cmd := range []string{"run", "check"} {
		code, out, errs := command(t, cmd, "--root", root)
		if code != exitHost || out != "" || strings.Count(errs, "\n") != 1 {
			t.Errorf("%s: exit %d, stdout %q, stderr %q", cmd, code, out, errs)
		}
	}
}

func TestPlainFilesAreNeverEnforced(t *testing.T) {
	root := host(t)
	file := configFile(t, enforcing)
	code, out, errs := command(t, "run", "-c", file, "--root", root, "--for", "1ms")
	if code != exitHost || !strings.Contains(errs, "cannot enforce on this host") || !strings.Contains(errs, "plain files") {
		t.Errorf("exit %d, stdout %q, stderr %q", code, out, errs)
	}
	got, err := os.ReadFile(filepath.Join(root, "sys/fs/cgroup/app.slice/memory.reclaim"))
	if err != nil || string(got) != "untouched" {
		t.Errorf("memory.reclaim holds %q, %v", got, err)
	}
}

func TestObservingARecordedTreeGivesOneLineForEachCgroup(t *testing.T) {
	root := host(t)
	code, out, errs := command(t, "run", "--root", root, "--for", "1ms", "--log", "json")
	if code != exitOK || errs != "" {
		t.Fatalf("exit %d, stderr %q", code, errs)
	}
	lines := map[string]int{}
	var summary map[string]any
	for line := range strings.Lines(out) {
		var m map[string]any
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		switch m["message"] {
		case "decision":
			lines[m["cgroup"].(string)]++
		case "summary":
			summary = m
		}
	}
	if lines["/app.slice"] == 0 || lines["/bare.slice"] == 0 {
		t.Errorf("decisions: %v", lines)
	}
	if summary["writes"] != 0.0 || summary["actions"] != 0.0 || summary["decisions"] == 0.0 {
		t.Errorf("summary: %v", summary)
	}
}

func TestTheTextFormIsForPeople(t *testing.T) {
	code, out, _ := command(t, "run", "--root", host(t), "--for", "1ms", "--log", "text")
	for _, want := range []string{"/app.slice", "CGROUP", "0 writes to the kernel"} {
		if code != exitOK || !strings.Contains(out, want) {
			t.Errorf("exit %d, no %q in\n%s", code, want, out)
		}
	}
}

func TestCheckPrintsTheCapabilitiesAndWhatIsMissing(t *testing.T) {
	code, out, errs := command(t, "check", "--root", host(t))
	if code != exitOK || errs != "" {
		t.Fatalf("exit %d, stderr %q", code, errs)
	}
	for _, want := range []string{"CAPABILITY", "memory-controller", "reclaim-swappiness", "not asked", "what is missing, and what that costs:"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

func TestCheckSaysWhatAPolicyCannotHaveHere(t *testing.T) {
	code, out, errs := command(t, "check", "--root", host(t), "-c", configFile(t, enforcing))
	if code != exitHost || !strings.Contains(errs, "the config enforces, and this host cannot") {
		t.Errorf("exit %d, stderr %q", code, errs)
	}
	if !strings.Contains(out, "matches 1 cgroups now") {
		t.Errorf("no plan in\n%s", out)
	}
}

func TestCheckAsJSON(t *testing.T) {
	_, out, _ := command(t, "check", "--root", host(t), "--json")
	var r report
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	if len(r.Capabilities) < 15 || len(r.Policies) != 1 || r.Host == "" {
		t.Errorf("got %d capabilities, %d policies, host %q", len(r.Capabilities), len(r.Policies), r.Host)
	}
}

func TestBriefIsOneSentence(t *testing.T) {
	code, out, _ := command(t, "check", "--brief", "--root", host(t))
	if code != exitOK || strings.Count(out, "\n") != 1 {
		t.Errorf("exit %d, %q", code, out)
	}
}

func TestARootThatIsNotThereIsNotTakenForACgroup(t *testing.T) {
	none := filepath.Join(t.TempDir(), "none")
	for _, cmd := range []string{"run", "check"} {
		code, out, errs := command(t, cmd, "--root", none)
		if want := "memagent: the host's root, which --root names: open " + none + ": no such file or directory\n"; code != exitHost || out != "" || errs != want {
			t.Errorf("%s: exit %d, %q, %q, want %q", cmd, code, out, errs, want)
		}
	}
}

func TestACheckOfAConfigThatObservesSaysHowToCarryItOut(t *testing.T) {
	for text, want := range map[string]bool{enforcing: false, strings.Replace(enforcing, "mode: enforce", "mode: observe", 1): true} {
		_, out, _ := command(t, "check", "-c", configFile(t, text), "--root", host(t))
		if strings.Contains(out, toEnforce) != want {
			t.Errorf("want %v in\n%s", want, out)
		}
	}
}
