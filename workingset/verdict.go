package workingset

// Verdict is what the signals say of a cgroup, in one word.
type Verdict uint8

// Verdicts. Their conditions, in the order they are tried, are in judge.
const (
	Unknown    Verdict = iota // counters are missing, or there is no earlier sample
	Idle                      // hardly any page is allocated, evicted or refaulted
	Fits                      // in use, and refaults and stalls are within bounds
	Growing                   // new memory keeps being charged
	FileThrash                // file pages come back, and keeping them was possible
	AnonThrash                // anon pages come back and cost more than file
	Streaming                 // file pages pass through; no trade could keep them
	LimitBound                // what must stay fills the limit, or both sides thrash under it
	Throttled                 // stopped at memory.high, and reclaim cannot help
)

var verdicts = [...]struct{ name, sentence string }{
	Unknown:    {"unknown", "Figures that a decision needs are not known, so nothing is decided."},
	Idle:       {"idle", "The memory is hardly touched; what is not needed can go."},
	Fits:       {"fits", "The memory in use fits; refaults and stalls are within bounds."},
	Growing:    {"growing", "New memory keeps being charged; it is not squeezed meanwhile."},
	FileThrash: {"file-thrash", "File pages are evicted and read again although there would be room for them beside less idle anon."},
	AnonThrash: {"anon-thrash", "Anon pages are swapped out and in again, and that costs more than file reads do."},
	Streaming:  {"streaming", "File pages pass through faster than this memory can hold them; giving up anon would not keep them."},
	LimitBound: {"limit-bound", "The limit is too small for what must stay; reclaim cannot help, more memory would."},
	Throttled:  {"throttled", "Tasks are stopped at memory.high and almost nothing can be reclaimed; only a higher limit helps."},
}

// String returns the verdict in kebab-case.
func (v Verdict) String() string {
	if int(v) < len(verdicts) {
		return verdicts[v].name
	}
	return "verdict(?)"
}

// Sentence says the verdict in a sentence for people.
func (v Verdict) Sentence() string {
	if int(v) < len(verdicts) {
		return verdicts[v].sentence
	}
	return ""
}
