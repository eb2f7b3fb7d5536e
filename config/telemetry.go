package config

import (
	"fmt"
	"net"
	"net/netip"
	"path"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// Telemetry is where a running memagent can be asked. The zero value is
// nowhere.
type Telemetry struct {
	// Metrics is where Prometheus scrapes, and health checks ask.
	Metrics Address
	// Status is the path of the unix socket that memagent status, top and
	// explain ask; "" for none.
	Status string
	// Remote lets Metrics be an address that other hosts can reach.
	Remote bool
}

// Address is where to listen: a unix socket or a TCP address. The zero Address
// is nowhere.
type Address struct {
	Network string // unix, tcp, or "" for nowhere
	Addr    string // the path of the socket, or host:port
}

// String returns the address as the file has it, "" for nowhere.
func (a Address) String() string {
	if a.Network == "unix" {
		return "unix:" + a.Addr
	}
	return a.Addr
}

// Remote reports whether hosts other than this one can reach the address.
func (a Address) Remote() bool {
	if a.Network != "tcp" {
		return false
	}
	host, _, err := net.SplitHostPort(a.Addr)
	if err != nil {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return host != "localhost" && (err != nil || !ip.IsLoopback())
}

// ParseAddress reads unix: and an absolute path, or a host and a port. The host
// is an IP address, localhost, or nothing for every address of this host.
func ParseAddress(text string) (Address, error) {
	if file, ok := strings.CutPrefix(text, "unix:"); ok {
		if err := checkSocket(file); err != nil {
			return Address{}, err
		}
		return Address{"unix", file}, nil
	}
	if strings.HasPrefix(text, "/") {
		return Address{}, faultf(ErrValue, "%s does not say what it is; put unix: before a path", quote(text))
	}
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		return Address{}, faultf(ErrValue, "%s is neither unix: and a path nor a host and a port", quote(text))
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return Address{}, faultf(ErrValue, "%s is not a port, 1..65535", quote(port))
	}
	if _, err := netip.ParseAddr(host); err != nil && host != "localhost" && host != "" {
		return Address{}, faultf(ErrValue, "%s is not an IP address", quote(host))
	}
	return Address{"tcp", text}, nil
}

// maxSocketPath is bytes; unix(7) has 108 with the end mark.
const maxSocketPath = 107

// checkSocket refuses what is no path for a socket of one program.
func checkSocket(file string) error {
	switch {
	case !strings.HasPrefix(file, "/"):
		return faultf(ErrValue, "%s is not absolute", quote(file))
	case len(file) > maxSocketPath:
		return faultf(ErrValue, "has %d bytes, and the path of a socket may have %d", len(file), maxSocketPath)
	case path.Clean(file) != file || path.Dir(file) == "/":
		return faultf(ErrValue, "%s is not the path of a file in a directory", quote(file))
	}
	return checkStateDir(file)
}

const (
	wantTelemetry = "a mapping with metrics, status and remote"
	wantAddress   = "unix:/run/memagent/metrics.sock, or 127.0.0.1:9750"
	wantSocket    = "the path of a socket such as /run/memagent/status.sock"
)

var telemetryKeys = []key[Telemetry]{
	withExample("unix:/run/memagent/metrics.sock", scalarKey("metrics", wantAddress,
		"Where Prometheus scrapes (/metrics) and health checks ask (/healthz, /readyz): a unix socket, or an address\nof this host alone, such as 127.0.0.1:9750. Unset: nowhere.",
		ParseAddress, func(t *Telemetry) *Address { return &t.Metrics }, func(a Address) string {
			if a == (Address{}) {
				return ""
			}
			return yamlQuote(a.String())
		})),
	{
		name: "status", want: wantSocket, example: "/run/memagent/status.sock",
		about: "The unix socket that memagent status, top and explain ask. Unset: they have nobody to ask.",
		read: func(r *reader, p place, want string, t *Telemetry) {
			text, n, ok := r.scalar(p, want)
			if !ok {
				return
			}
			if _, isText := n.(*ast.StringNode); !isText {
				r.wrongType(p, n, want)
				return
			}
			if err := checkSocket(text); err != nil {
				r.refuse(p, text, err, want)
				return
			}
			t.Status = text
		},
		show: func(t *Telemetry) shown {
			if t.Status == "" {
				return shown{}
			}
			return shown{text: yamlPath(t.Status)}
		},
	},
	boolKey("remote", "Let other hosts read the metrics, where their address is not this host's alone. They name your cgroups,\nand nobody is asked for a password.",
		func(t *Telemetry) *bool { return &t.Remote }),
}

// checkTelemetry reports an address that is open to others without a word that
// this is meant, and two servers in one place.
func (r *reader) checkTelemetry(c *Config) {
	at, ok := r.sound("telemetry.metrics")
	if !ok {
		return
	}
	metrics := c.Telemetry.Metrics
	if metrics.Remote() && !c.Telemetry.Remote && !r.bad["telemetry.remote"] {
		r.fault(at, metrics.String(), faultf(ErrConflict, "other hosts can reach %s", quote(metrics.String())),
			"want an address such as 127.0.0.1:9750, or remote: true beside it")
	}
	if metrics.Network == "unix" && metrics.Addr == c.Telemetry.Status {
		r.fault(at, metrics.String(), faultf(ErrConflict, "%s is the status socket", metrics.Addr),
			fmt.Sprintf("want another path, such as %s", path.Dir(metrics.Addr)+"/metrics.sock"))
	}
}
