package workingset

import "github.com/memagent/memagent/memcg"

// maxTerms is the most figures a decision names: what fits on a screen.
const maxTerms = 10

// terms collects the figures of a decision in the state's array.
type terms struct {
	list []memcg.Term
}

func (t *terms) add(name string, f Figure, unit string) {
	if len(t.list) < cap(t.list) {
		t.list = append(t.list, memcg.Term{Name: name, Value: f.v, Unit: unit, Known: f.known})
	}
}

func (st *State) newTerms() terms { return terms{st.terms[:0:maxTerms]} }

// because lists what decided: what the verdict rests on, then what the rule
// weighed, then the bounds.
func (st *State) because(d *Decision, v *view) []memcg.Term {
	t, s := st.newTerms(), &d.Signals
	switch d.Verdict {
	case FileThrash, Streaming:
		t.add("file refaults", s.File.Refaults, "pages/s")
		t.add("file refault distance", s.File.Distance, "bytes")
		t.add("file working set", s.File.WorkingSet, "bytes")
		t.add("file need", s.File.Need, "bytes")
		t.add("file cost", percent(s.File.Cost), "%")
		t.add("anon cost", percent(s.Anon.Cost), "%")
		t.add("anon evictions by the kernel", s.KernelEvictsAnon, "pages/s")
	case AnonThrash:
		t.add("anon refaults", s.Anon.Refaults, "pages/s")
		t.add("anon refault distance", s.Anon.Distance, "bytes")
		t.add("anon working set", s.Anon.WorkingSet, "bytes")
		t.add("anon need", s.Anon.Need, "bytes")
		t.add("anon cost", percent(s.Anon.Cost), "%")
		t.add("file cost", percent(s.File.Cost), "%")
	case LimitBound, Throttled:
		t.add("reclaimable", s.Reclaimable, "bytes")
		t.add("full pressure", percent(s.PressureFull), "%")
		t.add("pages taken of scanned", percent(s.Efficiency), "%")
		t.add("refault cost", percent(s.CostSmooth), "%")
		t.add("short", s.Short, "bytes")
	case Growing:
		t.add("newly charged", s.AllocRate, "bytes/s")
	default:
		t.add("pressure", percent(s.Pressure), "%")
		t.add("refault cost", percent(s.Cost), "%")
		t.add("smoothed refault cost", percent(s.CostSmooth), "%")
		t.add("squeeze step", percent(FigureOf(v.policy.Squeeze.MaxStep*st.squeeze.step())), "%")
		t.add("hold", FigureOf(st.squeeze.hold.Seconds()), "s")
	}
	t.add("current", FigureOf(v.current), "bytes")
	t.add("floor", s.Floor, "bytes")
	t.add("limit", s.Limit, "bytes")
	return t.list
}

// missing lists the counters a decision needs and that the sample lacks.
func (st *State) missing(v *view) []memcg.Term {
	t := st.newTerms()
	if v.sample == nil {
		return t.list
	}
	t.lacks("memory.current", v.sample.Current)
	for _, k := range [...]memcg.Stat{memcg.StatAnon, memcg.StatFile, memcg.StatInactiveAnon, memcg.StatInactiveFile,
		memcg.StatRefaultAnon, memcg.StatRefaultFile, memcg.StatSteal} {
		t.lacks(k.String(), v.sample.Stat.Get(k))
	}
	return t.list
}

func (t *terms) lacks(name string, f memcg.Field) {
	if !f.Known() {
		t.add(name, Figure{}, f.State().String())
	}
}

// percent turns a fraction into percent.
func percent(f Figure) Figure {
	f.v *= 100
	return f
}
