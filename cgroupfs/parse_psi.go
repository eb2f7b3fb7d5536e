package cgroupfs

import "github.com/memagent/memagent/memcg"

// parsePSI reads a PSI file (psi_show in kernel/sched/psi.c):
//
//	some avg10=0.12 avg60=1.05 avg300=0.30 total=123456
//	full avg10=0.00 avg60=0.00 avg300=0.00 total=4567
//
// Averages are percent with two decimals, totals microseconds. A line that is
// not printed is Unsupported; a line in which one of the values kept is
// missing or no number is Invalid.
func parsePSI(b []byte) memcg.Pressure {
	p := noPressure(memcg.Unsupported)
	for key, rest := range keyed(b) {
		switch string(key) {
		case "some":
			p.Some = parseStall(rest)
		case "full":
			p.Full = parseStall(rest)
		}
	}
	return p
}

func noPressure(why memcg.State) memcg.Pressure {
	s := memcg.Stall{Total: memcg.Absent(why)}
	return memcg.Pressure{Some: s, Full: s}
}

func parseStall(b []byte) memcg.Stall {
	var s memcg.Stall
	invalid := memcg.Stall{Total: memcg.Absent(memcg.Invalid)}
	var have10, have60, ok bool
	for len(b) > 0 {
		var word []byte
		word, b, _ = cut(b, ' ')
		key, value, _ := cut(word, '=')
		switch string(key) {
		case "avg10":
			if s.Avg10, ok = parsePercent(value); !ok {
				return invalid
			}
			have10 = true
		case "avg60":
			if s.Avg60, ok = parsePercent(value); !ok {
				return invalid
			}
			have60 = true
		case "total":
			s.Total = parseField(value)
		}
	}
	if !have10 || !have60 || !s.Total.Known() {
		return invalid
	}
	return s
}

// parsePercent reads "12.34", 0..100. Averages decay towards a true share of
// time, but rounding has been seen to print a little above 100; that is 100.
func parsePercent(b []byte) (float64, bool) {
	whole, frac, dot := cut(b, '.')
	v, ok := parseUint(whole)
	if !ok || v > 101 {
		return 0, false
	}
	f := float64(v)
	if dot {
		d, ok := parseUint(frac)
		if !ok || len(frac) > 6 {
			return 0, false
		}
		scale := 1.0
		for range frac {
			scale *= 10
		}
		f += float64(d) / scale
	}
	return min(f, 100), true
}
