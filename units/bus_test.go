package units

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"

	"github.com/memagent/memagent/memcg"
)

func TestWhereNoSystemdRunsBothSocketsAreNamed(t *testing.T) {
	b := NewBus(t.TempDir())
	defer b.Close()
	_, err := b.Property(context.Background(), "web.service", "Service", "ControlGroup")
	if !errors.Is(err, ErrNoManager) || !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("got %v, want no manager, as its sockets are not there", err)
	}
	for _, s := range sockets {
		if !strings.Contains(err.Error(), s.path) {
			t.Errorf("%v does not name %s", err, s.path)
		}
	}
}

func TestASystemdThatSaysNothingIsNotWaitedForLongerThanAsked(t *testing.T) {
	root := t.TempDir()
	socket := filepath.Join(root, sockets[0].path)
	if err := os.MkdirAll(filepath.Dir(socket), 0o755); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	b := NewBus(root)
	defer b.Close()
	if err := b.SetProperty(ctx, "web.service", "MemoryHigh", uint64(1)); !errors.Is(err, ErrNoManager) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want no manager in time", err)
	}
}

func TestWhatAnAnswerOfSystemdMeans(t *testing.T) {
	over, cancel := context.WithCancel(context.Background())
	cancel()
	for _, c := range []struct {
		name string
		ctx  context.Context
		err  error
		want error
	}{
		{"no such unit", context.Background(), dbus.Error{Name: "org.freedesktop.systemd1.NoSuchUnit"}, ErrNoUnit},
		{"a unit of another kind", context.Background(), dbus.Error{Name: "org.freedesktop.DBus.Error.UnknownInterface"}, ErrNoUnit},
		{"not allowed", context.Background(), dbus.Error{Name: "org.freedesktop.DBus.Error.AccessDenied"}, memcg.ErrDenied},
		{"polkit would ask", context.Background(), dbus.Error{Name: "org.freedesktop.DBus.Error.InteractiveAuthorizationRequired"}, memcg.ErrDenied},
		{"the connection is lost", context.Background(), dbus.ErrClosed, ErrNoManager},
		{"nobody waits any more", over, context.Canceled, memcg.ErrPartial},
	} {
		if got := kindOf(c.ctx, c.err); !errors.Is(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
