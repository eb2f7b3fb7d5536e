package workingset

import "github.com/memagent/memagent/memcg"

// auto is the kernel's balance of anon against file (get_scan_count), on
// priced costs, in microseconds a second, instead of counted ones:
//
//	T = 3 (A + F)
//	ap = s (T+1) / (2A+F+1)        fp = (200-s) (T+1) / (A+2F+1)
//	effective = 200 ap / (ap + fp)
//
// Each side keeps at least a third of its weight whatever the other costs, so
// that a side is never given up for good on the word of a few samples. With no
// cost on either side the result is Base.
func (s Swappiness) auto(costAnon, costFile float64) float64 {
	base := float64(min(max(s.Base, 0), 200))
	total := 3 * (costAnon + costFile)
	ap := base * (total + 1) / (2*costAnon + costFile + 1)
	fp := (200 - base) * (total + 1) / (costAnon + 2*costFile + 1)
	return 200 * ap / (ap + fp)
}

// pass returns the swappiness that an ordinary request of this policy passes.
func (s Swappiness) pass(effective Figure) memcg.Swappiness {
	lo, hi, ok := s.span()
	if !ok {
		return memcg.Swappiness{}
	}
	if s.Kind == Fixed {
		return memcg.SwappinessOf(s.Value)
	}
	return memcg.SwappinessOf(min(max(int(effective.or(float64(s.Base))+0.5), lo), hi))
}

// least returns the lowest swappiness the policy allows; nothing where it
// passes nothing.
func (s Swappiness) least() memcg.Swappiness {
	lo, _, ok := s.span()
	if !ok {
		return memcg.Swappiness{}
	}
	return memcg.SwappinessOf(lo)
}
