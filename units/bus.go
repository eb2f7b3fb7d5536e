package units

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"

	systemd "github.com/coreos/go-systemd/v22/dbus"
	"github.com/godbus/dbus/v5"

	"github.com/memagent/memagent/memcg"
)

// Manager is all that is asked of systemd.
type Manager interface {
	// Property returns a property of a unit, of the interface of that kind. The
	// error Is ErrNoUnit where there is no such unit, or none of that kind.
	Property(ctx context.Context, unit, kind, name string) (any, error)
	// SetProperty sets one until the next boot. The error Is memcg.ErrDenied where
	// this process may not.
	SetProperty(ctx context.Context, unit, name string, value any) error
}

// ErrNoUnit says that systemd has no such unit.
var ErrNoUnit = errors.New("no such unit")

// ErrNoManager says that systemd could not be reached.
var ErrNoManager = errors.New("systemd does not answer")

// sockets are where systemd listens, below the host's root: to root alone, which
// needs no D-Bus daemon, and as everybody.
var sockets = [...]struct {
	path  string
	hello bool
}{{"run/systemd/private", false}, {"run/dbus/system_bus_socket", true}}

// Bus is the systemd of a host. It is connected when it is first asked, and again
// when the connection was lost. It is safe for use by several goroutines.
type Bus struct {
	root string
	mu   sync.Mutex
	conn *systemd.Conn
}

// NewBus returns the systemd of the host whose / is seen at root.
func NewBus(root string) *Bus { return &Bus{root: root} }

// Close ends the connection, if there is one.
func (b *Bus) Close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.conn != nil {
		b.conn.Close()
		b.conn = nil
	}
}

// Property is Manager's.
func (b *Bus) Property(ctx context.Context, unit, kind, name string) (any, error) {
	c, err := b.connected(ctx)
	if err != nil {
		return nil, err
	}
	p, err := c.GetUnitTypePropertyContext(ctx, unit, kind, name)
	if err != nil {
		return nil, fmt.Errorf("property %s of %s: %w", name, unit, kindOf(ctx, err))
	}
	return p.Value.Value(), nil
}

// SetProperty is Manager's.
func (b *Bus) SetProperty(ctx context.Context, unit, name string, value any) error {
	c, err := b.connected(ctx)
	if err != nil {
		return err
	}
	err = c.SetUnitPropertiesContext(ctx, unit, true, systemd.Property{Name: name, Value: dbus.MakeVariant(value)})
	if err != nil {
		return fmt.Errorf("set property %s of %s: %w", name, unit, kindOf(ctx, err))
	}
	return nil
}

// connected returns the connection. Somebody who is kept waiting by a systemd that
// takes connections and says nothing keeps the others waiting as well.
func (b *Bus) connected(ctx context.Context) (*systemd.Conn, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.conn != nil && b.conn.Connected() {
		return b.conn, nil
	}
	if b.conn != nil {
		b.conn.Close()
		b.conn = nil
	}
	type answer struct {
		conn *systemd.Conn
		err  error
	}
	done := make(chan answer, 1)
	go func() {
		c, err := b.dial()
		done <- answer{c, err}
	}()
	select {
	case a := <-done:
		b.conn = a.conn
		return a.conn, a.err
	case <-ctx.Done():
		go func() { // it may still come
			if a := <-done; a.conn != nil {
				a.conn.Close()
			}
		}()
		return nil, fmt.Errorf("%w: %w", ErrNoManager, context.Cause(ctx))
	}
}

func (b *Bus) dial() (*systemd.Conn, error) {
	var all []error
	for _, s := range sockets {
		path := filepath.Join(b.root, s.path)
		c, err := systemd.NewConnection(func() (*dbus.Conn, error) { return open(path, s.hello) })
		if err == nil {
			return c, nil
		}
		all = append(all, fmt.Errorf("%s: %w", path, err))
	}
	return nil, fmt.Errorf("%w: %w", ErrNoManager, errors.Join(all...))
}

// open opens one connection. Who talks to systemd itself says no hello, which is
// for a daemon in between.
func open(path string, hello bool) (_ *dbus.Conn, err error) {
	c, err := dbus.Dial("unix:path=" + dbus.EscapeBusAddressValue(path))
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = c.Close() // it never was of use
		}
	}()
	if err := c.Auth([]dbus.Auth{dbus.AuthExternal(strconv.Itoa(os.Getuid()))}); err != nil {
		return nil, err
	}
	if hello {
		err = c.Hello()
	}
	return c, err
}

// Names of errors on D-Bus. A unit that is not there has no object or, made up for
// the question, no such interface.
var (
	noUnitNames = []string{
		"org.freedesktop.systemd1.NoSuchUnit", "org.freedesktop.systemd1.LoadFailed", "org.freedesktop.DBus.Error.UnknownObject",
		"org.freedesktop.DBus.Error.UnknownInterface", "org.freedesktop.DBus.Error.UnknownProperty",
		"org.freedesktop.DBus.Error.UnknownMethod",
	}
	deniedNames = []string{
		"org.freedesktop.DBus.Error.AccessDenied", "org.freedesktop.DBus.Error.InteractiveAuthorizationRequired",
		"org.freedesktop.DBus.Error.AuthFailed",
	}
)

// kindOf gives an error of a call its meaning.
func kindOf(ctx context.Context, err error) error {
	e, answered := errors.AsType[dbus.Error](err)
	switch {
	case answered && slices.Contains(noUnitNames, e.Name):
		return fmt.Errorf("%w: %w", ErrNoUnit, err)
	case answered && slices.Contains(deniedNames, e.Name):
		return fmt.Errorf("%w: %w; over a D-Bus daemon systemd asks for CAP_SYS_ADMIN of who sets a property, or for polkit; run as root where /run/systemd/private is", memcg.ErrDenied, err)
	case answered:
		return err
	case ctx.Err() != nil:
		return fmt.Errorf("%w: %w", memcg.ErrPartial, context.Cause(ctx))
	}
	return fmt.Errorf("%w: %w", ErrNoManager, err)
}
