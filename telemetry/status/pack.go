package status

import (
	"encoding/binary"
	"math"
	"time"

	"github.com/memagent/memagent/memcg"
	"github.com/memagent/memagent/telemetry"
)

// A Board keeps at least one record of every cgroup, and a Record is 1.7 KiB with what it points to,
// most of it texts that are the same in all of them. So records are kept packed: numbers as short as
// they are, texts that come again and again as their place in a list, and sentences made when somebody
// asks. What is seldom there, such as the outcome of a request, is kept as it is.

// maxWords bounds the list of texts. Those that come when it is full are kept in each record.
const maxWords = 1024

// words are texts that records have in common: verdicts, rules, names of figures and of policies.
type words struct {
	place map[string]uint64 // in list, from 1
	list  []string
	// before are the words of the record before, in order: most records have the same ones at the same
	// turn, and to see that takes a tenth of looking one up.
	before [64]struct {
		text  string
		place uint64
	}
	turn int
}

// put appends a text: its place, or 0 and the text itself.
func (w *words) put(to []byte, text string) []byte {
	before := &w.before[w.turn%len(w.before)]
	w.turn++
	if before.place == 0 || before.text != text {
		before.text, before.place = text, w.find(text)
	}
	to = binary.AppendUvarint(to, before.place)
	if before.place == 0 {
		to = putText(to, text)
	}
	return to
}

// find is the place of a text, which it gets where there is room; else 0.
func (w *words) find(text string) uint64 {
	n, ok := w.place[text]
	if !ok && len(w.list) < maxWords {
		if w.place == nil {
			w.place = make(map[string]uint64)
		}
		w.list = append(w.list, text)
		n = uint64(len(w.list))
		w.place[text] = n
	}
	return n
}

// putText appends a text that hardly any two records share.
func putText(to []byte, text string) []byte {
	return append(binary.AppendUvarint(to, uint64(len(text))), text...)
}

// putField appends a number, or why there is none.
func putField(to []byte, f memcg.Field) []byte {
	to = append(to, byte(f.State()))
	if v, ok := f.Get(); ok {
		to = binary.AppendUvarint(to, v)
	}
	return to
}

func putFloat(to []byte, v float64) []byte {
	return binary.LittleEndian.AppendUint64(to, math.Float64bits(v))
}

func (w *words) putTerm(to []byte, t *memcg.Term) []byte {
	to = w.put(w.put(to, t.Name), t.Unit)
	if !t.Known && t.Value == 0 {
		return append(to, 0)
	}
	return putFloat(append(to, 1+bit(t.Known)), t.Value)
}

func bit(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// Bits of a packed record.
const (
	isGlance = 1 << iota
	isActed
	isGuarded
	hasContainer
	hasLending
	hasMems
	hasDone
	hasDraw
)

// rest is what few records have.
type rest struct {
	err      error
	done     *memcg.Outcome
	draw     *telemetry.Draw
	settings []telemetry.Setting
}

// packer packs records.
type packer struct {
	words words
	buf   []byte // of the last record
	gist  int    // of these, the bytes by which one record goes on where another left off
}

// pack packs all of a record but its time, its cgroup and what is in rest.
func (p *packer) pack(r *telemetry.Record) {
	w, b := &p.words, p.buf[:0]
	w.turn = 0
	b = append(b, bit(r.Want > 0))
	b = w.put(w.put(w.put(b, r.Verdict), r.Rule), r.Clipped)
	b = putText(b, r.Held)
	p.gist = len(b)

	bits := uint64(bit(r.Glance))*isGlance | uint64(bit(r.Acted))*isActed | uint64(bit(r.Guarded))*isGuarded |
		uint64(bit(r.Container != telemetry.Container{}))*hasContainer | uint64(bit(r.Lending != telemetry.Lending{}))*hasLending |
		uint64(bit(r.Mems != telemetry.Mems{}))*hasMems | uint64(bit(r.Done != nil))*hasDone | uint64(bit(r.Draw != nil))*hasDraw
	b = binary.AppendUvarint(binary.AppendUvarint(b, bits), r.Tick)
	b = putText(putText(b, r.Name), r.GuardHeld)
	for _, text := range [...]string{r.Policy, string(r.Mode), r.Law, r.Meaning, r.NodeRule} {
		b = w.put(b, text)
	}
	for _, f := range [...]memcg.Field{r.Current, r.Anon, r.File, r.Swap, r.RefaultAnon, r.RefaultFile, r.Stall, r.Lent} {
		b = putField(b, f)
	}
	b = binary.AppendVarint(binary.AppendVarint(b, int64(r.Elapsed)), int64(r.OlderThan))
	b = binary.AppendUvarint(binary.AppendUvarint(b, r.Want), r.Floor)
	swappiness := uint64(0)
	if v, ok := r.Swappiness.Get(); ok {
		swappiness = 1 + uint64(v)
	}
	b = binary.AppendUvarint(b, swappiness)
	b = w.putTerm(b, &r.Cost)
	b = binary.AppendUvarint(b, uint64(len(r.Because)))
	for i := range r.Because {
		b = w.putTerm(b, &r.Because[i])
	}
	b = putNodes(b, r.Nodes)
	if bits&hasContainer != 0 {
		c := &r.Container
		b = w.put(b, c.Runtime)
		for _, text := range [...]string{c.ID, c.Inner, c.PodUID, c.Namespace, c.Pod, c.Name, c.Asks} {
			b = putText(b, text)
		}
	}
	if l := &r.Lending; bits&hasLending != 0 {
		b = putText(w.put(append(b, bit(l.On)), l.Rule), l.Held)
		for _, v := range [...]uint64{l.Base, l.Lent, l.Used, l.Pool, l.High, l.Recalled, l.RecalledToSwap} {
			b = binary.AppendUvarint(b, v)
		}
		b = binary.AppendVarint(putFloat(putFloat(b, l.Before), l.Now), int64(l.RecallTook))
	}
	if m := &r.Mems; bits&hasMems != 0 {
		b = putText(putText(putText(w.put(b, m.Rule), m.Want), m.Held), m.Widen)
		b = binary.AppendUvarint(binary.AppendUvarint(binary.AppendUvarint(b, m.Moves), m.Stays), m.Moved)
	}
	p.buf = b
}

func putNodes(b []byte, nodes []telemetry.NodeUse) []byte {
	b = binary.AppendUvarint(b, uint64(len(nodes)))
	for i := range nodes {
		b = binary.AppendVarint(b, int64(nodes[i].Node))
		b = putField(putField(b, nodes[i].Anon), nodes[i].File)
	}
	return b
}

// unpacker reads what was packed, in the same order.
type unpacker struct {
	words *words
	buf   []byte
}

func (u *unpacker) uint() uint64 {
	v, n := binary.Uvarint(u.buf)
	u.buf = u.buf[n:]
	return v
}

func (u *unpacker) int() int64 {
	v, n := binary.Varint(u.buf)
	u.buf = u.buf[n:]
	return v
}

func (u *unpacker) byte() byte {
	v := u.buf[0]
	u.buf = u.buf[1:]
	return v
}

func (u *unpacker) text() string {
	n := u.uint()
	text := string(u.buf[:n])
	u.buf = u.buf[n:]
	return text
}

func (u *unpacker) word() string {
	if n := u.uint(); n > 0 {
		return u.words.list[n-1]
	}
	return u.text()
}

func (u *unpacker) float() float64 {
	v := binary.LittleEndian.Uint64(u.buf)
	u.buf = u.buf[8:]
	return math.Float64frombits(v)
}

func (u *unpacker) field() memcg.Field {
	if state := memcg.State(u.byte()); state != memcg.Present {
		return memcg.Absent(state)
	}
	return memcg.Value(u.uint())
}

func (u *unpacker) term() memcg.Term {
	t := memcg.Term{Name: u.word(), Unit: u.word()}
	if state := u.byte(); state > 0 {
		t.Known, t.Value = state > 1, u.float()
	}
	return t
}

func (u *unpacker) nodes() []telemetry.NodeUse {
	n := u.uint()
	if n == 0 {
		return nil
	}
	out := make([]telemetry.NodeUse, n)
	for i := range out {
		out[i] = telemetry.NodeUse{Node: memcg.NodeID(u.int()), Anon: u.field(), File: u.field()}
	}
	return out
}

// nodesOf unpacks what putNodes packed.
func nodesOf(packed []byte) []telemetry.NodeUse {
	if len(packed) == 0 {
		return nil
	}
	u := unpacker{buf: packed}
	return u.nodes()
}

// record makes the record again, sharing no memory with what it was packed into but texts and rest.
func (u *unpacker) record(few *rest) telemetry.Record {
	var r telemetry.Record
	u.byte()
	r.Verdict, r.Rule, r.Clipped, r.Held = u.word(), u.word(), u.word(), u.text()
	bits := u.uint()
	r.Glance, r.Acted, r.Guarded = bits&isGlance != 0, bits&isActed != 0, bits&isGuarded != 0
	r.Tick, r.Name, r.GuardHeld = u.uint(), u.text(), u.text()
	r.Policy, r.Mode, r.Law, r.Meaning, r.NodeRule = u.word(), telemetry.Mode(u.word()), u.word(), u.word(), u.word()
	for _, f := range [...]*memcg.Field{&r.Current, &r.Anon, &r.File, &r.Swap, &r.RefaultAnon, &r.RefaultFile, &r.Stall, &r.Lent} {
		*f = u.field()
	}
	r.Elapsed, r.OlderThan = time.Duration(u.int()), time.Duration(u.int())
	r.Want, r.Floor = u.uint(), u.uint()
	if v := u.uint(); v > 0 {
		r.Swappiness = memcg.SwappinessOf(int(v - 1))
	}
	r.Cost = u.term()
	for range u.uint() {
		r.Because = append(r.Because, u.term())
	}
	r.Nodes = u.nodes()
	if bits&hasContainer != 0 {
		c := &r.Container
		c.Runtime = u.word()
		for _, text := range [...]*string{&c.ID, &c.Inner, &c.PodUID, &c.Namespace, &c.Pod, &c.Name, &c.Asks} {
			*text = u.text()
		}
	}
	if l := &r.Lending; bits&hasLending != 0 {
		l.On, l.Rule, l.Held = u.byte() > 0, u.word(), u.text()
		for _, v := range [...]*uint64{&l.Base, &l.Lent, &l.Used, &l.Pool, &l.High, &l.Recalled, &l.RecalledToSwap} {
			*v = u.uint()
		}
		l.Before, l.Now, l.RecallTook = u.float(), u.float(), time.Duration(u.int())
	}
	if m := &r.Mems; bits&hasMems != 0 {
		m.Rule, m.Want, m.Held, m.Widen = u.word(), u.text(), u.text(), u.text()
		m.Moves, m.Stays, m.Moved = u.uint(), u.uint(), u.uint()
	}
	if few != nil {
		r.Err, r.Settings = few.err, few.settings
		if bits&hasDone != 0 {
			r.Done = few.done
		}
		if bits&hasDraw != 0 {
			r.Draw = few.draw
		}
	}
	return r
}

// keep takes what few records have, reusing memory; nil where r has none of it and nothing was kept
// before.
func (few *rest) keep(r *telemetry.Record) *rest {
	if few == nil {
		if r.Err == nil && r.Done == nil && r.Draw == nil && len(r.Settings) == 0 {
			return nil
		}
		few = &rest{}
	}
	was := telemetry.Record{Done: few.done, Draw: few.draw, Settings: few.settings}
	only := telemetry.Record{Err: r.Err, Done: r.Done, Draw: r.Draw, Settings: r.Settings}
	was.CopyFrom(&only)
	few.err, few.settings = was.Err, was.Settings
	if was.Done != nil {
		few.done = was.Done
	}
	if was.Draw != nil {
		few.draw = was.Draw
	}
	return few
}
