// Package lab runs memagent, or nothing, on real kernels: it boots guests in QEMU, has them run
// the scenarios of package scenario and gathers what they measured.
//
// One guest runs at a time on a machine, held by a lock in the cache folder, in the order they came. A guest ends with
// the context it was started with, at the latest with this process.
package lab

import (
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/memagent/memagent/lab/kernel"
	"github.com/memagent/memagent/lab/machine"
)

// Lab is a place to run guests in.
type Lab struct {
	// Cache is the folder downloads and disk images are kept in.
	Cache string
	// Self is this program, which becomes the guest's init; Agent is the memagent the guest
	// gets, empty for none.
	Self, Agent string
	// Package is memagent's .deb for container hosts; empty is the newest in dist, the folder beside
	// that of this program.
	Package string
	// Say is told what is going on.
	Say func(format string, args ...any)
	// Ask is how guests are to execute; empty is KVM where it works, else emulation.
	Ask machine.Accel
	// Patience is how long the lab waits for its turn before it says for whom; 0 is 5 s.
	Patience time.Duration

	tried sync.Once
	accel machine.Accel // once tried
}

// DefaultCache is the cache folder when none is asked for: MEMLAB_CACHE, else memagent-lab in
// the user's cache folder.
func DefaultCache() (string, error) {
	if dir := os.Getenv("MEMLAB_CACHE"); dir != "" {
		return filepath.Abs(dir)
	}
	base, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("finding a cache folder: %w; set MEMLAB_CACHE", err)
	}
	return filepath.Join(base, "memagent-lab"), nil
}

// Kernels is the lab's store of kernels.
func (l *Lab) Kernels() kernel.Store {
	return kernel.Store{Dir: l.Cache, AptDir: "/etc/apt", MirrorURI: os.Getenv("MEMLAB_MIRROR"), Say: l.Say}
}

// Accel is how guests execute here; counted asks for times that do not depend on the host. Whether KVM
// works is tried once, with a cached kernel.
func (l *Lab) Accel(counted bool) machine.Accel {
	if counted {
		return machine.Counted
	}
	if l.Ask != "" {
		return l.Ask
	}
	l.tried.Do(func() { l.accel = l.findAccel() })
	return l.accel
}

func (l *Lab) findAccel() machine.Accel {
	for _, name := range kernel.Names() {
		k, ok := l.Kernels().Cached(name)
		if !ok {
			continue
		}
		err := machine.TryKVM(k.Image())
		if err == nil {
			return machine.KVM
		}
		if !errors.Is(err, machine.ErrNoKVM) {
			l.Say("guests are emulated, for KVM does not work here: %v", err)
		}
		break
	}
	return machine.TCG
}

// ErrNotStatic is returned for a program that cannot run in a guest, where there are no libraries.
var ErrNotStatic = errors.New("it is linked dynamically, and a guest has no libraries: build it with CGO_ENABLED=0")

// checkStatic says whether a program can run without libraries.
func checkStatic(path string) error {
	f, err := elf.Open(path)
	if err != nil {
		return fmt.Errorf("reading %s: %w", path, err)
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return fmt.Errorf("%s cannot go into a guest: %w", path, ErrNotStatic)
		}
	}
	return nil
}
