package cgroupfs

import (
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/memagent/memagent/memcg"
)

func probeMemory(p *prober) finding {
	const file = "cgroup.controllers"
	b, err := p.fs.readCgroupFile("/", file)
	where := p.fs.file("/", file)
	switch {
	case err != nil && len(p.cgroups) > 0:
		return yes("memory.current in " + p.cgroups[0].Path)
	case err != nil:
		return unknown(where, err)
	}
	for c := range strings.FieldsSeq(string(b)) {
		if c == "memory" {
			if len(p.cgroups) == 0 {
				return yes(where + " has memory, but it is enabled in no cgroup")
			}
			return yes(where + ": " + oneLine(b))
		}
	}
	return no(where + ": " + oneLine(b))
}

// probeReclaim opens memory.reclaim for writing and writes nothing: the file
// cannot be read, and whether it may be opened is the other half of the
// answer (case c35).
func probeReclaim(p *prober) finding {
	const file = "memory.reclaim"
	last := p.noCgroup()
	for _, id := range p.cgroups {
		where := p.fs.file(id.Path, file)
		err := p.fs.mayWriteCgroupFile(id.Path, file)
		switch {
		case err == nil:
			return yes(where + " opens for writing")
		case p.vanished(id):
			last = unknown(where, err)
		case errors.Is(err, memcg.ErrUnsupported):
			return no("no " + where)
		default:
			return unknown(where+" exists and may not be opened for writing", err)
		}
	}
	return last
}

func probeSwappiness(p *prober) finding { return p.tryReclaim("0 swappiness=60", 6, 11) }

func probeSwappinessMax(p *prober) finding { return p.tryReclaim("0 swappiness=max", 6, 16) }

// tryReclaim writes a request for zero bytes. Kernels that parse it have
// nothing to do and accept it; kernels that do not know its key, or its value,
// answer EINVAL before they do anything.
func (p *prober) tryReclaim(request string, major, minor int) finding {
	switch err := p.fs.Enforceable(); {
	case err != nil:
		return notAsked(err.Error() + "; " + p.expect(major, minor))
	case p.in == nil:
		return notAsked("no cgroup is matched by a policy, so there is none to write to; " + p.expect(major, minor))
	}
	where := fmt.Sprintf("%q to %s", request, p.fs.file(p.in.Path, "memory.reclaim"))
	err := p.fs.probeWrite(*p.in, "memory.reclaim", request)
	switch {
	case err == nil:
		return yes(where + " was accepted")
	case errors.Is(err, unix.EINVAL):
		return no(where + " was refused with EINVAL")
	}
	return unknown(where, err)
}

// probeWrite writes a request that does no work to a file of a matched cgroup.
func (fs *FS) probeWrite(id memcg.ID, name, payload string) error {
	t, err := fs.target(id)
	if err != nil {
		return err
	}
	defer t.close()
	fd, err := t.openWrite(name)
	if err != nil {
		return err
	}
	defer fs.k.close(fd)
	return t.write(fd, name, []byte(payload))
}

func probeHighNonblock(p *prober) finding {
	return notAsked("only a write that lowers a limit could tell; " + p.expect(6, 16))
}

func probeNumaStat(p *prober) finding {
	return p.inCgroup("memory.numa_stat", func(where string, b []byte) finding {
		return yes(where + ": " + oneLine(b))
	})
}

func probeNodeScan(p *prober) finding {
	return p.inCgroup("memory.numa_stat", func(where string, b []byte) finding {
		if hasKey(b, "pgscan_kswapd") && hasKey(b, "pgsteal_kswapd") {
			return yes(where + " has pgscan_kswapd and pgsteal_kswapd")
		}
		return no(where + " has no pgscan_kswapd and pgsteal_kswapd")
	})
}

func probeRefaultSplit(p *prober) finding {
	return p.inStat("workingset_refault_anon", "workingset_refault_file")
}

func probeProactiveSplit(p *prober) finding {
	return p.inStat("pgscan_proactive", "pgsteal_proactive")
}

// inStat looks for keys of memory.stat.
func (p *prober) inStat(keys ...string) finding {
	return p.inCgroup("memory.stat", func(where string, b []byte) finding {
		for _, key := range keys {
			if !hasKey(b, key) {
				return no(where + " has no " + key)
			}
		}
		return yes(where + " has " + strings.Join(keys, " and "))
	})
}

// probePressure passes over cgroups whose own accounting is switched off
// (cgroup.pressure holds 0): they say nothing about the kernel (case c24).
func probePressure(p *prober) finding {
	const file = "memory.pressure"
	last := p.noCgroup()
	for _, id := range p.cgroups {
		where := p.fs.file(id.Path, file)
		b, err := p.fs.readCgroupFile(id.Path, file)
		if err == nil {
			return yes(where + ": " + oneLine(b))
		}
		if p.vanished(id) {
			last = unknown(where, err)
			continue
		}
		if !errors.Is(err, memcg.ErrUnsupported) {
			return unknown(where, err)
		}
		on, swErr := p.fs.readCgroupFile(id.Path, "cgroup.pressure")
		if swErr == nil && oneLine(on) == "0" {
			last = unknown(p.fs.file(id.Path, "cgroup.pressure")+" holds 0", err)
			continue
		}
		if errors.Is(err, unix.EOPNOTSUPP) {
			return no(where + " cannot be read: pressure is compiled in and off")
		}
		return no("no " + where)
	}
	return last
}

func probeSwapLimits(p *prober) finding {
	return p.inCgroup("memory.swap.max", func(where string, b []byte) finding {
		return yes(where + ": " + oneLine(b))
	})
}

func probeCpuset(p *prober) finding {
	if p.fs.layout.CpusetOn == OnV1 {
		return no("cpuset is on cgroup v1")
	}
	// Any cgroup that has the file answers yes: cpuset may be delegated in one
	// branch only.
	for _, id := range p.tree {
		if found, _ := p.fs.cgroupFileExists(id.Path, "cpuset.mems"); found {
			return yes(p.fs.file(id.Path, "cpuset.mems"))
		}
	}
	if len(p.tree) == 0 {
		return p.noCgroup()
	}
	if p.treeErr != nil {
		return unknown("some cgroups could not be listed", p.treeErr)
	}
	return no(fmt.Sprintf("none of %d cgroups has cpuset.mems", len(p.tree)))
}
