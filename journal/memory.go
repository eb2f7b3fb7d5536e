package journal

import (
	"fmt"
	"slices"
	"time"

	"github.com/memagent/memagent/memcg"
)

// maxCooldown is the longest time that a cgroup can be left alone for: a day. A
// longer one is a clock that was set, not a cool-down.
const maxCooldown = 24 * time.Hour

// Memory returns what was remembered, as it holds now. Of an earlier boot only
// the host's budgets are left. Cool-downs that are over are left out, and none
// lasts longer from now than it was to last in all, whatever has become of the
// clock; what was spent at a time that has not come counts as spent now.
func (k *Keeper) Memory() Memory {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.now()
	m := Memory{Spent: slices.Clone(k.memory.Spent), Cooldowns: slices.Clone(k.memory.Cooldowns)}
	for i := range m.Spent {
		if m.Spent[i].At.After(now) {
			m.Spent[i].At = now
		}
	}
	m.Cooldowns = slices.DeleteFunc(m.Cooldowns, func(c Cooldown) bool { return !c.Until.After(now) })
	for i := range m.Cooldowns {
		if c := &m.Cooldowns[i]; c.Until.Sub(now) > c.Length {
			c.Until = now.Add(c.Length)
		}
	}
	return m
}

// Remember puts m in the place of what was remembered and writes the journal.
// The errors are those of the file, and ErrTooMuch for more than MaxMemory of
// either; nothing has changed then. Lengths are cut to a day. It is for what
// changed, not for every tick: each call waits for the disk.
func (k *Keeper) Remember(m Memory) error {
	m = Memory{Spent: slices.Clone(m.Spent), Cooldowns: slices.Clone(m.Cooldowns)}
	for i := range m.Cooldowns {
		m.Cooldowns[i].Length = min(max(m.Cooldowns[i].Length, 0), maxCooldown)
	}
	if err := m.check(); err != nil {
		return fmt.Errorf("remember: %w: %w", memcg.ErrInvalid, err)
	}
	return k.commit(func() func() {
		before := k.memory
		k.memory = m
		return func() { k.memory = before }
	})
}

// check says what cannot be remembered.
func (m Memory) check() error {
	for _, s := range m.Spent {
		if s.Cgroup == (memcg.ID{}) {
			continue
		}
		if err := checkID(s.Cgroup); err != nil {
			return err
		}
	}
	for _, c := range m.Cooldowns {
		if err := checkID(c.Cgroup); err != nil {
			return err
		}
		if c.Length < 0 || c.Length > maxCooldown {
			return fmt.Errorf("%s is to be left alone for %v", c.Cgroup, c.Length)
		}
	}
	return nil
}

// ofHost returns what is left of m when the host was booted again.
func (m Memory) ofHost() Memory {
	return Memory{Spent: slices.DeleteFunc(slices.Clone(m.Spent), func(s Spent) bool { return s.Cgroup != (memcg.ID{}) })}
}

// without returns m without one cgroup.
func (m Memory) without(id memcg.ID) Memory {
	return Memory{
		Spent:     slices.DeleteFunc(slices.Clone(m.Spent), func(s Spent) bool { return s.Cgroup == id }),
		Cooldowns: slices.DeleteFunc(slices.Clone(m.Cooldowns), func(c Cooldown) bool { return c.Cgroup == id }),
	}
}

// knows reports whether anything is remembered of a cgroup.
func (m Memory) knows(id memcg.ID) bool {
	return slices.ContainsFunc(m.Spent, func(s Spent) bool { return s.Cgroup == id }) ||
		slices.ContainsFunc(m.Cooldowns, func(c Cooldown) bool { return c.Cgroup == id })
}
