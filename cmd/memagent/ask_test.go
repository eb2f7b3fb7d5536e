package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/memagent/memagent/telemetry/status"
)

var updateGolden = flag.Bool("update", false, "write the golden files anew")

// running starts an observing memagent on a recorded tree, waits until its
// first tick is over, and returns its sockets and a function that stops it.
func running(t *testing.T) (statusSocket, metricsSocket string, stop func() (code int, errs string)) {
	t.Helper()
	dir := t.TempDir()
	statusSocket, metricsSocket = filepath.Join(dir, "status"), filepath.Join(dir, "metrics")
	var out, errs bytes.Buffer
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan int, 1)
	root := host(t)
	go func() {
		done <- run(ctx, env{out: &out, err: &errs}, []string{"run", "--root", root, "--log", "json", "--status", statusSocket, "--metrics", "unix:" + metricsSocket})
	}()
	stop = func() (int, string) {
		cancel()
		code := <-done
		done <- code
		return code, errs.String()
	}
	t.Cleanup(func() { stop() })
	for {
		resp, err := overSocket(statusSocket).Get("http://memagent/readyz")
		if err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return statusSocket, metricsSocket, stop
			}
		}
		select {
		case code := <-done:
			t.Fatalf("it ended with %d: %s", code, errs.String())
		case <-time.After(5 * time.Millisecond): // between two questions; nothing tells when a socket is there
		}
	}
}

func overSocket(path string) *http.Client {
	return &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", path)
	}}}
}

// varying is what differs from run to run in what is printed.
var varying = []struct {
	re *regexp.Regexp
	to string
}{
	{regexp.MustCompile(`\d\d:\d\d:\d\d`), "HH:MM:SS"},
	{regexp.MustCompile(`memagent \S+ \(pid \d+\)`), "memagent VERSION (pid N)"},
	{regexp.MustCompile(`up \S+, looks`), "up T, looks"},
	{regexp.MustCompile(`the last \S+ ago in \S+`), "the last T ago in T"},
	{regexp.MustCompile(`used \S+ of CPU and at most .*`), "used T of CPU and at most N"},
	{regexp.MustCompile(`, \d+s ago, in tick \d+`), ", T ago, in tick N"},
}

func goldenOutput(t *testing.T, name, got string) {
	t.Helper()
	for _, v := range varying {
		got = v.re.ReplaceAllString(got, v.to)
	}
	file := filepath.Join("testdata", name+".txt")
	if *updateGolden {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v; go test ./cmd/memagent -update writes it", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got), -update writes it:\n%s", file, diff)
	}
}

func TestARunningAgentCanBeAskedUntilItStops(t *testing.T) {
	socket, metricsSocket, stop := running(t)
	code, out, errs := command(t, "status", "--socket", socket)
	if code != exitOK || errs != "" {
		t.Errorf("status: exit %d, %s", code, errs)
	}
	goldenOutput(t, "status", out)
	if _, piped, _ := command(t, "top", "--socket", socket); !strings.Contains(piped, "CGROUP") || !strings.Contains(piped, "/app.slice") {
		t.Errorf("top without a terminal:\n%s", piped)
	}
	code, out, _ = command(t, "explain", "--socket", socket, "app.slice")
	if code != exitOK {
		t.Errorf("explain: exit %d", code)
	}
	goldenOutput(t, "explain", out)

	code, out, _ = command(t, "explain", "--socket", socket, "--json", "/app.slice")
	var d status.Detail
	if err := json.Unmarshal([]byte(out), &d); err != nil || code != exitOK || d.Version != 1 || len(d.Past) == 0 || !json.Valid(d.Past[0].Record) {
		t.Errorf("explain --json: %v, exit %d, %s", err, code, out)
	}
	code, out, _ = command(t, "status", "--socket", socket, "--json")
	var s status.Status
	if err := json.Unmarshal([]byte(out), &s); err != nil || code != exitOK || len(s.Cgroups) != 2 || s.Agent.Mode != "observe" || s.Agent.PID != os.Getpid() {
		t.Errorf("status --json: %v, exit %d, %s", err, code, out)
	}
	code, _, errs = command(t, "explain", "--socket", socket, "/ap.slice")
	if code != exitHost || errs != "memagent: no policy watches a cgroup /ap.slice, did you mean /app.slice?\n" {
		t.Errorf("a slip: exit %d, %q", code, errs)
	}

	resp, err := overSocket(metricsSocket).Get("http://memagent/metrics")
	if err != nil {
		t.Fatal(err)
	}
	problems, err := promlint.New(resp.Body).Lint()
	resp.Body.Close()
	if err != nil || len(problems) > 0 || resp.StatusCode != http.StatusOK {
		t.Errorf("scrape: %d, %v, %v", resp.StatusCode, err, problems)
	}

	if code, errs := stop(); code != exitOK || errs != "" {
		t.Errorf("the agent: exit %d, %s", code, errs)
	}
	for _, path := range []string{socket, metricsSocket} {
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is left: %v", path, err)
		}
	}
	code, _, errs = command(t, "status", "--socket", socket)
	if code != exitHost || !strings.Contains(errs, "no memagent answers at "+socket) || !strings.Contains(errs, "telemetry.status") {
		t.Errorf("afterwards: exit %d, %s", code, errs)
	}
}

func TestAClientThatNeverReadsHoldsUpNeitherTicksNorTheEnd(t *testing.T) {
	socket, metricsSocket, stop := running(t)
	for _, path := range []string{socket, metricsSocket} {
		for _, request := range []string{"", "GET /v1/status HTTP/1.1\r\nHost: x\r\n\r\n", "GET /metrics HTTP/1.1\r\n"} {
			c, err := net.Dial("unix", path)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if _, err := c.Write([]byte(request)); err != nil {
				t.Fatal(err)
			}
		}
	}
	began := time.Now()
	if code, errs := stop(); code != exitOK {
		t.Errorf("exit %d, %s", code, errs)
	}
	if took := time.Since(began); took > 3*time.Second {
		t.Errorf("ending took %s", took)
	}
}

func TestASecondAgentOnTheSameSocketDoesNotStart(t *testing.T) {
	socket, _, _ := running(t)
	recorded := filepath.Join(t.TempDir(), "recording")
	code, out, errs := command(t, "run", "--root", host(t), "--for", "1ms", "--status", socket, "--log", "json", "--record", recorded)
	if _, err := os.Stat(recorded); out != "" || !os.IsNotExist(err) {
		t.Errorf("a start that did not happen said %q, and left a recording: %v", out, err)
	}
	if code != exitHost || !strings.Contains(errs, "telemetry.status: listening on the socket "+socket) || !strings.Contains(errs, "is another memagent running?") {
		t.Errorf("exit %d, %s", code, errs)
	}
}

func TestWhereToBeAskedIsCheckedBeforeAnythingStarts(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"an address that is open to others": {[]string{"run", "--metrics", "0.0.0.0:9750"}, "other hosts can reach it"},
		"an address that is none":           {[]string{"run", "--metrics", "here"}, "neither unix: and a path nor a host and a port"},
		"explain without a cgroup":          {[]string{"explain"}, "memagent explain takes one cgroup"},
		"top that asks too often":           {[]string{"top", "--every", "1ms"}, "want 100ms or more"},
	} {
		code, out, errs := command(t, c.args...)
		if code != exitConfig || !strings.Contains(errs, c.want) || out != "" {
			t.Errorf("%s: exit %d, stdout %q, stderr %q", name, code, out, errs)
		}
	}
}
