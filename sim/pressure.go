package sim

import (
	"math"
	"time"

	"github.com/memagent/memagent/memcg"
)

// psiPeriod is how often the kernel renews its averages (PSI_FREQ).
const psiPeriod = 2 * time.Second

// stallClock adds up time during which somebody waits. Stalls come in the
// order in which they begin and may overlap.
type stallClock struct {
	total time.Duration // up to until
	until time.Duration // end of the last stall, may lie in the future

	atRenew      time.Duration // what total was when the averages were renewed
	avg10, avg60 float64
}

// add notes a stall and returns the part of it in which somebody else was
// waiting already.
func (s *stallClock) add(begin, end time.Duration) (overlap time.Duration) {
	if begin < s.until {
		overlap = min(end, s.until) - begin
		begin = s.until
	}
	if end > begin {
		s.total += end - begin
		s.until = end
	}
	return overlap
}

// at returns the stall up to now: what lies in the future has not happened.
func (s *stallClock) at(now time.Duration) time.Duration {
	return s.total - max(0, s.until-now)
}

func (s *stallClock) renew(now time.Duration) {
	total := s.at(now)
	share := 100 * float64(total-s.atRenew) / float64(psiPeriod)
	s.atRenew = total
	keep10, keep60 := math.Exp(-psiPeriod.Seconds()/10), math.Exp(-psiPeriod.Seconds()/60)
	s.avg10 = s.avg10*keep10 + share*(1-keep10)
	s.avg60 = s.avg60*keep60 + share*(1-keep60)
}

func (s *stallClock) shown(now time.Duration) memcg.Stall {
	return memcg.Stall{
		Total: memcg.Value(uint64(s.at(now).Microseconds())),
		Avg10: s.avg10, Avg60: s.avg60,
	}
}

// stall makes a workload wait for memory. Where it is the only one that runs,
// all of them wait; else all is where two waits meet, which is exact for two
// and too much for more.
func (h *Host) stall(j *Job, d time.Duration) {
	if d <= 0 {
		return
	}
	begin := h.now + j.wait
	end := begin + d
	j.blocked(d)
	for c := j.group; c != nil; c = c.parent {
		overlap := c.some.add(begin, end)
		if c.running <= 1 {
			c.full.add(begin, end)
		} else if overlap > 0 {
			c.full.add(begin, begin+overlap)
		}
	}
}

func (h *Host) pressure(c *cgroup) memcg.Pressure {
	if h.cfg.NoPSI {
		none := memcg.Stall{Total: memcg.Absent(memcg.Unsupported)}
		return memcg.Pressure{Some: none, Full: none}
	}
	return memcg.Pressure{Some: c.some.shown(h.now), Full: c.full.shown(h.now)}
}
