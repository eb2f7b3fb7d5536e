package status

import (
	"bytes"
	"time"

	"github.com/memagent/memagent/memcg"
	"github.com/memagent/memagent/telemetry"
)

// Bounds of what a Board remembers.
const (
	// MaxRecords is how many past records are kept over all watched cgroups,
	// about 0.4 KiB each, and as much again where a request came back.
	MaxRecords = 4096
	// MaxDepth is how many of them one cgroup has at most.
	MaxDepth = 32
	// MaxGone is how many cgroups that are gone can still be asked about.
	MaxGone = 32
)

// history is what a Board knows of one cgroup.
type history struct {
	id   memcg.ID
	gone time.Time // zero while it is there
	// latest is the last whole look with what glances said since.
	latest row
	// past is a ring: entries[(first+i) % len] for i of 0..count-1.
	entries      []entry
	first, count int
}

// entry is a run of records that say the same.
type entry struct {
	packed []byte // the last of the run
	gist   int    // how many bytes of it a record must have in common to go on; 0 where none does
	few    *rest  // nil where it has nothing of that
	last   time.Time
	since  time.Time
	times  uint64
}

// take takes a record that p has just packed.
func (e *entry) take(p *packer, r *telemetry.Record) {
	if cap(e.packed) < len(p.buf) {
		e.packed = make([]byte, 0, len(p.buf)+packedSlack)
	}
	e.packed = append(e.packed[:0], p.buf...)
	e.gist, e.few, e.last = 0, e.few.keep(r), r.Time
	if still(r) {
		e.gist = p.gist
	}
}

// packedSlack is by how many bytes a packed record may grow where it is: numbers that become longer.
const packedSlack = 16

// record makes the last record of the run again. It shares memory with e.
func (e *entry) record(id memcg.ID, w *words) telemetry.Record {
	u := unpacker{w, e.packed}
	r := u.record(e.few)
	r.Time, r.Cgroup = e.last, id
	return r
}

// row is the part of a record that tables show, small enough to keep for every
// cgroup beside its past.
type row struct {
	seen                             time.Time
	policy, mode, verdict, rule, err string
	name                             string // what people call it, "" for its path

	current, anon, file, swap, lent memcg.Field
	refaults, stall                 memcg.Field
	elapsed                         time.Duration
	cost                            memcg.Term
	nodes                           []byte // packed

	acted action
}

// action is the last request, and what came of it once that is known.
type action struct {
	at      time.Time
	want    uint64
	held    string // "" where it was handed to the kernel
	done    bool
	took    memcg.Field // bytes
	swapped memcg.Field // bytes
	kind    string      // of the error that ended it, "" if none
}

// see takes what a record says into the row.
func (w *row) see(r *telemetry.Record) {
	w.seen, w.policy, w.mode, w.name, w.err = r.Time, r.Policy, string(r.Mode), r.Name, ""
	if r.Done != nil {
		w.acted.outcome(r)
	}
	if r.Err != nil {
		w.err = r.Err.Error()
		return
	}
	w.current = r.Current
	if r.Want > 0 {
		w.acted = action{at: r.Time, want: r.Want, held: r.Held}
		if !r.Acted && r.Held == "" {
			w.acted.held = "not handed out"
		}
	}
	if r.Glance {
		return // the rest is of the last look
	}
	w.verdict, w.rule = r.Verdict, r.Rule
	w.anon, w.file, w.swap, w.lent = r.Anon, r.File, r.Swap, r.Lent
	w.refaults, w.stall, w.elapsed, w.cost = memcg.SumKnown(r.RefaultAnon, r.RefaultFile), r.Stall, r.Elapsed, r.Cost
	w.nodes = putNodes(w.nodes[:0], r.Nodes)
}

// outcome takes what came of a request, which is the last one that was handed
// to the kernel: there is one in flight at a time.
func (a *action) outcome(r *telemetry.Record) {
	o := r.Done
	if a.want == 0 || a.held != "" || a.done {
		*a = action{at: r.Time, want: o.Request.Bytes}
	}
	a.done, a.took, a.swapped, a.kind = true, o.Reclaimed, o.SwapOut, ""
	if o.Via == memcg.ViaDAMON { // pgsteal does not count it
		a.took = o.Shrunk
	}
	if o.Err != nil {
		a.kind = telemetry.ErrorKind(o.Err)
	}
}

// add keeps a record, at most depth of them.
func (h *history) add(p *packer, r *telemetry.Record, depth int) {
	p.pack(r)
	if h.count > 0 && still(r) {
		if last := h.at(h.count - 1); last.goesOn(p) {
			last.take(p, r)
			last.times++
			return
		}
	}
	h.fit(depth)
	if h.count == len(h.entries) {
		if len(h.entries) < depth {
			h.entries = append(h.entries, entry{})
		} else {
			h.first = (h.first + 1) % len(h.entries)
			h.count--
		}
	}
	h.count++
	last := h.at(h.count - 1)
	last.take(p, r)
	last.since, last.times = r.Time, 1
}

// fit brings the ring to where it may grow by append, or has no more than
// depth entries. It does nothing in the steady state.
func (h *history) fit(depth int) {
	if len(h.entries) <= depth && (h.first == 0 || len(h.entries) == depth) {
		return
	}
	n := min(h.count, depth)
	kept := make([]entry, n, max(n, min(depth, 2*n)))
	for i := range n {
		kept[i] = *h.at(h.count - n + i)
	}
	h.entries, h.first, h.count = kept, 0, n
}

// at returns entry i, the oldest first.
func (h *history) at(i int) *entry { return &h.entries[(h.first+i)%len(h.entries)] }

// goesOn reports whether a packed record says what e said before, with nothing done or learned in
// either: nothing wanted, or the same wish held back for the same reason.
func (e *entry) goesOn(p *packer) bool {
	return e.gist > 0 && e.gist == p.gist && bytes.Equal(e.packed[:e.gist], p.buf[:p.gist])
}

func still(r *telemetry.Record) bool {
	return r.Err == nil && !r.Acted && r.Done == nil && len(r.Settings) == 0 && r.Mems.Want == "" && !r.Glance
}
