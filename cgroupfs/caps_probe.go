package cgroupfs

import (
	"bytes"
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"

	"github.com/memagent/memagent/memcg"
)

// probeCgroups bounds how many cgroups a probe looks at: one that has the
// memory controller answers for nearly everything, a few more bridge those
// that vanish meanwhile and those whose pressure accounting is switched off.
const probeCgroups = 16

// errNoCgroup: there is nothing to look for cgroup features on.
var errNoCgroup = fmt.Errorf("no cgroup other than the root has the memory controller enabled: "+
	"enable memory in cgroup.subtree_control of the root: %w", memcg.ErrUnsupported)

// prober carries what the probes of one run share.
type prober struct {
	fs      *FS
	in      *memcg.ID  // a matched cgroup that harmless writes may go to, or nil
	cgroups []memcg.ID // non-root cgroups with the memory controller, in first
	tree    []memcg.ID // all non-root cgroups
	treeErr error
}

func newProber(fs *FS, in *memcg.ID) *prober {
	p := &prober{fs: fs, in: in}
	if in != nil {
		p.cgroups = append(p.cgroups, *in)
	}
	p.tree, p.treeErr = fs.Cgroups(nil)
	for _, id := range p.tree {
		if len(p.cgroups) == probeCgroups {
			break
		}
		if in != nil && id == *in {
			continue
		}
		// Every non-root cgroup with the memory controller has it, on every
		// kernel; the root has it on none.
		if found, _ := fs.cgroupFileExists(id.Path, "memory.current"); found {
			p.cgroups = append(p.cgroups, id)
		}
	}
	return p
}

// noCgroup is the answer of a cgroup probe where there is no cgroup to look at.
func (p *prober) noCgroup() finding {
	return unknown("", errors.Join(errNoCgroup, p.treeErr))
}

// inCgroup looks for one file of a cgroup and hands its content to judge.
// Cgroups that vanish meanwhile are passed over; a cgroup without the file
// answers no.
func (p *prober) inCgroup(file string, judge func(where string, b []byte) finding) finding {
	last := p.noCgroup()
	for _, id := range p.cgroups {
		where := p.fs.file(id.Path, file)
		b, err := p.fs.readCgroupFile(id.Path, file)
		switch {
		case err == nil:
			return judge(where, b)
		case p.vanished(id):
			last = unknown(where, err)
		case errors.Is(err, memcg.ErrUnsupported):
			return no("no " + where)
		default:
			return unknown(where, err)
		}
	}
	return last
}

// vanished reports whether a cgroup is no longer there, which makes a missing
// file of it say nothing about the kernel.
func (p *prober) vanished(id memcg.ID) bool {
	return !p.fs.lives(id)
}

// onHost hands the content of a file below the host's root to judge. A host
// without the file answers no.
func (p *prober) onHost(file string, judge func(where string, b []byte) finding) finding {
	b, err := p.fs.readHostFile(file)
	where := p.at(file)
	switch {
	case err == nil:
		return judge(where, b)
	case errors.Is(err, memcg.ErrUnsupported):
		return no("no " + where)
	}
	return unknown(where, err)
}

// at names a file below the host's root as the operator finds it.
func (p *prober) at(file string) string { return path.Join(p.fs.root, file) }

// hasKey reports whether a file of "key value..." lines has a key.
func hasKey(b []byte, key string) bool {
	for line := range bytes.Lines(b) {
		k, _, ok := bytes.Cut(line, []byte{' '})
		if ok && string(k) == key {
			return true
		}
	}
	return false
}

// oneLine returns a short file's content for a message.
func oneLine(b []byte) string {
	s := strings.TrimSpace(string(b))
	if first, _, more := strings.Cut(s, "\n"); more {
		s = first + " ..."
	}
	if s == "" {
		return "(empty)"
	}
	return s
}

// expect says what is to be expected of the running kernel's release where
// asking would need a write. It is a guess and says so: distributions backport.
func (p *prober) expect(major, minor int) string {
	const file = "proc/sys/kernel/osrelease"
	b, err := p.fs.readHostFile(file)
	if err != nil {
		return "the kernel's release is not known either"
	}
	release := oneLine(b)
	gotMajor, gotMinor, ok := parseRelease(release)
	switch {
	case !ok:
		return fmt.Sprintf("release %q says nothing about it", release)
	case gotMajor > major || gotMajor == major && gotMinor >= minor:
		return fmt.Sprintf("expected to work, not tried: release %s, mainline has it since %d.%d", release, major, minor)
	}
	return fmt.Sprintf("expected to be missing, not tried: release %s, mainline has it since %d.%d", release, major, minor)
}

// parseRelease returns the first two numbers of a kernel release such as
// "6.12.117+deb12-cloud-amd64".
func parseRelease(s string) (major, minor int, ok bool) {
	first, rest, ok := strings.Cut(s, ".")
	if !ok {
		return 0, 0, false
	}
	if end := strings.IndexFunc(rest, func(r rune) bool { return r < '0' || r > '9' }); end >= 0 {
		rest = rest[:end]
	}
	major, err := strconv.Atoi(first)
	if err != nil || major < 0 {
		return 0, 0, false
	}
	minor, err = strconv.Atoi(rest)
	return major, minor, err == nil
}
