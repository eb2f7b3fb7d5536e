package endpoint

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func socket(t *testing.T) string {
	t.Helper()
	return filepath.Join(t.TempDir(), "s")
}

func get(path string) (string, error) {
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", path)
	}}}
	resp, err := client.Get("http://memagent/")
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return string(body), err
}

var hello = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "hello") })

func serve(t *testing.T, l net.Listener, h http.Handler) *Server {
	t.Helper()
	s := Serve(l, h, func(err error) { t.Errorf("serving: %v", err) })
	t.Cleanup(func() { s.Close() })
	return s
}

func listen(t *testing.T, path string) net.Listener {
	t.Helper()
	l, err := Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestASocketIsForItsOwnerAndGroupAndGoneAfterwards(t *testing.T) {
	path := filepath.Join(t.TempDir(), "memagent", "s")
	s := serve(t, listen(t, path), hello)
	if body, err := get(path); err != nil || body != "hello" {
		t.Fatalf("%q, %v", body, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o660 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	s.Close()
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("after Close: %v", err)
	}
}

func TestASocketThatAKilledProcessLeftIsReplaced(t *testing.T) {
	path := socket(t)
	left := listen(t, path)
	left.(*net.UnixListener).SetUnlinkOnClose(false)
	left.Close()
	serve(t, listen(t, path), hello)
	if body, err := get(path); err != nil || body != "hello" {
		t.Errorf("%q, %v", body, err)
	}
}

func TestWhatIsInTheWayIsLeftAloneAndNamed(t *testing.T) {
	alive := socket(t)
	serve(t, listen(t, alive), hello)
	file := socket(t)
	if err := os.WriteFile(file, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	tcp, err := Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer tcp.Close()
	for name, c := range map[string]struct {
		network, address string
		kind             error
		text             string
	}{
		"a socket on which somebody listens": {"unix", alive, ErrInUse, "is another memagent running?"},
		"a file":                             {"unix", file, fs.ErrExist, "is no socket"},
		"a path that is too long":            {"unix", "/" + strings.Repeat("x", 107), syscall.ENAMETOOLONG, "108 bytes"},
		"a port in use":                      {"tcp", tcp.Addr().String(), ErrInUse, "choose another port"},
		"a folder that is a file":            {"unix", file + "/s", syscall.ENOTDIR, file},
	} {
		l, err := Listen(c.network, c.address)
		if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v", name, err)
		}
		if l != nil {
			l.Close()
		}
	}
	if text, _ := os.ReadFile(file); string(text) != "mine" {
		t.Errorf("the file holds %q", text)
	}
}

func TestClosingDoesNotWaitForAnAnswerInFlight(t *testing.T) {
	path := socket(t)
	asked, over := make(chan struct{}), make(chan struct{})
	s := serve(t, listen(t, path), http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(asked)
		<-r.Context().Done()
		close(over)
	}))
	answered := make(chan error)
	go func() {
		_, err := get(path)
		answered <- err
	}()
	<-asked
	s.Close()
	if err := <-answered; err == nil {
		t.Error("the question was answered")
	}
	<-over
}

func TestClientsThatSayNothingLeaveRoomForOthersWhenTheyGo(t *testing.T) {
	path := socket(t)
	serve(t, listen(t, path), hello)
	var mute []net.Conn
	for range MaxConns {
		c, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		mute = append(mute, c)
	}
	// The server takes connections in order, so by the time this one is cut
	// off all before it were counted.
	late, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer late.Close()
	if n, err := late.Read(make([]byte, 1)); err == nil {
		t.Errorf("the connection too many got %d bytes", n)
	}
	for _, c := range mute {
		c.Close()
	}
	for {
		// The server learns of the ends in its own time.
		if body, err := get(path); err == nil && body == "hello" {
			return
		}
		if t.Context().Err() != nil {
			t.Fatal("never answered again")
		}
	}
}
