package scenario

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/memagent/memagent/lab/counters"
	"github.com/memagent/memagent/lab/guest"
	"github.com/memagent/memagent/lab/workload"
)

// crowd is all cgroups of the churn scenario. Each has a slot, a name that one cgroup after the other
// has. The one that goes is not made again at once but with the next that goes, so that for a moment
// its name is nobody's.
type crowd struct {
	idle, working slots
	agent         bool // whether there is one that may lend
	replaced      int
	lentTo        int // incarnations that had more than their own at some time
	dying         int // the most that were gone and still charged
	strange       []string
	own           ownCost
}

// slots are names whose cgroups are replaced in turn.
type slots struct {
	all  []*slot
	next int
	gone *slot // the one that is to be made again
}

// slot is one name, and the cgroup that has it now.
type slot struct {
	guest.Cgroup
	kind     string // "idle", "tight" or "lent"
	settings map[string]string
	high     uint64 // memory.high as the operator set it
	before   uint64 // that of the one before; 0 for none
	lent     bool
	holds    bool // without a process, but with memory
	turn     int
	proc     *guest.Proc
}

// settingsOf are the files whose values somebody sets, and an agent may change.
var settingsOf = []string{"memory.min", "memory.low", "memory.high", "memory.max", "memory.swap.max", "memory.swap.high", "memory.oom.group", "cpuset.mems"}

func newCrowd(g *guest.Guest) (*crowd, error) {
	room, err := guest.NewCgroup(churnRoom)
	if err != nil {
		return nil, err
	}
	if err := room.Set("cgroup.subtree_control", "+memory +cpuset"); err != nil {
		return nil, err
	}
	c := &crowd{agent: g.Spec.Agent == "on"}
	add := func(to *slots, kind string, n int) {
		for i := range n {
			to.all = append(to.all, &slot{Cgroup: guest.Cgroup{Path: churnRoom + "/" + slotName(kind, i)}, kind: kind, holds: i%churnHolds == 0})
		}
	}
	add(&c.working, "lent", churnLent)
	add(&c.working, "tight", churnTight)
	add(&c.idle, "idle", churnIdle)
	// Both kinds with a process take turns.
	rand.Shuffle(len(c.working.all), func(i, j int) { c.working.all[i], c.working.all[j] = c.working.all[j], c.working.all[i] })
	for _, list := range []slots{c.working, c.idle} {
		for _, s := range list.all {
			if err := s.make(); err != nil {
				c.end()
				return nil, err
			}
		}
	}
	return c, nil
}

// first is a cgroup by which the agent's first looks are known.
func (c *crowd) first() guest.Cgroup { return c.working.all[0].Cgroup }

func (c *crowd) end() {
	for _, s := range c.working.all {
		s.stop()
	}
}

// round replaces one cgroup with a process, or some without.
func (c *crowd) round(working bool) error {
	if working {
		return c.replace(true)
	}
	for range churnRound {
		if err := c.replace(false); err != nil {
			return err
		}
	}
	return nil
}

// replace removes the oldest cgroup and makes the one again that went before it.
func (c *crowd) replace(working bool) error {
	list := &c.idle
	if working {
		list = &c.working
	}
	goes := list.all[list.next%len(list.all)]
	list.next++
	if err := c.look(goes); err != nil {
		return err
	}
	if err := goes.remove(); err != nil {
		return err
	}
	c.replaced++
	if gone := list.gone; gone != nil {
		if err := gone.make(); err != nil {
			return err
		}
	}
	list.gone = goes
	text, err := guest.Cgroup{Path: churnRoom}.Get("cgroup.stat")
	c.dying = max(c.dying, int(counters.ParseFlat(text)["nr_dying_descendants"]))
	if err != nil || !working {
		return err
	}
	for _, s := range c.working.all {
		if s != list.gone {
			if err := c.look(s); err != nil {
				return err
			}
		}
	}
	return nil
}

// look compares memory.high with what it may be: what the operator of this very cgroup set, and more
// where it is lent to.
func (c *crowd) look(s *slot) error {
	high, err := limit(s.Cgroup, "memory.high")
	if err != nil {
		return err
	}
	if why := s.strange(high); why != "" {
		c.strange = append(c.strange, why)
	}
	if s.kind == "lent" && high > s.high && !s.lent {
		s.lent = true
		c.lentTo++
	}
	return nil
}

// strange says what is wrong with a value of memory.high; "" for nothing.
func (s *slot) strange(high uint64) string {
	switch {
	case high == s.high:
		return ""
	case s.kind != "lent":
		return fmt.Sprintf("memory.high of %s is %d, which nobody may change; its operator set %d", s.Path, high, s.high)
	case high < s.high:
		return fmt.Sprintf("memory.high of %s is %d, below the %d that its operator set", s.Path, high, s.high)
	case high == s.before:
		return fmt.Sprintf("memory.high of %s is %d, as the cgroup had it that had the name before; its operator set %d", s.Path, high, s.high)
	}
	return ""
}

// wrong are the settings that are not as they were when each living cgroup was made.
func (c *crowd) wrong() (out []string) {
	for _, list := range []slots{c.working, c.idle} {
		for _, s := range list.all {
			if s == list.gone {
				continue
			}
			now := s.read()
			for _, file := range settingsOf {
				if now[file] != s.settings[file] {
					out = append(out, fmt.Sprintf("at the end %s of %s is %q, it was %q", file, s.Path, now[file], s.settings[file]))
				}
			}
		}
	}
	return out
}

func (c *crowd) facts() map[string]float64 {
	f := map[string]float64{"replaced": float64(c.replaced), "dying_most": float64(c.dying)}
	if c.agent {
		f["lent_to"] = float64(c.lentTo)
		f["memory_growth_mib"], f["open_growth"] = c.own.growth()
		f["own_memory_mib"], f["own_files"] = c.own.last()
	}
	return f
}

// make makes the cgroup, with limits that no other has had but by chance.
func (s *slot) make() error {
	if err := os.Mkdir(s.Dir(), 0o755); err != nil {
		return fmt.Errorf("making cgroup %s: %w", s.Path, err)
	}
	page := uint64(os.Getpagesize())
	extra := rand.Uint64N(512) * page
	s.before, s.high, s.lent = s.high, 1<<64-1, false
	switch s.kind {
	case "lent":
		s.high = churnHigh + extra
		if err := s.Set("memory.high", fmt.Sprint(s.high)); err != nil {
			return err
		}
	case "tight":
		if err := s.Set("memory.max", fmt.Sprint(churnMax+extra)); err != nil {
			return err
		}
	}
	s.settings = s.read()
	if s.kind == "idle" {
		if !s.holds {
			return nil
		}
		// The one before keeps what it was charged for until the one after this.
		s.turn++
		return s.hold(filepath.Join("/tmp", fmt.Sprintf("%s-%d", filepath.Base(s.Path), s.turn%2)))
	}
	path := filepath.Join(guest.DataDir, filepath.Base(s.Path))
	if err := forget(path); err != nil { // it is the dead one's until it is read again
		return err
	}
	var err error
	s.proc, err = s.Start("file", "--path", path, "--loops", "0", "--every", "1s")
	return err
}

func (s *slot) read() map[string]string {
	out := map[string]string{}
	for _, file := range settingsOf {
		if text, err := s.Get(file); err == nil { // else the kernel has no such file
			out[file] = text
		}
	}
	return out
}

// hold has this process write a file in memory while it is in the cgroup, which is charged for it.
// Nobody is in the cgroup afterwards.
func (s *slot) hold(path string) error {
	if err := s.Set("cgroup.procs", "0"); err != nil {
		return err
	}
	err := os.WriteFile(path, make([]byte, churnHeld), 0o600)
	return errors.Join(err, guest.Write(filepath.Join(guest.CgroupRoot, "cgroup.procs"), "0"))
}

func (s *slot) stop() {
	if s.proc != nil {
		s.proc.Stop()
		s.proc = nil
	}
}

// remove removes the cgroup, with what is charged to it.
func (s *slot) remove() error {
	s.stop()
	return workload.RemoveCgroup(s.Dir(), 5*time.Second)
}

// forget drops what is cached of a file.
func forget(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED); err != nil {
		return fmt.Errorf("dropping what is cached of %s: %w", path, err)
	}
	return nil
}
