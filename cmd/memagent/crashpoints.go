//go:build crashpoints

package main

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/memagent/memagent/journal"
)

// journalOptions have the lab's build kill itself as $MEMAGENT_CRASH_AT says.
func journalOptions() ([]journal.Option, error) {
	text := os.Getenv("MEMAGENT_CRASH_AT")
	if text == "" {
		return nil, nil
	}
	visit, err := crashPoint(text, func() {
		_ = unix.Kill(os.Getpid(), unix.SIGKILL)
		select {} // until it comes
	})
	if err != nil {
		return nil, err
	}
	return []journal.Option{journal.OnStep(visit)}, nil
}

// crashPoint reads "step" or "step:n", and returns what calls die when the step
// is passed for the first or the nth time.
func crashPoint(text string, die func()) (visit func(journal.Step), err error) {
	step, count, counted := strings.Cut(text, ":")
	n := int64(1)
	if counted {
		if n, err = strconv.ParseInt(count, 10, 64); err != nil || n < 1 {
			return nil, fmt.Errorf("MEMAGENT_CRASH_AT=%s: %q is not a number from 1 on", text, count)
		}
	}
	if !slices.Contains(journal.Steps(), journal.Step(step)) {
		return nil, fmt.Errorf("MEMAGENT_CRASH_AT=%s: the journal has no step %q, want one of %v", text, step, journal.Steps())
	}
	var passed atomic.Int64
	return func(s journal.Step) {
		if string(s) == step && passed.Add(1) == n {
			die()
		}
	}, nil
}
