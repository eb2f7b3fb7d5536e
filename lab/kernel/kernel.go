// Package kernel finds, fetches and keeps the Debian kernels the lab boots.
//
// A kernel is asked for by a short name (6.1, 6.12, latest) and resolved to the newest release
// apt knows of. Its packages are downloaded and verified by apt, unpacked without being
// installed, and what a guest needs of them is kept in a cache folder. A warm cache needs
// neither apt nor a network.
package kernel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Modules are the kernel modules a guest needs, with what they depend on: the disk, the swap
// device and its compressors. A kernel has some of them built in or does not have them at all;
// those are skipped.
var Modules = []string{"virtio_pci", "virtio_blk", "lz4", "lzo", "lzo-rle", "zram"}

// spec says where a short name is looked up.
type spec struct {
	series  string     // "6.12"; empty for the newest of all
	machine bool       // try the machine's own apt sources first
	suites  [][]string // then these suites, privately, one set after the other
}

var specs = map[string]spec{
	"6.1":    {series: "6.1", machine: true, suites: [][]string{{"bookworm", "bookworm-updates", "bookworm-security"}}},
	"6.12":   {series: "6.12", machine: true, suites: [][]string{{"trixie", "trixie-updates", "trixie-security"}, {"bookworm-security"}}},
	"latest": {suites: [][]string{{"trixie-backports"}}},
}

// Names are the short names a kernel can be asked for by, oldest first.
func Names() []string { return []string{"6.1", "6.12", "latest"} }

// Kernel is one kernel ready to boot.
type Kernel struct {
	// Name is what it was asked for by, Release what uname -r says in the guest.
	Name    string `json:"-"`
	Release string `json:"release"`
	// Packages are the Debian package files it was taken from.
	Packages []string `json:"packages"`
	// Considered are the modules that were looked for when it was unpacked.
	Considered []string `json:"considered"`
	// Present are the modules found and those they depend on, in load order.
	Present []string `json:"present"`

	dir string
}

// Image is the path of the compressed kernel.
func (k Kernel) Image() string { return filepath.Join(k.dir, "vmlinuz") }

// ModulePath is the path of an uncompressed module of Present.
func (k Kernel) ModulePath(name string) string {
	return filepath.Join(k.dir, "modules", name+".ko")
}

// Store is the folder kernels are kept in.
type Store struct {
	// Dir is the cache folder, made when it is not there.
	Dir string
	// AptDir is the folder apt is configured in, /etc/apt on a real machine.
	AptDir string
	// MirrorURI replaces the archive found in AptDir when it is not empty.
	MirrorURI string
	// Say is told what is going on when something slow happens.
	Say func(format string, args ...any)
}

// Cached returns the kernel of that name from the cache alone.
func (s Store) Cached(name string) (Kernel, bool) {
	if _, ok := specs[name]; !ok {
		return Kernel{}, false
	}
	raw, err := os.ReadFile(s.pointer(name))
	if err != nil {
		return Kernel{}, false
	}
	k, err := s.load(strings.TrimSpace(string(raw)))
	if err != nil {
		return Kernel{}, false
	}
	k.Name = name
	return k, true
}

// Get returns the kernel of that name, from the cache when it is there, else from apt.
func (s Store) Get(ctx context.Context, name string) (Kernel, error) {
	if k, ok := s.Cached(name); ok {
		return k, nil
	}
	return s.Update(ctx, name, false)
}

// Update asks apt for the newest kernel of that name and fetches it unless that very release is
// cached. With refresh, apt's lists are fetched again first.
func (s Store) Update(ctx context.Context, name string, refresh bool) (Kernel, error) {
	sp, ok := specs[name]
	if !ok {
		return Kernel{}, fmt.Errorf("no kernel %q; there are: %s", name, strings.Join(Names(), ", "))
	}
	var tried []error
	for _, st := range s.states(sp, &tried) {
		k, err := s.from(ctx, st, sp, refresh)
		if err != nil {
			if ctx.Err() != nil {
				return Kernel{}, ctx.Err()
			}
			tried = append(tried, err)
			continue
		}
		if err := replaceFile(s.pointer(name), []byte(k.Release+"\n")); err != nil {
			return Kernel{}, fmt.Errorf("recording kernel %s: %w", name, err)
		}
		k.Name = name
		return k, nil
	}
	return Kernel{}, fmt.Errorf("kernel %s could not be fetched:\n%w\n"+
		"It needs apt-get, apt-cache, dpkg-deb and a Debian archive in %s (or its URI in MEMLAB_MIRROR)", name, errors.Join(tried...), s.AptDir)
}

// states are the views of the archive to look in, in order. What cannot be looked in is
// appended to tried.
func (s Store) states(sp spec, tried *[]error) []aptState {
	var out []aptState
	if sp.machine {
		out = append(out, machineState())
	}
	m, err := s.mirror()
	if err != nil {
		*tried = append(*tried, err)
		return out
	}
	for _, suites := range sp.suites {
		st, err := privateState(filepath.Join(s.Dir, "apt", suites[0]), m, suites)
		if err != nil {
			*tried = append(*tried, err)
			continue
		}
		out = append(out, st)
	}
	return out
}

func (s Store) mirror() (Mirror, error) {
	if s.MirrorURI != "" {
		return Mirror{Main: s.MirrorURI}, nil
	}
	sources, err := ReadSources(s.AptDir)
	if err != nil {
		return Mirror{}, err
	}
	m, ok := FindMirror(sources)
	if !ok {
		return Mirror{}, fmt.Errorf("no Debian archive among the %d apt sources in %s", len(sources), s.AptDir)
	}
	return m, nil
}

// from resolves and fetches a kernel from one view of the archive.
func (s Store) from(ctx context.Context, st aptState, sp spec, refresh bool) (Kernel, error) {
	if refresh {
		s.Say("fetching package lists (apt-get update, %s)", st.name)
		if err := st.update(ctx); err != nil {
			return Kernel{}, err
		}
	}
	names, err := st.names(ctx)
	if err != nil {
		return Kernel{}, err
	}
	releases := Releases(names, sp.series)
	if len(releases) == 0 && !refresh {
		if len(names) > 0 && !st.private {
			return Kernel{}, fmt.Errorf("%s: no package linux-image-%s*-%s", st.name, sp.series, flavour)
		}
		return s.from(ctx, st, sp, true)
	}
	if len(releases) == 0 {
		return Kernel{}, fmt.Errorf("%s: no package linux-image-%s*-%s", st.name, sp.series, flavour)
	}
	release := releases[0]
	if k, err := s.load(release); err == nil {
		return k, nil
	}
	k, err := s.fetch(ctx, st, release, Packages(names, release))
	if err != nil && !refresh && ctx.Err() == nil {
		// Lists that are older than the archive name files that are gone.
		s.Say("%v; trying again with new package lists", err)
		return s.from(ctx, st, sp, true)
	}
	return k, err
}

func (s Store) pointer(name string) string { return filepath.Join(s.Dir, "kernels", name+".release") }

// load reads an unpacked kernel, refusing one that was unpacked for fewer modules than are wanted now.
func (s Store) load(release string) (Kernel, error) {
	if release == "" || strings.ContainsRune(release, '/') {
		return Kernel{}, fmt.Errorf("%q is not a kernel release", release)
	}
	dir := filepath.Join(s.Dir, "kernels", release)
	raw, err := os.ReadFile(filepath.Join(dir, "kernel.json"))
	if err != nil {
		return Kernel{}, err
	}
	var k Kernel
	if err := json.Unmarshal(raw, &k); err != nil {
		return Kernel{}, fmt.Errorf("reading %s: %w", filepath.Join(dir, "kernel.json"), err)
	}
	for _, m := range Modules {
		if !contains(k.Considered, m) {
			return Kernel{}, fmt.Errorf("kernel %s in the cache was unpacked without looking for module %s", release, m)
		}
	}
	k.dir = dir
	if _, err := os.Stat(k.Image()); err != nil {
		return Kernel{}, err
	}
	return k, nil
}

// replaceFile writes a file so that a reader sees the old or the new content, nothing between.
func replaceFile(path string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		if rerr := os.Remove(f.Name()); rerr != nil && !errors.Is(rerr, fs.ErrNotExist) {
			err = errors.Join(err, rerr)
		}
	}
	return err
}
