package metrics

// Bounds on the values of one label, far above what a config and this program
// have.
const (
	maxPolicies = 128
	maxVerdicts = 24
	maxRules    = 96
	maxBounds   = 32
	maxOutcomes = 24
)

// Values of labels that stand for no value of their own.
const (
	none  = "none"  // there is none, or it is not known
	other = "other" // beyond the bound
)

// label hands out the values of one label, at most max different ones.
type label struct {
	max  int
	seen map[string]bool
}

func newLabel(max int) *label { return &label{max: max, seen: make(map[string]bool)} }

// of returns v, or what stands for it.
func (l *label) of(v string) string {
	switch {
	case v == "":
		return none
	case l.seen[v]:
		return v
	case len(l.seen) >= l.max:
		return other
	}
	l.seen[v] = true
	return v
}
