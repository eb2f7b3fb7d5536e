package endpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// ErrInUse is what Listen says where another process listens already.
var ErrInUse = errors.New("somebody else listens there")

const (
	// socketMode lets the owner and the group of the socket ask; on a host
	// that is root, and whom the operator adds to the group.
	socketMode = 0o660
	dirMode    = 0o755 // of a missing folder around it
	// maxSocketPath is what sockaddr_un has room for, less the end mark
	// (unix(7)).
	maxSocketPath = 107
	// probeFor bounds the look whether a socket that is there is alive.
	probeFor = time.Second
)

// Listen opens a listener: network "unix" with the path of a socket, or "tcp"
// with host:port. A socket that a killed process left behind is replaced; one
// on which somebody listens is ErrInUse, and any other file is left alone.
func Listen(network, address string) (net.Listener, error) {
	if network != "unix" {
		l, err := net.Listen(network, address)
		if errors.Is(err, syscall.EADDRINUSE) {
			return nil, fmt.Errorf("listening on %s: %w; choose another port, or stop the other (%w)", address, ErrInUse, syscall.EADDRINUSE)
		}
		if err != nil {
			return nil, fmt.Errorf("listening on %s: %w", address, err)
		}
		return l, nil
	}
	l, err := listenUnix(address)
	if err != nil {
		return nil, fmt.Errorf("listening on the socket %s: %w", address, err)
	}
	return l, nil
}

func listenUnix(path string) (net.Listener, error) {
	if len(path) > maxSocketPath {
		return nil, fmt.Errorf("the path has %d bytes and a socket's may have %d: %w", len(path), maxSocketPath, syscall.ENAMETOOLONG)
	}
	if err := os.MkdirAll(filepath.Dir(path), dirMode); err != nil {
		return nil, err
	}
	if err := removeStale(path); err != nil {
		return nil, err
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	// Until here the umask ruled, which grants others no right to write, and
	// so none to connect, unless it was made to.
	if err := os.Chmod(path, socketMode); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

// removeStale removes a socket on which nobody listens. Two agents that start
// in the same moment may both do so; the state directory's lock tells them
// apart, not this.
func removeStale(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode().Type() != fs.ModeSocket:
		return fmt.Errorf("it is there and is no socket but %s; it is left alone: %w", info.Mode(), fs.ErrExist)
	}
	conn, err := net.DialTimeout("unix", path, probeFor)
	switch {
	case err == nil:
		conn.Close()
		return fmt.Errorf("%w; is another memagent running?", ErrInUse)
	case errors.Is(err, syscall.ECONNREFUSED):
		return os.Remove(path)
	}
	return fmt.Errorf("it is there and cannot be asked whether it is alive: %w", err)
}
