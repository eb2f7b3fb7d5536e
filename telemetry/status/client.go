package status

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"
)

// DefaultSocket is where a client looks for the status socket, and what the
// shipped config has under telemetry.status.
const DefaultSocket = "/run/memagent/status.sock"

// Kinds of failure of a Client, for errors.Is.
var (
	// ErrNoAgent: nothing answers at the socket.
	ErrNoAgent = errors.New("no memagent answers")
	// ErrDenied: the socket may not be opened by this user.
	ErrDenied = errors.New("access denied")
	// ErrNoCgroup: the agent watches no such cgroup. The error is a
	// *NoCgroupError with suggestions.
	ErrNoCgroup = errors.New("no such cgroup")
	// ErrAnswer: what answers is no memagent, or one of another version.
	ErrAnswer = errors.New("unexpected answer")
)

// NoCgroupError is that the agent watches no cgroup of a name.
type NoCgroupError struct {
	Name string
	Near []string // that may have been meant, the likeliest first
}

// Error says so, with the suggestions.
func (e *NoCgroupError) Error() string {
	text := fmt.Sprintf("no policy watches a cgroup %s", e.Name)
	switch len(e.Near) {
	case 0:
		return text + "; memagent status lists those that are watched"
	case 1:
		return text + ", did you mean " + e.Near[0] + "?"
	}
	return text + ", did you mean one of these?\n  " + strings.Join(e.Near, "\n  ")
}

// Is makes errors.Is find ErrNoCgroup.
func (e *NoCgroupError) Is(target error) bool { return target == ErrNoCgroup }

// patience bounds one question, from the connection to the last byte. The
// agent answers in milliseconds; a host in deep reclaim may take longer.
const patience = 10 * time.Second

// maxAnswer bounds what is read of an answer: far above ten thousand cgroups.
const maxAnswer = 64 << 20

// Client asks the agent behind one socket. Its methods may be called from any
// goroutine.
type Client struct {
	socket string
	http   http.Client
}

// NewClient returns a client for the socket at path. It connects when it asks.
func NewClient(path string) *Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", path)
	}
	// One connection a question: an agent that was restarted must not show
	// as a broken one that was kept.
	return &Client{socket: path, http: http.Client{Timeout: patience, Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}}
}

// Status asks for the whole table.
func (c *Client) Status(ctx context.Context) (*Status, error) {
	var s Status
	if err := c.get(ctx, "/v1/status", &s); err != nil {
		return nil, err
	}
	return &s, nil
}

// Detail asks for one cgroup: by its path, with or without the usual mount
// before it, or by the end of its path where that is enough. Without such a
// cgroup the error is a *NoCgroupError.
func (c *Client) Detail(ctx context.Context, name string) (*Detail, error) {
	var d Detail
	parts := strings.Split(strings.TrimPrefix(name, "/"), "/")
	for i := range parts {
		parts[i] = url.PathEscape(parts[i])
	}
	err := c.get(ctx, "/v1/cgroups/"+strings.Join(parts, "/"), &d)
	var none *NoCgroupError
	if errors.As(err, &none) {
		none.Name = name
	}
	if err != nil {
		return nil, err
	}
	return &d, nil
}

func (c *Client) get(ctx context.Context, path string, into any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://memagent"+path, nil)
	if err != nil {
		return fmt.Errorf("asking for %s: %w", path, err)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return c.unreachable(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("the answer of the memagent behind %s broke off; it may just be stopping: %w", c.socket, errors.Join(ErrNoAgent, err))
	}
	if resp.StatusCode == http.StatusOK {
		if err := json.Unmarshal(body, into); err != nil {
			return fmt.Errorf("%s: %w to %s, is it a memagent of another version? %w", c.socket, ErrAnswer, path, err)
		}
		return nil
	}
	var f Failure
	if err := json.Unmarshal(body, &f); err != nil || f.Error == "" {
		return fmt.Errorf("%s: %w to %s: %s", c.socket, ErrAnswer, path, resp.Status)
	}
	if resp.StatusCode == http.StatusNotFound && strings.HasPrefix(path, "/v1/cgroups/") {
		return &NoCgroupError{Near: f.Near}
	}
	return fmt.Errorf("%s: %w: %s", c.socket, ErrAnswer, f.Error)
}

// unreachable says why no agent was reached, and what helps.
func (c *Client) unreachable(err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w at %s: there is no such socket. Is memagent running, with --status PATH or with telemetry.status in its config? (%w)", ErrNoAgent, c.socket, fs.ErrNotExist)
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("%w at %s: the socket is there and nobody listens; a memagent that was killed left it behind (%w)", ErrNoAgent, c.socket, syscall.ECONNREFUSED)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w to %s: try it as root, or as a member of the socket's group (%w)", ErrDenied, c.socket, fs.ErrPermission)
	case errors.Is(err, context.Canceled):
		return err
	}
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		return fmt.Errorf("%w at %s within %s: it may be stopped, or stuck (%w)", ErrNoAgent, c.socket, patience, err)
	}
	return fmt.Errorf("asking the memagent behind %s: %w", c.socket, err)
}
