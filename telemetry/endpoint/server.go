package endpoint

import (
	"errors"
	"log"
	"net"
	"net/http"
	"sync"
	"time"
)

// Bounds on clients.
const (
	// MaxConns is how many connections one server has at a time. Clients are a
	// scraper, a health check and a few people; the next one is cut off.
	MaxConns = 32
	// readFor bounds reading one request, writeFor making and writing the
	// answer, idleFor what a connection waits for its next request.
	readFor  = 5 * time.Second
	writeFor = 10 * time.Second
	idleFor  = 2 * time.Minute
	// maxHeader is bytes of a request's headers.
	maxHeader = 16 << 10
)

// Server answers on one listener until it is closed.
type Server struct {
	http *http.Server
	done chan struct{}
}

// Serve starts to answer on l with h and returns at once. The server owns the
// listener. failed, called from other goroutines, is told of what goes wrong
// while serving: a handler that panicked, a listener that broke.
func Serve(l net.Listener, h http.Handler, failed func(error)) *Server {
	s := &Server{
		http: &http.Server{
			Handler: h, ReadTimeout: readFor, WriteTimeout: writeFor, IdleTimeout: idleFor, MaxHeaderBytes: maxHeader,
			ErrorLog: log.New(told(failed), "", 0),
		},
		done: make(chan struct{}),
	}
	go func() {
		defer close(s.done)
		if err := s.http.Serve(&limited{Listener: l, free: make(chan struct{}, MaxConns)}); !errors.Is(err, http.ErrServerClosed) {
			failed(err)
		}
	}()
	return s
}

// Close stops listening and closes every connection, also one in the middle of
// an answer. It does not wait for clients.
func (s *Server) Close() error {
	err := s.http.Close()
	<-s.done
	return err
}

// told hands lines of a log on as errors.
type told func(error)

func (t told) Write(line []byte) (int, error) {
	t(errors.New(string(line)))
	return len(line), nil
}

// limited closes connections beyond the capacity of free.
type limited struct {
	net.Listener
	free chan struct{}
}

// Accept returns the next connection that there is room for.
func (l *limited) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		select {
		case l.free <- struct{}{}:
			return &counted{Conn: conn, release: sync.OnceFunc(func() { <-l.free })}, nil
		default:
			conn.Close()
		}
	}
}

// counted gives its place back when it is closed.
type counted struct {
	net.Conn
	release func()
}

// Close closes the connection.
func (c *counted) Close() error {
	c.release()
	return c.Conn.Close()
}
