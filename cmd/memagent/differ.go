package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"

	"github.com/memagent/memagent/controller"
	"github.com/memagent/memagent/recording"
	"github.com/memagent/memagent/telemetry"
)

// differ plays a recording by two configs side by side, and prints where they
// decide otherwise.
type differ struct {
	out        io.Writer
	was, would controller.Player
	sums       map[string]*[2]asked // by path of the cgroup
	differ     uint64
}

// asked is what one config asked for of a cgroup.
type asked struct {
	policy    string
	decisions uint64
	requests  uint64 // handed to the kernel, or as if
	wanted    uint64 // requests that were held, in observe mode for one
	bytes     uint64 // of both
}

// batch keeps the records of one event.
type batch []telemetry.Record

// Record keeps r until the event is compared. What it points to is only read
// before the next one.
func (b *batch) Record(r *telemetry.Record) { *b = append(*b, *r) }

func (d *differ) play(r *recording.Reader) error {
	var was, would batch
	d.was.Sink, d.would.Sink = &was, &would
	d.sums = map[string]*[2]asked{}
	var e recording.Event
	for {
		if err := r.Next(&e); isEnd(err) {
			return nil
		} else if err != nil {
			return err
		}
		was, would = was[:0], would[:0]
		if err := d.was.Feed(r, &e); err != nil {
			return err
		}
		if err := d.would.Feed(r, &e); err != nil {
			return err
		}
		d.compare(was, would)
	}
}

// compare prints what the two decided on one event, where it differs.
func (d *differ) compare(was, would batch) {
	for i := range was {
		d.add(0, &was[i])
		j := slices.IndexFunc(would, func(r telemetry.Record) bool { return r.Cgroup == was[i].Cgroup })
		if j < 0 {
			d.print(&was[i], &was[i], nil)
		} else {
			d.print(&was[i], &was[i], &would[j])
		}
	}
	for j := range would {
		d.add(1, &would[j])
		if !slices.ContainsFunc(was, func(r telemetry.Record) bool { return r.Cgroup == would[j].Cgroup }) {
			d.print(&would[j], nil, &would[j])
		}
	}
}

func (d *differ) add(side int, r *telemetry.Record) {
	if r.Err != nil {
		return
	}
	if d.sums[r.Cgroup.Path] == nil {
		d.sums[r.Cgroup.Path] = &[2]asked{}
	}
	s := &d.sums[r.Cgroup.Path][side]
	s.policy = r.Policy
	s.decisions++
	switch {
	case r.Want == 0:
		return
	case r.Acted:
		s.requests++
	default:
		s.wanted++
	}
	s.bytes += r.Want
}

func (d *differ) print(at, was, would *telemetry.Record) {
	a, b := says(was), says(would)
	if a == b {
		return
	}
	d.differ++
	fmt.Fprintf(d.out, "%s %s\n", at.Time.Format("15:04:05"), telemetry.Name(at.Cgroup.Path))
	if a != "" {
		fmt.Fprintf(d.out, "- %s\n", a)
	}
	if b != "" {
		fmt.Fprintf(d.out, "+ %s\n", b)
	}
}

// says puts what a decision asks for in words, "" where it asks for nothing:
// outcomes and what was seen are not what is compared.
func says(r *telemetry.Record) string {
	if r == nil || r.Err != nil || r.Want == 0 {
		return ""
	}
	one := *r
	one.Done, one.Settings = nil, nil
	return one.Describe()
}

// table prints what both configs asked for.
func (d *differ) table() error {
	if d.differ == 0 {
		fmt.Fprintln(d.out, "no decision differs")
	} else {
		fmt.Fprintf(d.out, "\n%d decisions differ\n", d.differ)
	}
	tw := tabwriter.NewWriter(d.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "CGROUP\tPOLICY\tREQUESTS\tHELD BACK\tASKED FOR\tWITH -c: POLICY\tREQUESTS\tHELD BACK\tASKED FOR")
	for _, path := range slices.Sorted(maps.Keys(d.sums)) {
		fmt.Fprint(tw, telemetry.Name(path))
		for _, s := range d.sums[path] {
			policy := s.policy
			if s.decisions == 0 {
				policy = "none"
			}
			fmt.Fprintf(tw, "\t%s\t%d\t%d\t%s", policy, s.requests, s.wanted, telemetry.Bytes(s.bytes))
		}
		fmt.Fprintln(tw)
	}
	return tw.Flush()
}
