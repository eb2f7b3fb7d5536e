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

// Cooldowns returns what was remembered since the host's boot, as it holds now.
// Those that are over are left out, and none lasts longer from now than it was to
// last in all, whatever has become of the clock.
func (k *Keeper) Cooldowns() []Cooldown {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.now()
	list := slices.DeleteFunc(slices.Clone(k.rests), func(c Cooldown) bool { return !c.Until.After(now) })
	for i := range list {
		if c := &list[i]; c.Until.Sub(now) > c.Length {
			c.Until = now.Add(c.Length)
		}
	}
	return list
}

// Remember puts a list in the place of what was remembered and writes the journal.
// The errors are those of the file, and ErrTooMuch for more than MaxCooldowns;
// nothing has changed then. Lengths are cut to a day. It is for what changed, not
// for every tick: each call waits for the disk.
func (k *Keeper) Remember(list []Cooldown) error {
	list = slices.Clone(list)
	for i := range list {
		list[i].Length = min(max(list[i].Length, 0), maxCooldown)
	}
	if err := checkRests(list); err != nil {
		return fmt.Errorf("remember: %w: %w", memcg.ErrInvalid, err)
	}
	return k.commit(func() func() {
		before := k.rests
		k.rests = list
		return func() { k.rests = before }
	})
}

// checkRests says what cannot be remembered.
func checkRests(list []Cooldown) error {
	for _, c := range list {
		if err := checkID(c.Cgroup); err != nil && c.Cgroup != Host {
			return err
		}
		if c.Length < 0 || c.Length > maxCooldown {
			return fmt.Errorf("%s is to be left alone for %v", c.Cgroup, c.Length)
		}
	}
	return nil
}
