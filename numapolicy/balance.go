package numapolicy

// The band in which a weight counts as average, in percent: the seed's own
// magic numbers. Wider leaves more to plain reclaim and to what it swaps on the
// wrong node; narrower targets nodes for differences that are noise.
const (
	balanceLow  = 80
	balanceHigh = 120
)

// balanced reports whether every weight lies within the band around the
// average, in which case plain reclaim takes from the right nodes by itself.
//
// The average is over all nodes that hold memory of the cgroup, those that can
// give nothing included: a node of anon only beside a node of cold cache is what
// the seed was written for. (The seed leaves such a node out and divides by one
// more than it counts, so that a single node is never balanced; with several the
// average is too low.) Nodes of which nothing is known are left out.
func balanced(shares []Share) bool {
	n, total := 0.0, 0.0
	for i := range shares {
		if shares[i].holds() {
			n++
			total += float64(shares[i].Weight)
		}
	}
	for i := range shares {
		w := float64(shares[i].Weight) * n * 100
		if shares[i].holds() && (w < balanceLow*total || w > balanceHigh*total) {
			return false
		}
	}
	return true
}

// holds reports whether the node is one that the balance is about.
func (s *Share) holds() bool { return s.Why == "" || s.Why == WhyNothing }
