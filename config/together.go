package config

import (
	"fmt"

	"github.com/memagent/memagent/memcg"
)

// checkTogether checks what no value shows by itself. It looks only at values
// that are sound, so that one fault is not reported as two.
func (r *reader) checkTogether(c *Config) {
	r.checkMarks(c)
	r.checkTelemetry(c)
	names := map[string]place{}
	globs := map[string]place{} // pattern to where it was first
	var all *place              // where one left nothing to match
	for i := range c.Policies {
		p := &c.Policies[i]
		field := fmt.Sprintf("policies[%d]", i)
		if at, ok := r.sound(field + ".name"); ok {
			if first, again := names[p.Name]; again {
				r.fault(at, p.Name, faultf(ErrDuplicate, "%s is the name of the policy at %v already", p.Name, first), "want another name")
			} else {
				names[p.Name] = at
			}
		}
		r.checkReach(p, field, globs, &all)
		r.checkBudgets(c, p, field)
		r.checkLending(p, field)
		r.checkContainers(p, field)
	}
}

// checkReach reports globs that can never match because an earlier one takes
// all that they could.
func (r *reader) checkReach(p *Policy, field string, globs map[string]place, all **place) {
	for j := range p.Match {
		glob, some := p.Match[j].Path, len(p.Match[j].Annotations) > 0
		entry := fmt.Sprintf("%s.match[%d]", field, j)
		at, ok := r.sound(entry + ".path")
		if some || r.bad[entry] {
			if at, ok := r.sound(entry + ".annotation"); ok && *all != nil {
				r.fault(at, nil, faultf(ErrConflict, "is never reached: the '/**' at %v matches every cgroup before", *all), r.toTheEnd())
			}
			continue
		}
		if !ok {
			continue
		}
		first, again := globs[glob.String()]
		switch {
		case again:
			r.fault(at, glob.String(), faultf(ErrDuplicate, "%s is matched at %v already", glob, first), "keep one")
		case *all != nil:
			r.fault(at, glob.String(), faultf(ErrConflict, "%s is never reached: the '/**' at %v matches every cgroup before", glob, *all),
				r.toTheEnd())
		default:
			globs[glob.String()] = at
		}
		if glob.MatchesAll() && *all == nil {
			*all = &at
		}
	}
}

func (r *reader) toTheEnd() string {
	const fix = "move the policy with '/**' to the end"
	if len(r.files) > 1 {
		return fix + " of the main file, which counts last"
	}
	return fix
}

// checkBudgets reports swap budgets that contradict the host's or the
// policy's own swappiness.
func (r *reader) checkBudgets(c *Config, p *Policy, field string) {
	budget, known := c.Host.Swap.WriteBudget, !r.bad["host.swap.write_budget"]
	if at, ok := r.sound(field + ".swap.write_budget"); ok {
		own := *p.Swap.WriteBudget
		if known && own > budget {
			r.fault(at, own.String(), faultf(ErrConflict, "%v is above host.swap.write_budget, %v", own, budget),
				fmt.Sprintf("want at most %v, or raise the host's", budget))
			return
		}
		budget, known = own, true
	} else if r.bad[field+".swap"] {
		return
	}
	at, ok := r.sound(field + ".swappiness")
	if ok && known && budget == 0 && p.Swappiness == FixedSwappiness(memcg.SwappinessMax) {
		r.fault(at, "max", faultf(ErrConflict, "max takes anon only, and the swap write_budget of 0 lets none out"),
			"want a write_budget above 0, or another swappiness")
	}
}
