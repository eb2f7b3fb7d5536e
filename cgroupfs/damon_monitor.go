package cgroupfs

import (
	"errors"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/memagent/memagent/memcg"
)

// Files of DAMON's sysfs interface, below damonAdmin
// (Documentation/admin-guide/mm/damon/usage.rst).
const (
	damonCount   = damonAdmin + "/nr_kdamonds"
	damonState   = damonAdmin + "/0/state"
	damonContext = damonAdmin + "/0/contexts/0/"
	damonRegion  = damonContext + "targets/0/regions/0/"
)

// Intervals of a monitor, in microseconds. A scheme is applied at the end of
// each. It is one sample long, since several drift: each is as late as timers
// and a busy machine make it. The odd figure is how a monitor is known for one
// of memagent's that was left running: see EndMonitor.
const (
	damonInterval = 40_009
	damonUpdate   = 60_000_000 // physical memory is not looked for anew
)

// damonRest is how long a monitor that is left running waits, in
// milliseconds, after it has tried as much as one window has: an agent that is
// killed while one runs leaves no more behind than that. Kernels up to 6.12 do
// not heed it in the first five minutes after boot, nor any longer time for as
// long as it is: a charge window opens only once jiffies, which start five
// minutes before their overflow, have passed it (damos_adjust_quota in
// mm/damon/core.c).
const damonRest = 60_000

// others are users of DAMON beside its sysfs files. From 7.0 on the kernel
// runs one at a time.
var others = []string{"damon_stat", "damon_reclaim", "damon_lru_sort"}

// damonFree returns nil where DAMON is there and used by nobody, and else why
// nothing may be done to it. It writes nothing.
func (fs *FS) damonFree() error {
	b, err := fs.readHostFile(damonCount)
	if err != nil {
		var e *opError
		if errors.As(err, &e) && e.Kind == memcg.ErrUnsupported {
			e.Hint = "it needs a kernel built with CONFIG_DAMON_PADDR and CONFIG_DAMON_SYSFS"
		}
		return err
	}
	busy := func(file, hint string) error {
		return &opError{Op: "use", File: path.Join(fs.root, file), Kind: memcg.ErrDenied, Hint: hint}
	}
	if n := oneLine(b); n != "0" {
		return busy(damonCount, "DAMON is in use by somebody else: there are monitors already ("+n+")")
	}
	for _, name := range others {
		file := "sys/module/" + name + "/parameters/enabled"
		if b, err := fs.readHostFile(file); err == nil && isOn(b) {
			return busy(file, "DAMON is in use by "+name+"; write N to it if that is not needed")
		}
	}
	return nil
}

// scheme is what is paged out: memory of one cgroup, without those below it.
type scheme struct{ cgroup memcg.ID }

// kinds says which memory a monitor may page out.
type kinds uint8

const (
	bothKinds kinds = iota
	fileAlone
	anonAlone
)

// daemon is a monitor that was set up, running or not.
type daemon struct {
	fs     *FS
	writes *int
	on     bool
	quota  uint64 // of each scheme, bytes
}

// put writes one file.
func (d *daemon) put(file, value string) error {
	fd, err := d.fs.k.open(d.fs.rootDir, file, unix.O_WRONLY, inRoot)
	if err != nil {
		return d.fs.hostFileError("open", file, err)
	}
	defer d.fs.k.close(fd)
	*d.writes++
	d.fs.writes.Add(1)
	if _, err := d.fs.k.write(fd, []byte(value)); err != nil {
		e := d.fs.hostFileError("write", file, err)
		e.Hint = strconv.Quote(value)
		return e
	}
	return nil
}

func (d *daemon) puts(pairs ...string) error {
	for i := 0; i+1 < len(pairs); i += 2 {
		if err := d.put(pairs[i], pairs[i+1]); err != nil {
			return err
		}
	}
	return nil
}

// setUp makes one monitor of physical memory with a scheme for each cgroup, and
// leaves it off. The caller takes it down, also after an error.
func (d *daemon) setUp(schemes []scheme, of kinds) error {
	const attrs = damonContext + "monitoring_attrs/"
	err := d.puts(
		damonCount, "1",
		damonAdmin+"/0/contexts/nr_contexts", "1",
		damonContext+"operations", "paddr",
		attrs+"intervals/sample_us", strconv.Itoa(damonInterval),
		attrs+"intervals/aggr_us", strconv.Itoa(damonInterval),
		attrs+"intervals/update_us", strconv.Itoa(damonUpdate),
		attrs+"nr_regions/min", "3", // the least that is taken
		attrs+"nr_regions/max", "10",
		damonContext+"targets/nr_targets", "1",
		damonContext+"targets/0/regions/nr_regions", "1",
		damonContext+"schemes/nr_schemes", strconv.Itoa(len(schemes)))
	for i := 0; i < len(schemes) && err == nil; i++ {
		err = d.setUpScheme(i, schemes[i], of)
	}
	return err
}

// setUpScheme fills in one scheme: page out, whatever the size of a region and
// however it was accessed, but only pages of the cgroup and of some kinds.
// Pages that were used since they were last looked at are left out by DAMON
// itself.
func (d *daemon) setUpScheme(i int, s scheme, of kinds) error {
	const most64, most32 = "18446744073709551615", "4294967295"
	dir := damonContext + "schemes/" + strconv.Itoa(i) + "/"
	// From 6.15 on there is a folder of its own for what only the operations can
	// tell of a page, and filters also say whether they allow.
	filters, allow := dir+"filters/", false
	if found, err := d.fs.hostFileExists(dir + "ops_filters"); err != nil {
		return err
	} else if found {
		filters = dir + "ops_filters/"
	}
	count := 1
	if of != bothKinds {
		count = 2
	}
	err := d.puts(
		dir+"action", "pageout",
		dir+"access_pattern/sz/min", "0", dir+"access_pattern/sz/max", most64,
		dir+"access_pattern/nr_accesses/min", "0", dir+"access_pattern/nr_accesses/max", most32,
		dir+"access_pattern/age/min", "0", dir+"access_pattern/age/max", most32,
		dir+"quotas/ms", "0",
		dir+"quotas/reset_interval_ms", strconv.Itoa(damonRest),
		filters+"nr_filters", strconv.Itoa(count))
	if err != nil {
		return err
	}
	if allow, err = d.fs.hostFileExists(filters + "0/allow"); err != nil {
		return err
	}
	// A page is left out where it matches as matching says: "N" leaves out
	// what is not the cgroup's.
	fill := func(n int, kind, matching string) error {
		f := filters + strconv.Itoa(n) + "/"
		err := d.puts(f+"type", kind, f+"matching", matching)
		if err == nil && allow {
			err = d.put(f+"allow", "N")
		}
		return err
	}
	if err := fill(0, "memcg", "N"); err != nil {
		return err
	}
	if err := d.put(filters+"0/memcg_path", s.cgroup.Path); err != nil {
		return err
	}
	switch of {
	case fileAlone:
		err = fill(1, "anon", "Y")
	case anonAlone:
		err = fill(1, "anon", "N")
	}
	if err != nil {
		return err
	}
	// A filter that is not what it was made to be would page out everybody.
	return d.verify(filters+"0/", s)
}

// verify reads back the filter that spares all other cgroups.
func (d *daemon) verify(filter string, s scheme) error {
	for _, want := range [][2]string{{"type", "memcg"}, {"matching", "N"}, {"memcg_path", s.cgroup.Path}} {
		b, err := d.fs.readHostFile(filter + want[0])
		if err != nil {
			return err
		}
		if got := strings.TrimSuffix(string(b), "\n"); got != want[1] {
			return &opError{Op: "read", File: path.Join(d.fs.root, filter+want[0]), Kind: memcg.ErrInvalid,
				Hint: "it says " + strconv.Quote(got) + " where " + strconv.Quote(want[1]) + " was written"}
		}
	}
	return nil
}

// start starts the monitor on one range.
func (d *daemon) start(w span, schemes int) error {
	err := d.puts(damonRegion+"start", strconv.FormatUint(w.start, 10), damonRegion+"end", strconv.FormatUint(w.end, 10))
	size := w.end - w.start
	for i := 0; i < schemes && err == nil && size != d.quota; i++ {
		err = d.put(damonContext+"schemes/"+strconv.Itoa(i)+"/quotas/bytes", strconv.FormatUint(size, 10))
	}
	if err != nil {
		return err
	}
	d.quota = size
	if err = d.put(damonState, "on"); err == nil {
		d.on = true
	}
	return err
}

// stop stops the monitor, once it has gone through what it is at. One that
// ended by itself is no error.
func (d *daemon) stop() error {
	if !d.on {
		return nil
	}
	err := d.put(damonState, "off")
	if errno := errnoOf(err); errno == unix.EPERM || errno == unix.EINVAL {
		err = nil
	}
	d.on = err != nil
	return err
}

// takeDown stops the monitor and removes it: none was there before.
func (d *daemon) takeDown() error {
	return errors.Join(d.stop(), d.put(damonCount, "0"))
}

// EndMonitor stops and removes a DAMON monitor that an agent left running that
// was killed while it carried out a request; found says whether there was one.
// It is known by its intervals, which nobody else has reason to choose. Every
// other monitor is left alone. It must not be called while another agent runs
// on the host.
func (fs *FS) EndMonitor() (found bool, err error) {
	if err := fs.Enforceable(); err != nil {
		return false, err
	}
	const intervals = damonContext + "monitoring_attrs/intervals/"
	for _, want := range [][2]string{{damonCount, "1"}, {intervals + "sample_us", strconv.Itoa(damonInterval)}, {intervals + "aggr_us", strconv.Itoa(damonInterval)}} {
		b, err := fs.readHostFile(want[0])
		if errors.Is(err, memcg.ErrUnsupported) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		if oneLine(b) != want[1] {
			return false, nil
		}
	}
	d := daemon{fs: fs, writes: new(int), on: true}
	return true, d.takeDown()
}
