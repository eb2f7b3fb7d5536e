package cgroupfs

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/memagent/memagent/memcg"
)

func TestAgingIsOneCommandForEachListWithPages(t *testing.T) {
	k := newGenerations(t, 1024*mib, "sys/fs/cgroup/p/x y/memory.current", "1\n", "sys/fs/cgroup/q/memory.current", "1\n")
	k.list(cgroupEntry(20, "/p", nodeList(0, 3, young...), nodeList(8, 3, [][3]int{{9, 0, 0}, {0, 0, 0}}...), nodeList(252, 7, young...)),
		cgroupEntry(21, "/p/x y", nodeList(0, 1, append([][3]int{{9, 1, 1}}, young...)...)), cgroupEntry(22, "/q", nodeList(0, 1, young...)))
	k.react = func(k *generations, c command) error {
		k.now = k.now.Add(time.Second)
		if c.node == 252 {
			return unix.EEXIST // on 7.3 somebody else is at it
		}
		return nil
	}
	fs := k.host()
	took, err := fs.Age(t.Context(), idOf(t, fs, "/p"))
	if want := []string{"+ 20 0 4 1 1", "+ 20 252 8 1 1", "+ 21 0 3 1 1"}; err != nil || !slices.Equal(k.raws(), want) || took != 3*time.Second {
		t.Errorf("took %v, err %v, commands %q, want %q", took, err, k.raws(), want)
	}
	if fs.Writes() != 3 {
		t.Errorf("%d writes are counted", fs.Writes())
	}
}

func TestAgingSaysHowItEnded(t *testing.T) {
	start := func(t *testing.T) (*generations, *FS, memcg.ID) {
		k := newGenerations(t, 1024*mib, "sys/fs/cgroup/p/x/memory.current", "1\n")
		k.list(cgroupEntry(20, "/p", nodeList(0, 3, young...)), cgroupEntry(21, "/p/x", nodeList(0, 3, young...)))
		fs := k.host()
		return k, fs, idOf(t, fs, "/p")
	}
	for _, tt := range []struct {
		errno  unix.Errno
		kind   error
		writes int
	}{
		{unix.EINVAL, memcg.ErrInvalid, 2}, {unix.EINTR, memcg.ErrPartial, 1}, {unix.EPERM, memcg.ErrDenied, 1}, {unix.EIO, unix.EIO, 1},
	} {
		k, fs, id := start(t)
		k.react = func(*generations, command) error { return tt.errno }
		if _, err := fs.Age(t.Context(), id); !errors.Is(err, tt.kind) || !errors.Is(err, tt.errno) || len(k.commands) != tt.writes {
			t.Errorf("%v: err %v after %d writes", tt.errno, err, len(k.commands))
		}
	}
	t.Run("ended by its context", func(t *testing.T) {
		k, fs, id := start(t)
		ctx, cancel := context.WithCancel(t.Context())
		k.react = func(*generations, command) error { cancel(); return nil }
		if _, err := fs.Age(ctx, id); !errors.Is(err, memcg.ErrPartial) || !errors.Is(err, context.Canceled) || len(k.commands) != 1 {
			t.Errorf("err %v after %q", err, k.raws())
		}
	})
	t.Run("the cgroup went", func(t *testing.T) {
		k, fs, id := start(t)
		k.react = func(k *generations, c command) error {
			return os.Rename(filepath.Join(k.root, "sys/fs/cgroup/p"), filepath.Join(k.root, "old"))
		}
		k.list(cgroupEntry(20, "/p", nodeList(0, 3, young...), nodeList(8, 3, young...)))
		if _, err := fs.Age(t.Context(), id); !errors.Is(err, memcg.ErrGone) || len(k.commands) != 1 {
			t.Errorf("err %v after %q", err, k.raws())
		}
	})
	t.Run("a child went", func(t *testing.T) {
		k, fs, id := start(t)
		k.react = func(k *generations, c command) error {
			return os.RemoveAll(filepath.Join(k.root, "sys/fs/cgroup/p/x"))
		}
		if _, err := fs.Age(t.Context(), id); err != nil || len(k.commands) != 1 {
			t.Errorf("err %v after %q", err, k.raws())
		}
	})
	t.Run("not to be had", func(t *testing.T) {
		k, fs, id := start(t)
		k.set(lruGenEnabled, "0x0000\n")
		if _, err := fs.Age(t.Context(), id); !errors.Is(err, memcg.ErrUnsupported) || len(k.commands) != 0 {
			t.Errorf("err %v after %q", err, k.raws())
		}
	})
}
