package workingset

import (
	"math"

	"github.com/memagent/memagent/memcg"
)

// Decide judges one sample of one cgroup and says what ought to be asked of
// the kernel, within these bounds whatever the law: nothing while counters are
// missing, invalid or reset; never below the floor; never with a swappiness
// outside the policy. It allocates nothing.
func Decide(st *State, in Input, p Policy) Decision {
	var d Decision
	v := view{sample: in.Sample, policy: &p, in: &in}
	if d.Rule = st.look(&v, &d.Signals); d.Rule != "" {
		if !d.deserted(in.Sample) {
			d.Because = st.missing(&v)
		}
		return d
	}
	st.learn(&v)
	if !st.sound() {
		*st = State{}
		d.Rule = "lost-count"
		return d
	}
	st.fill(&d.Signals, &v)
	if d.deserted(in.Sample) {
		d.Intent.Floor = v.floor.bytes
		return d
	}
	d.Verdict = st.verdict(&d.Signals, &v)
	v.hold, v.holds = st.hold(&d, &v)
	d.Intent, d.Rule = st.act(&d, &v)
	d.Hold = v.holdFor(d.Verdict)
	d.Clipped = v.bound(&d.Intent, d.Clipped)
	if d.Intent.Bytes == 0 {
		d.Intent.Kind, d.Intent.Swappiness, d.Intent.OlderThan = KindNone, memcg.Swappiness{}, 0
	}
	st.episode.asked(&d.Intent)
	d.Because = st.because(&d, &v)
	return d
}

// deserted decides on a cgroup without a process, and reports whether it is one
// (cgroup.events: populated 0). It is not dying: the next job finds what is left there,
// and only when it is removed does that go. Nothing is asked of it: a request would
// hold up the removal (case c37).
func (d *Decision) deserted(s *memcg.Sample) bool {
	if s == nil {
		return false
	}
	n, ok := s.Populated.Get()
	if !ok || n > 0 {
		return false
	}
	d.Verdict, d.Rule = Idle, "no-process"
	return true
}

// act applies the policy's law.
func (st *State) act(d *Decision, v *view) (Intent, string) {
	switch v.policy.Law {
	case TMO:
		return st.tmo(&d.Signals, v)
	case Senpai:
		return st.senpai(&d.Signals, v)
	}
	return st.memagent(d, v)
}

// tmo is the reference law TMO.
func (st *State) tmo(s *Signals, v *view) (Intent, string) {
	return st.squeezeNow(s, v, 0, nil)
}

// senpai is the reference law of oomd's Senpai.
func (st *State) senpai(s *Signals, v *view) (Intent, string) {
	if !v.policy.Squeeze.On {
		return Intent{}, "squeeze-off"
	}
	bytes, rule := st.squeeze.squeezeSenpai(v)
	return Intent{Kind: KindSqueeze, Bytes: bytesOf(bytes), Swappiness: v.policy.Swappiness.pass(s.Swappiness)}, rule
}

// squeezeNow is the squeeze of TMO's formula, with a cost of at least least;
// with generations, and a policy that says from when on memory is cold, exactly
// what is that old instead.
func (st *State) squeezeNow(s *Signals, v *view, least float64, gens *Generations) (Intent, string) {
	p, q := &v.policy.Squeeze, &st.squeeze
	switch {
	case !p.On:
		return Intent{}, "squeeze-off"
	case !s.Pressure.Known():
		return Intent{}, "no-pressure-file"
	case q.seconds < squeezeGap.Seconds():
		return Intent{}, "squeeze-waits"
	}
	strain := strain(q.stall/q.seconds/1e6, max(least, q.cost/q.seconds/1e6), p)
	step := p.MaxStep * q.step()
	bytes, rule := squeezeBytes(v.current, step, strain), "squeeze-tmo"
	switch {
	case math.IsNaN(bytes):
		return Intent{}, "bad-policy"
	case bytes < 0:
		q.stop()
		return Intent{}, "squeeze-backs-off"
	case q.hold > 0:
		return Intent{}, "squeeze-holds"
	}
	intent := Intent{Kind: KindSqueeze, Swappiness: v.policy.Swappiness.pass(s.Swappiness)}
	if gens != nil && p.IdleAge > 0 {
		rule, intent.OlderThan = "squeeze-cold", p.IdleAge
		bytes = v.cold(gens, intent.Swappiness, bytes)
	}
	intent.Bytes = bytesOf(bytes)
	return intent, rule
}

// coldRush is how many steps of TMO's formula may go at once when generations
// show that memory is cold: what has not been used for idle_age needs no
// probing, but a step bounds what a wrong age can cost. At 0.5 % every 5 s a
// cgroup that is half cold is done within a minute.
const coldRush = 10

// cold is how much of what is older than idle_age may go at once.
func (v *view) cold(gens *Generations, s memcg.Swappiness, step float64) float64 {
	a, f := gens.olderThan(v.policy.Squeeze.IdleAge)
	if n, ok := s.Get(); ok && n == 0 || !v.swap {
		a = 0
	}
	return min((float64(a)+float64(f))*v.page, step*coldRush)
}

// bound makes an intent fit what may be asked: not below the floor, not into
// swap that is kept free, in whole pages. It returns the bound that clipped it,
// or what had clipped it before.
func (v *view) bound(i *Intent, clipped string) string {
	i.Floor = v.floor.bytes
	current := bytesOf(v.current)
	if most := less(current, v.floor.bytes); i.Bytes > most {
		i.Bytes, clipped = most, "floor"
	}
	n, set := i.Swappiness.Get()
	mayswap := v.floor.swapThere && !(set && n == 0)
	if own, finite := v.sample.SwapRoom.Bytes(); finite && own == 0 {
		mayswap = false // the kernel itself takes no anon
	}
	if mayswap && i.Bytes > v.floor.hostRoom {
		clipped = "swap-room"
		if lo, ok := v.policy.Swappiness.least().Get(); ok && lo == 0 && i.Kind != KindMoveAnon {
			i.Swappiness = v.policy.Swappiness.least()
		} else {
			i.Bytes = v.floor.hostRoom
		}
	}
	i.Bytes -= i.Bytes % uint64(v.page)
	return clipped
}
