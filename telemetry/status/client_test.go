package status

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/memagent/memagent/memcg"
	"github.com/memagent/memagent/telemetry"
	"github.com/memagent/memagent/telemetry/endpoint"
)

// agent serves h on a socket and returns its path.
func agent(t *testing.T, h http.Handler) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	l, err := endpoint.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	s := endpoint.Serve(l, h, func(err error) { t.Error(err) })
	t.Cleanup(func() { s.Close() })
	return path
}

func TestAClientGetsWhatTheBoardHas(t *testing.T) {
	b := testBoard()
	b.Record(quietly("/with blank/50%/a?b#c", 1, 5))
	b.Ticked(&telemetry.Tick{Began: start, Took: time.Millisecond, Mode: telemetry.Enforce, Interval: 5 * time.Second, Watched: 1,
		Host: &memcg.HostSample{MemTotal: memcg.Value(1 << 30), Nodes: []memcg.Node{{ID: 0, HasMemory: true, MemFree: memcg.Value(5)}, {ID: 1}}}})
	c := NewClient(agent(t, Handler(b, telemetry.NewHealth(time.Second, time.Now()))))
	s, err := c.Status(t.Context())
	if err != nil || s.Version != Version || s.Agent.Version != "1.2.3" || s.Agent.Ticks != 1 || s.Agent.Mode != "enforce" || s.Agent.Config.Policies != 2 ||
		*s.Host.MemTotal != 1<<30 || s.Host.SwapFree != nil || len(s.Host.Nodes) != 1 || len(s.Cgroups) != 1 || *s.Cgroups[0].Current != 512<<20 {
		t.Errorf("%+v, %v", s, err)
	}
	if d, err := c.Detail(t.Context(), "/with blank/50%/a?b#c"); err != nil || d.Cgroup.Inode != 1 || len(d.Explained) == 0 {
		t.Errorf("%+v, %v", d, err)
	}
	_, err = c.Detail(t.Context(), "a?b#d")
	if none, ok := errors.AsType[*NoCgroupError](err); !ok || !errors.Is(err, ErrNoCgroup) || len(none.Near) != 1 || !strings.Contains(err.Error(), `a?b#d, did you mean "/with blank/50%/a?b#c"?`) {
		t.Errorf("%v", err)
	}
}

func TestHealthIsAnsweredInWords(t *testing.T) {
	health := telemetry.NewHealth(time.Second, time.Now())
	h := Handler(testBoard(), health)
	ask := func(path string) (int, string) {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		return w.Code, w.Body.String()
	}
	if code, body := ask("/readyz"); code != 503 || body != "the first tick is not over\n" {
		t.Errorf("%d %q", code, body)
	}
	health.Ticked(&telemetry.Tick{Began: time.Now(), Host: &memcg.HostSample{}})
	for _, path := range []string{"/readyz", "/healthz"} {
		if code, body := ask(path); code != 200 || body != "ok\n" {
			t.Errorf("%s: %d %q", path, code, body)
		}
	}
	health.Ticked(&telemetry.Tick{Began: time.Now().Add(-time.Minute), Host: &memcg.HostSample{}})
	if code, body := ask("/healthz"); code != 503 || !strings.Contains(body, "the loop does not tick: 1m0s since the last tick") {
		t.Errorf("%d %q", code, body)
	}
	if code, body := ask("/v2/status"); code != 404 || !strings.Contains(body, "version 1 has /v1/status") {
		t.Errorf("%d %q", code, body)
	}
}

func TestWhenNobodyAnswersTheErrorSaysWhy(t *testing.T) {
	dir := t.TempDir()
	left := filepath.Join(dir, "left")
	l, err := net.Listen("unix", left)
	if err != nil {
		t.Fatal(err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	l.Close()
	breaks := agent(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1000")
		io.WriteString(w, `{"version":`)
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}))
	for name, c := range map[string]struct {
		socket string
		kind   error
		text   string
	}{
		"there is no socket":        {filepath.Join(dir, "none"), ErrNoAgent, "Is memagent running, with --status PATH or with telemetry.status in its config?"},
		"a killed agent left it":    {left, ErrNoAgent, "a memagent that was killed left it behind"},
		"the agent stops meanwhile": {breaks, ErrNoAgent, "it may just be stopping"},
		"it is another program":     {agent(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "hello") })), ErrAnswer, "is it a memagent of another version?"},
		"it is another web server":  {agent(t, http.NotFoundHandler()), ErrAnswer, "404"},
		"it is busy": {agent(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			answer(w, http.StatusServiceUnavailable, Failure{Error: "4 others are being answered; ask again"})
		})), ErrAnswer, "ask again"},
	} {
		if _, err := NewClient(c.socket).Status(t.Context()); !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.text) || !strings.Contains(err.Error(), c.socket) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestASocketOfSomebodyElseIsDenied(t *testing.T) {
	if os.Geteuid() == 0 {
		// Root may open every socket: what the kernel says to others stands in.
		err := NewClient("/s").unreachable(&net.OpError{Op: "dial", Err: os.NewSyscallError("connect", os.ErrPermission)})
		if !errors.Is(err, ErrDenied) || !strings.Contains(err.Error(), "try it as root") {
			t.Errorf("%v", err)
		}
		return
	}
	path := agent(t, http.NotFoundHandler())
	if err := os.Chmod(path, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := NewClient(path).Status(t.Context()); !errors.Is(err, ErrDenied) || !strings.Contains(err.Error(), "try it as root") {
		t.Errorf("%v", err)
	}
}

func TestQuestionsBeyondABoundAreRefusedAndNotQueued(t *testing.T) {
	b := testBoard()
	h := Handler(b, telemetry.NewHealth(time.Second, time.Now()))
	b.mu.Lock() // whoever is answered now has to wait, as behind a stuck loop
	answers := make(chan int)
	for range atOnce + 1 {
		go func() {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest("GET", "/v1/status", nil))
			answers <- w.Code
		}()
	}
	if code := <-answers; code != http.StatusServiceUnavailable {
		t.Errorf("the one too many got %d", code)
	}
	b.mu.Unlock()
	for range atOnce {
		if code := <-answers; code != http.StatusOK {
			t.Errorf("one of those who waited got %d", code)
		}
	}
}
