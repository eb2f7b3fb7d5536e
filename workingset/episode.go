package workingset

import "time"

const (
	// budgetShare and budgetBytes bound what one episode may move before it
	// must show an effect: 4 % of the side that gives, and 64 MiB. Seed 003
	// itself swapped 3.7 % of anon for a stream that gained nothing by it.
	// Where the distance says "in reach" the larger of both applies, since
	// replacement in a loop shows no effect before the whole loop fits; where
	// the distance is unknown and the episode is an experiment, the smaller.
	budgetShare = 0.04
	budgetBytes = 64 << 20
	// effect is the fall of the refault rate that an episode must show, 10 %.
	// Less cannot be told from noise within settleTime.
	effect = 0.10
	// settleTime is how long refaults are counted, after a move, before it is
	// judged to have had no effect: one time constant of the smoothed rates.
	settleTime = smoothing
	// settleSamples is the least number of samples that must fall in it, and
	// settleTurns how often the set must have had the time to come round: what
	// was made room for has to be read in again before refaults can fall.
	// settleMost bounds that wait, for sets that come round very slowly.
	settleSamples = 2
	settleTurns   = 1.5
	settleMost    = 5 * time.Minute
	// settleLeast is the least wait, whatever the set: early wakes are no
	// evidence.
	settleLeast = time.Second
	// firstCool is how long nothing is moved after an episode without effect;
	// it doubles with each up to lastCool.
	firstCool = time.Minute
	lastCool  = 30 * time.Minute
	// turnRest is how long after a move nothing is moved the other way: a
	// minute is several samples of whatever the first move caused.
	turnRest = time.Minute
)

// phase is where an episode stands.
type phase uint8

const (
	resting  phase = iota
	moving         // spending
	settling       // spent; refaults are being counted
)

// episode is the account of one attempt to help one side at the other's cost:
// what it may spend, what it has spent, and what came of it.
type episode struct {
	phase phase
	kind  IntentKind // of this or the last episode
	trial bool       // the distance was unknown

	budget  float64 // bytes it may move in all
	limit   float64 // bytes it may move before it must settle; <= budget
	spent   float64 // bytes moved; 0 <= spent
	pending float64 // bytes asked for at the last sample, not yet accounted for

	before   float64 // refaults a second while spending
	seconds  float64 // of settling
	refaults float64 // pages, while settling
	samples  uint8   // while settling
	turn     float64 // seconds in which the set comes round
	owed     float64 // pages that were out at the move and must come back once, whatever it did; 0 in a trial

	cool     time.Duration // nothing is moved until this is over
	nextCool time.Duration // length of the next cool-down, 0 means firstCool
	rest     time.Duration // no move the other way until this is over
}

func (e *episode) sum() float64 {
	return e.budget + e.limit + e.turn + e.owed + e.spent + e.pending + e.before + e.seconds + e.refaults
}

// failed reports whether the last episode of a kind had no effect and is still
// cooling down.
func (e *episode) failed(kind IntentKind) bool { return e.cool > 0 && e.kind == kind }

// asked remembers what is asked for now.
func (e *episode) asked(i *Intent) {
	e.pending = 0
	if i.Kind == KindMoveAnon || i.Kind == KindMoveFile {
		e.pending = float64(i.Bytes)
	}
}

// gives and gains are the page types of an episode's two sides.
func (k IntentKind) gives() int {
	if k == KindMoveAnon {
		return anon
	}
	return file
}

func (k IntentKind) gains() int { return 1 - k.gives() }

// pass accounts for one sample: what was spent, by the agent's measurement
// where there is one and else by what was asked, and what came back.
func (e *episode) pass(v *view) {
	e.cool = max(0, e.cool-v.in.Elapsed)
	e.rest = max(0, e.rest-v.in.Elapsed)
	if e.phase == resting {
		return
	}
	if e.pending > 0 {
		e.spent += e.taken(v)
	}
	back := v.d.refault[e.kind.gains()]
	if e.phase == settling {
		e.seconds += v.d.seconds
		e.refaults += back
		e.samples = min(e.samples+1, settleSamples)
		if e.owed > 0 && e.refaults > e.owed {
			// All that room was made for is back: what comes from now on counts.
			e.refaults, e.seconds, e.samples, e.owed = 0, 0, 0, 0
		}
		return
	}
	// A trial that already shows is left to settle before more is spent. A
	// move whose size the distance gave is spent whole: between the passes of
	// a paced loop nothing comes back, which shows nothing.
	shows := e.trial && e.spent > 0 && back/v.d.seconds < e.before/2
	if shows || e.spent+v.page > e.limit {
		e.phase = settling
	}
}

// unfinished reports whether an episode of a kind has not yet moved what it set
// out to move.
func (e *episode) unfinished(kind IntentKind) bool {
	return e.phase == moving && e.kind == kind && !e.trial
}

func (e *episode) taken(v *view) float64 {
	own := v.in.Own
	switch {
	case !own.Known:
		return e.pending
	case e.kind == KindMoveAnon:
		return float64(own.AnonPages) * v.page
	}
	return float64(own.FilePages) * v.page
}

// settled judges a move whose effect has had the time to show. Less refaults
// are success. If as many come back once all that was out has done so, and some
// of what they need is still out, the move fell short and goes on within its
// budget; when that is spent, it was in vain.
func (e *episode) settled(st *State, need float64) {
	if e.phase != settling || e.samples < settleSamples || e.seconds < min(max(settleLeast.Seconds(), settleTurns*e.turn), settleMost.Seconds()) {
		return
	}
	switch {
	case e.refaults/e.seconds < (1-effect)*e.before:
		e.phase, e.rest, e.nextCool = resting, turnRest, 0
	case e.refaults <= e.owed: // a move that sufficed looks the same so far
	case need > 0 && e.spent < e.budget:
		e.phase, e.limit = moving, min(e.budget, e.spent+need)
		e.seconds, e.refaults, e.samples = 0, 0, 0
	case e.seconds >= settleTime.Seconds():
		e.phase, e.rest = resting, turnRest
		e.cool = max(firstCool, e.nextCool)
		e.nextCool = min(2*e.cool, lastCool)
		if m := &st.sides[e.kind.gains()]; m.inherited > 0 {
			// The experiment has answered: what was cut at the start was not
			// too much. An hour passes before it fades into reach.
			m.inherited, m.out = 0, 2*m.out
		}
	}
}

// move opens an episode of a kind, or goes on with one. It returns how many
// bytes may be moved now, and the rule that says so or forbids it.
func (st *State) move(kind IntentKind, s *Signals, v *view, cold float64) (bytes float64, rule, clipped string) {
	e := &st.episode
	gain := &s.File
	if kind == KindMoveFile {
		gain = &s.Anon
	}
	e.settled(st, gain.Need.or(0))
	switch {
	case e.cool > 0:
		return 0, "cooling-down", ""
	case e.phase == settling && e.kind == kind:
		return 0, "move-settles", ""
	case e.kind != kind && (e.rest > 0 || e.phase != resting):
		return 0, "no-turn-back", ""
	}
	rate := gain.Refaults.or(0)
	if e.phase == resting {
		e.open(kind, gain, rate, v)
	}
	e.before = max(e.before, rate)
	if rate > 0 {
		e.turn = gain.Out.or(0) / v.page / rate
		if !e.trial {
			e.owed = gain.Out.or(0) / v.page
		}
	}
	bytes = min(e.limit-e.spent, cold)
	switch {
	case !(bytes > 0) && cold <= 0:
		return 0, "nothing-cold", "cold"
	case !(bytes > 0):
		return 0, "nothing-needed", ""
	case bytes < e.limit-e.spent:
		clipped = "cold"
	}
	if e.trial {
		return bytes, kind.String() + trialSuffix, clipped
	}
	return bytes, kind.String(), clipped
}

// trialSuffix marks the rule of a move that is an experiment.
const trialSuffix = "-trial"

// open begins an episode.
func (e *episode) open(kind IntentKind, gain *Side, rate float64, v *view) {
	giver := v.lists.size(kind.gives())
	need, known := gain.Need.Get()
	budget := max(budgetShare*giver, budgetBytes)
	if !known {
		budget = min(budgetShare*giver, budgetBytes)
		need = budget
	}
	*e = episode{
		phase: moving, kind: kind, trial: !known, before: rate,
		budget: budget, limit: min(need, budget), nextCool: e.nextCool,
	}
}

// end closes an episode whose reason has gone. Refaults that no longer hurt are
// all a move could wish for; a stream in their place proves nothing.
func (e *episode) end(now Verdict) {
	if e.phase == resting {
		return
	}
	e.phase, e.rest = resting, turnRest
	if now != Streaming {
		e.nextCool = 0
	}
}
