package controller

import (
	"testing"
	"time"

	"github.com/memagent/memagent/memcg"
	"github.com/memagent/memagent/telemetry"
)

func TestRequestsByNodeAreDearWhere(t *testing.T) {
	start := time.Unix(1000, 0)
	type paid struct {
		byNode bool
		mib    uint64
		took   time.Duration
	}
	const ms = time.Millisecond
	for _, c := range []struct {
		name  string
		paid  []paid
		after time.Duration
		want  bool
	}{
		{"nothing is known", nil, 0, false},
		{"they take more than twice as long for as much", []paid{{true, 20, 201 * ms}, {false, 20, 100 * ms}}, 0, true},
		{"not where it is twice as long", []paid{{true, 20, 200 * ms}, {false, 20, 100 * ms}}, 0, false},
		{"not before much was taken by node", []paid{{true, 15, 900 * ms}, {false, 20, 100 * ms}}, 0, false},
		{"nor before much was taken otherwise", []paid{{true, 20, 900 * ms}, {false, 15, 100 * ms}}, 0, false},
		{"in several requests", []paid{{true, 8, 200 * ms}, {false, 40, 100 * ms}, {true, 8, 200 * ms}}, 0, true},
		{"taking nothing costs as well", []paid{{true, 16, 10 * ms}, {true, 0, 900 * ms}, {false, 20, 100 * ms}}, 0, true},
		{"not when that is a minute ago", []paid{{true, 20, 900 * ms}, {false, 20, 100 * ms}}, priceFade + 1, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			var p placing
			for _, d := range c.paid {
				o := memcg.Outcome{Writes: 1, Took: d.took, Reclaimed: memcg.Value(d.mib * mib)}
				if d.byNode {
					o.Request.Nodes = memcg.NodesOf(1)
				}
				p.paid(start, &o, false)
			}
			if got := p.dear(start.Add(c.after)); got != c.want {
				t.Errorf("dear %t", got)
			}
		})
	}
}

func TestNoNodeIsNamedForAWhileAfterARequestInVain(t *testing.T) {
	start := time.Unix(1000, 0)
	for _, c := range []struct {
		name  string
		taken []uint64 // of 100 MiB each
		rests time.Duration
	}{
		{"none was made", nil, 0},
		{"it gave a quarter", []uint64{25}, 0},
		{"it gave less", []uint64{24}, 10 * time.Second},
		{"so did the next one", []uint64{24, 0}, 20 * time.Second},
		{"never for longer than five minutes", []uint64{0, 0, 0, 0, 0, 0, 0}, 5 * time.Minute},
		{"one that gave more ends it", []uint64{0, 0, 100}, 0},
		{"and it begins anew", []uint64{0, 0, 100, 0}, 10 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			var p placing
			for _, n := range c.taken {
				p.paid(start, &memcg.Outcome{Request: memcg.Reclaim{Bytes: 100 * mib, Nodes: memcg.NodesOf(1)}, Writes: 1, Reclaimed: memcg.Value(n * mib)}, false)
			}
			if c.rests > 0 && !p.dear(start.Add(c.rests-1)) || p.dear(start.Add(c.rests)) {
				t.Errorf("until %v", p.vain.until.Sub(start))
			}
		})
	}
}

func TestARequestThatWroteNothingHasNoPrice(t *testing.T) {
	var p placing
	p.paid(time.Unix(1000, 0), &memcg.Outcome{Took: time.Hour, Reclaimed: memcg.Value(1 << 30)}, false)
	p.paid(time.Unix(1000, 0), &memcg.Outcome{Writes: 1, Took: time.Hour}, false)
	if p.plain != (price{}) || p.byNode != (price{}) {
		t.Errorf("%+v", p)
	}
}

// Requests by node take ten times what plain ones do for as much. They are tried
// once a minute, and left alone in between.
func TestRequestsByNodeThatAreDearAreTriedOnceAMinute(t *testing.T) {
	b := nodeBench(t, telemetry.Enforce, byLottery, 500, 500)
	b.track(id("/app"))
	ob := spread("/app", lies{file: 200}, lies{anon: 200})
	last, _ := b.until(ob)
	plain := memcg.Outcome{Writes: 1, Took: 10 * time.Millisecond, Reclaimed: memcg.Value(20 * mib)}
	b.core.cgroups[id("/app")].placing.paid(b.now, &plain, false)
	byNode := 0
	for range 180 { // seconds
		o := plain
		if o.Request = last; !last.Nodes.Empty() {
			o.Took *= 10
		}
		requests, records := b.tick([]memcg.Outcome{o}, ob)
		if len(requests) != 1 {
			t.Fatalf("%d requests, held %q", len(requests), records[0].Held)
		}
		if last = requests[0]; !last.Nodes.Empty() {
			byNode++
		} else if records[0].NodeRule != costly {
			t.Fatalf("a plain request by rule %q", records[0].NodeRule)
		}
	}
	if byNode == 0 || byNode > 6 {
		t.Errorf("%d of 180 requests by node, want one or two a minute", byNode)
	}
}
