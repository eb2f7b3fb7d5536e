package units

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/memagent/memagent/journal"
	"github.com/memagent/memagent/memcg"
)

const page = 4096

// fakeHost is a systemd with its units and their cgroups: setting a property writes
// a drop-in and the file, and a reload writes what the drop-ins, or else the unit's
// own file, say.
type fakeHost struct {
	t     *testing.T
	root  string
	units map[string]*fakeUnit
	files map[string]string // "cgroup knob"
	off   error             // systemd does not answer
	deny  error             // it lets nobody set anything
	calls []string
}

type fakeUnit struct {
	cgroup    string
	transient bool
	config    map[memcg.Knob]string // what its file says, or /etc
	loaded    map[memcg.Knob]string
}

func newFakeHost(t *testing.T) *fakeHost {
	h := &fakeHost{t: t, root: t.TempDir(), units: map[string]*fakeUnit{}, files: map[string]string{}}
	if err := os.MkdirAll(filepath.Join(h.root, "run/systemd"), 0o755); err != nil {
		t.Fatal(err)
	}
	return h
}

// unit makes a unit that runs in a cgroup.
func (h *fakeHost) unit(cgroup, high string) memcg.ID {
	u := &fakeUnit{cgroup: cgroup, config: map[memcg.Knob]string{memcg.KnobHigh: high, memcg.KnobSwapMax: "max", memcg.KnobMems: ""}}
	u.loaded = maps.Clone(u.config)
	h.units[filepath.Base(cgroup)] = u
	for k, v := range u.config {
		h.files[cgroup+" "+string(k)] = v
	}
	return memcg.ID{Path: cgroup, Inode: uint64(len(h.units))}
}

// cgroup makes one that is no unit.
func (h *fakeHost) cgroup(path, high string) memcg.ID {
	h.files[path+" memory.high"] = high
	return memcg.ID{Path: path, Inode: 1000}
}

func (h *fakeHost) dropIn(name string, k memcg.Knob) string {
	dir := "system.control"
	if u := h.units[name]; u != nil && u.transient {
		dir = "transient"
	}
	return filepath.Join(h.root, "run/systemd", dir, name+".d", "50-"+properties[k]+".conf")
}

// reload is systemctl daemon-reload.
func (h *fakeHost) reload() {
	for name, u := range h.units {
		for _, k := range []memcg.Knob{memcg.KnobHigh, memcg.KnobSwapMax, memcg.KnobMems} {
			u.loaded[k] = u.config[k]
			if b, err := os.ReadFile(h.dropIn(name, k)); err == nil {
				u.loaded[k] = said(string(b), properties[k], k)
			}
			h.files[u.cgroup+" "+string(k)] = u.loaded[k]
		}
	}
}

func (h *fakeHost) Property(_ context.Context, name, kind, property string) (any, error) {
	u := h.units[name]
	switch {
	case h.off != nil:
		return nil, h.off
	case u == nil || kinds[filepath.Ext(name)] != kind:
		return nil, fmt.Errorf("%s of %s: %w", property, name, ErrNoUnit)
	case property == "ControlGroup":
		return u.cgroup, nil
	}
	for k, p := range properties {
		if p == property {
			return toProperty(k, u.loaded[k])
		}
	}
	return nil, fmt.Errorf("%s of %s: %w", property, name, ErrNoUnit)
}

func (h *fakeHost) SetProperty(_ context.Context, name, property string, value any) error {
	h.calls = append(h.calls, name+" "+property)
	u := h.units[name]
	switch {
	case h.off != nil:
		return h.off
	case h.deny != nil:
		return h.deny
	case u == nil:
		return ErrNoUnit
	}
	for k, p := range properties {
		if p != property {
			continue
		}
		text, err := fromProperty(k, value)
		if err != nil {
			return err
		}
		u.loaded[k], h.files[u.cgroup+" "+string(k)] = text, inPages(text)
		h.write(h.dropIn(name, k), p, strings.ReplaceAll(text, "max", "infinity"))
	}
	return nil
}

func (h *fakeHost) write(file, property, value string) {
	h.t.Helper()
	text := "# written by systemctl set-property\n[Service]\n" + property + "=" + value + "\n"
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		h.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		h.t.Fatal(err)
	}
}

// inPages is a limit as the kernel has it.
func inPages(limit string) string {
	n, err := strconv.ParseUint(limit, 10, 64)
	if err != nil {
		return limit
	}
	return fmt.Sprint(n - n%page)
}

func (h *fakeHost) ReadKnob(id memcg.ID, k memcg.Knob) (string, error) {
	v, ok := h.files[id.Path+" "+string(k)]
	if !ok {
		return "", fmt.Errorf("%s of %s: %w", k, id.Path, memcg.ErrGone)
	}
	return v, nil
}

func (h *fakeHost) WriteKnob(_ context.Context, id memcg.ID, k memcg.Knob, value string) error {
	h.calls = append(h.calls, "file "+id.Path)
	h.files[id.Path+" "+string(k)] = inPages(value)
	return nil
}

func (h *fakeHost) EffectiveMems(memcg.ID) (own, parent memcg.NodeMask, err error) {
	return memcg.NodesOf(0, 1), memcg.NodesOf(0, 1), nil
}

// keeper is a new agent's.
func (h *fakeHost) keeper(dir string, on bool) (*journal.Keeper, func()) {
	h.t.Helper()
	s, err := journal.Open(dir)
	if err != nil {
		h.t.Fatal(err)
	}
	k, err := journal.NewKeeper(s, New(h, h, Options{Root: h.root, On: on, PageSize: page}), journal.Options{Boot: "boot", PageSize: page})
	if err != nil {
		h.t.Fatal(err)
	}
	return k, s.Close
}

// left are the files below /run/systemd.
func (h *fakeHost) left() []string {
	var all []string
	_ = filepath.WalkDir(filepath.Join(h.root, "run/systemd"), func(p string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			all = append(all, filepath.Base(filepath.Dir(p))+"/"+d.Name())
		}
		return err
	})
	slices.Sort(all)
	return all
}
