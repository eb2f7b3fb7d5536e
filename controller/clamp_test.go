package controller

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/memagent/memagent/memcg"
	"github.com/memagent/memagent/telemetry"
)

func outcome(r memcg.Reclaim, err error, swapped uint64) memcg.Outcome {
	return memcg.Outcome{Request: r, Err: err, Writes: 1, Asked: r.Bytes, Reclaimed: memcg.Value(r.Bytes), SwapOut: memcg.Value(swapped)}
}

func withSwappiness(v string) string {
	return strings.Replace(policyApp, "law:", "swappiness: "+v+"\n    law:", 1)
}

func TestC30WithoutSwappinessAPolicyOfZeroIsSkippedAndNeverDegraded(t *testing.T) {
	b := newBench(t, telemetry.Enforce, "", withSwappiness("0"))
	b.track(id("/app"))
	requests, _ := b.settle(4, seen("/app", 512*mib))
	if v, set := requests[0].Swappiness.Get(); !set || v != 0 {
		t.Fatalf("asked with swappiness %s", requests[0].Swappiness)
	}
	refused := outcome(requests[0], fmt.Errorf("write memory.reclaim: %w", memcg.ErrUnsupported), 0)
	b.step([]memcg.Outcome{refused}, 4, seen("/app", 512*mib))
	for range 50 {
		requests, records := b.step(nil, 4, seen("/app", 512*mib))
		if len(requests) != 0 {
			t.Fatalf("asked again: %+v", requests)
		}
		if records[0].Want > 0 && !strings.Contains(records[0].Held, "might swap") {
			t.Fatalf("held for %q", records[0].Held)
		}
	}
	if !slices.Equal(b.notes.said, []string{"reclaim-swappiness"}) {
		t.Errorf("said %v", b.notes.said)
	}
}

func TestC30APreferenceDegradesWithOneWarning(t *testing.T) {
	b := newBench(t, telemetry.Enforce, "", withSwappiness("100"))
	b.track(id("/app"))
	requests, _ := b.settle(4, seen("/app", 512*mib))
	refused := outcome(requests[0], fmt.Errorf("write memory.reclaim: %w", memcg.ErrUnsupported), 0)
	b.step([]memcg.Outcome{refused}, 0, seen("/app", 512*mib))
	requests, records := b.settle(4, seen("/app", 512*mib))
	if _, set := requests[0].Swappiness.Get(); set {
		t.Errorf("passed swappiness %s again", requests[0].Swappiness)
	}
	if records[0].Swappiness != (memcg.Swappiness{}) {
		t.Errorf("the record claims swappiness %s", records[0].Swappiness)
	}
}

func TestC35ARightThatIsMissingIsSaidOnceAndTheCgroupOnlyObserved(t *testing.T) {
	b := newBench(t, telemetry.Enforce, "", policyAll)
	b.track(id("/app"), id("/other"))
	requests, _ := b.settle(4, seen("/app", 512*mib), seen("/other", 512*mib))
	denied := outcome(requests[0], fmt.Errorf("open /app/memory.reclaim: %w", memcg.ErrDenied), 0)
	fine := outcome(requests[1], nil, 0)
	b.step([]memcg.Outcome{denied, fine}, 4, seen("/app", 512*mib), seen("/other", 512*mib))
	asked := map[string]int{}
	for range 20 {
		requests, records := b.step(nil, 4, seen("/app", 512*mib), seen("/other", 512*mib))
		for _, r := range requests {
			asked[r.Cgroup.Path]++
		}
		if records[0].Want > 0 && !strings.Contains(records[0].Held, "/app/memory.reclaim") {
			t.Fatalf("held for %q, want the file named", records[0].Held)
		}
	}
	if asked["/app"] != 0 {
		t.Errorf("asked %v", asked)
	}
	if !slices.Equal(b.notes.said, []string{"reclaim /app"}) {
		t.Errorf("said %v", b.notes.said)
	}
}

func TestC27PartialIsANormalEnd(t *testing.T) {
	b := newBench(t, telemetry.Enforce, "", policyApp)
	b.track(id("/app"))
	requests, _ := b.settle(4, seen("/app", 512*mib))
	b.step([]memcg.Outcome{outcome(requests[0], fmt.Errorf("EAGAIN: %w", memcg.ErrPartial), 0)}, 4, seen("/app", 512*mib))
	if len(b.notes.said) != 0 {
		t.Errorf("warned: %v", b.notes.said)
	}
	if held := b.core.cgroups[id("/app")].held; held != "" {
		t.Errorf("held: %s", held)
	}
}

func TestFewWorkersServeEveryCgroupInTurn(t *testing.T) {
	b := newBench(t, telemetry.Enforce, "", policyAll)
	obs := []Observation{}
	for _, p := range []string{"/a", "/b", "/c", "/d", "/e"} {
		obs = append(obs, seen(p, 512*mib))
	}
	b.track(id("/a"), id("/b"), id("/c"), id("/d"), id("/e"))
	asked := map[string]int{}
	var done []memcg.Outcome
	for range 60 {
		requests, _ := b.step(done, 1, obs...)
		if len(requests) > 1 {
			t.Fatalf("%d requests for one worker", len(requests))
		}
		done = done[:0]
		for _, r := range requests {
			asked[r.Cgroup.Path]++
			done = append(done, outcome(r, nil, 0))
		}
	}
	for _, ob := range obs {
		if asked[ob.ID.Path] < 5 {
			t.Errorf("%s was served %d times of %v", ob.ID.Path, asked[ob.ID.Path], asked)
		}
	}
}

const policyBudget = `
host: {swap: {write_budget: 1MiB/s}}
policies:
  - name: all
    match: [{path: /**}]
    law: tmo
    squeeze: {max_step: 10%}
`

func TestTheHostsSwapBudgetHoldsOverAllCgroupsAndAllTime(t *testing.T) {
	b := newBench(t, telemetry.Enforce, "", policyBudget)
	b.track(id("/a"), id("/b"), id("/c"))
	var done []memcg.Outcome
	var spent uint64
	const ticks = 100
	for range ticks {
		requests, records := b.step(done, 4, seen("/a", 512*mib), seen("/b", 512*mib), seen("/c", 512*mib))
		done = done[:0]
		for _, r := range requests {
			done = append(done, outcome(r, nil, r.Bytes)) // the worst case: all of it went to swap
			spent += r.Bytes
		}
		for _, r := range records {
			if r.Want > 0 && !r.Acted && r.Held == "" {
				t.Fatalf("a wish was dropped without a word: %+v", r)
			}
		}
	}
	if most := uint64(ticks+10) * mib; spent > most {
		t.Errorf("spent %d MiB in %d s, the budget and its window allow %d", spent/mib, ticks, most/mib)
	}
	if spent < ticks*mib*8/10 {
		t.Errorf("spent only %d MiB in %d s of a budget that was wanted whole", spent/mib, ticks)
	}
}

func TestABudgetDoesNotBindWhatCannotSwap(t *testing.T) {
	for name, change := range map[string]func(*bench){
		"the host has no swap": func(b *bench) { b.host.SwapTotal, b.host.SwapFree = memcg.Value(0), memcg.Value(0) },
	} {
		b := newBench(t, telemetry.Enforce, "", strings.Replace(policyBudget, "1MiB/s", "0", 1))
		change(b)
		b.track(id("/a"))
		if requests, records := b.settle(4, seen("/a", 512*mib)); len(requests) != 1 {
			t.Errorf("%s: held for %q", name, records[0].Held)
		}
	}
	b := newBench(t, telemetry.Enforce, "", strings.Replace(policyBudget, "1MiB/s", "0", 1))
	b.track(id("/a"))
	if requests, records := b.settle(4, seen("/a", 512*mib)); len(requests) != 0 || !strings.Contains(records[0].Held, "budget of the host is spent") {
		t.Errorf("a budget of 0 allowed %v, held for %q", requests, records[0].Held)
	}
}

func TestAnOutcomeOfAForgottenCgroupFreesItsReservation(t *testing.T) {
	b := newBench(t, telemetry.Enforce, "", policyBudget)
	b.track(id("/a"))
	requests, _ := b.settle(4, seen("/a", 512*mib))
	b.track()
	b.step([]memcg.Outcome{outcome(requests[0], fmt.Errorf("%w", memcg.ErrGone), 0)}, 4)
	if b.core.swap.reserved != 0 || len(b.core.inFlight) != 0 {
		t.Errorf("%v bytes stay reserved, %d requests in flight", b.core.swap.reserved, len(b.core.inFlight))
	}
}
