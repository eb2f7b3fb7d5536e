package cgroupfs

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/memagent/memagent/memcg"
)

const (
	lruGenFile    = "sys/kernel/debug/lru_gen"
	lruGenEnabled = "sys/kernel/mm/lru_gen/enabled"
	lockdownFile  = "sys/kernel/security/lockdown"
	damonAdmin    = "sys/kernel/mm/damon/admin/kdamonds"
)

// lruGenPrefix is how much of the lru_gen listing is read to compare ids, in
// bytes: a node's block is about 200 bytes, so it holds some cgroups even with
// a hundred nodes, and the kernel walks the whole list anew for each read.
const lruGenPrefix = 64 << 10

// lruGenSamples is how many cgroups of the listing are compared. One equal
// pair could be chance on kernels with small private ids; this many cannot.
const lruGenSamples = 8

// probeLRUGen answers yes when lru_gen is there, switched on and readable. The
// file exists on kernels where it is switched off, and does nothing there.
func probeLRUGen(p *prober) finding {
	return p.onHost(lruGenEnabled, func(where string, b []byte) finding {
		bits, err := parseLRUGenBits(b)
		if err != nil {
			return unknown(where, fmt.Errorf("%s: %w", where, err))
		}
		seen := fmt.Sprintf("%s: %#04x", where, bits)
		if bits&1 == 0 {
			return no(seen + ", switched off")
		}
		list := p.at(lruGenFile)
		if mode := p.lockdown(); mode != "" && mode != "none" {
			return no(fmt.Sprintf("%s, but %s: %s, which forbids %s", seen, p.at(lockdownFile), mode, list))
		}
		_, err = p.fs.readHostPrefix(lruGenFile, 1)
		switch {
		case errors.Is(err, memcg.ErrUnsupported):
			return no(seen + ", but no " + list + ": is debugfs mounted?")
		case err != nil:
			return unknown(seen+", but not "+list, err)
		}
		return yes(seen + ", " + list + " is readable")
	})
}

// parseLRUGenBits reads the enabled file: "0x0007".
func parseLRUGenBits(b []byte) (uint64, error) {
	bits, err := strconv.ParseUint(oneLine(b), 0, 16)
	if err != nil {
		return 0, fmt.Errorf("%q is not a set of bits: %w", oneLine(b), memcg.ErrInvalid)
	}
	return bits, nil
}

// lockdown returns the mode in force: none, integrity or confidentiality; ""
// where it cannot be told. The file lists all and brackets the one in force.
func (p *prober) lockdown() string {
	b, err := p.fs.readHostFile(lockdownFile)
	if err != nil {
		return ""
	}
	_, rest, _ := strings.Cut(string(b), "[")
	mode, _, ok := strings.Cut(rest, "]")
	if !ok {
		return ""
	}
	return mode
}

// probeLRUGenInode compares ids in the listing with inodes of the cgroup
// directories: from 7.0 on they are the same number, before it ids are private
// and recycled. The root is left out: it is 1 in both schemes.
func probeLRUGenInode(p *prober) finding {
	where := p.at(lruGenFile)
	b, err := p.fs.readHostPrefix(lruGenFile, lruGenPrefix)
	switch {
	case errors.Is(err, memcg.ErrUnsupported):
		return no("no " + where)
	case err != nil:
		return unknown(where, err)
	}
	compared := 0
	for line := range bytes.Lines(b) {
		if compared == lruGenSamples {
			break
		}
		id, cg, ok := parseLRUGenCgroup(line)
		if !ok || cg == "/" {
			continue
		}
		there, err := p.fs.Lookup(cg)
		if err != nil {
			continue // removed cgroups stay listed under their old path
		}
		if there.Inode != id {
			return no(fmt.Sprintf("%s lists %s as %d, its directory is %d", where, cg, id, there.Inode))
		}
		compared++
	}
	if compared == 0 {
		return unknown(where, fmt.Errorf("%s lists no cgroup that is seen here: %w", where, errNoCgroup))
	}
	return yes(fmt.Sprintf("%d ids in %s are those of the directories", compared, where))
}

// parseLRUGenCgroup reads one "memcg <id> <path>" line of lru_gen; ok is false
// for the lines of nodes and generations between them. A path may hold blanks:
// it is the rest of the line. A line cut short by the end of the buffer is not
// ok either.
func parseLRUGenCgroup(line []byte) (id uint64, cg string, ok bool) {
	whole, found := bytes.CutSuffix(line, []byte("\n"))
	if !found {
		return 0, "", false
	}
	id, name, ok := cutLRUGenCgroup(whole)
	return id, string(name), ok && len(name) > 0 && name[0] == '/'
}

// probeDAMON answers from what is already there: which operations a monitor
// may use is shown only inside one, and making one would be a write.
func probeDAMON(p *prober) finding {
	return p.onHost(damonAdmin+"/nr_kdamonds", func(where string, b []byte) finding {
		seen := where + ": " + oneLine(b)
		if b, err := p.fs.readHostFile("sys/module/damon_stat/parameters/enabled"); err == nil && isOn(b) {
			seen += "; damon_stat is running, and no other monitor can be started until it is disabled"
		}
		const ops = damonAdmin + "/0/contexts/0/avail_operations"
		if b, err := p.fs.readHostFile(ops); err == nil {
			all := strings.Fields(string(b))
			if slices.Contains(all, "paddr") {
				return yes(seen + "; " + p.at(ops) + " has paddr")
			}
			return no(seen + "; " + p.at(ops) + ": " + strings.Join(all, " "))
		}
		// These modules are built on paddr and cannot be there without it.
		for _, module := range []string{"sys/module/damon_stat", "sys/module/damon_reclaim", "sys/module/damon_lru_sort"} {
			if found, _ := p.fs.hostFileExists(module); found {
				return yes(seen + "; " + p.at(module) + " needs paddr")
			}
		}
		return notAsked(seen + "; whether it monitors physical addresses is shown only once a monitor is made")
	})
}
