package config

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/memagent/memagent/memcg"
)

// drawPercent draws a share above low that a file can have.
func drawPercent(t *rapid.T, low, high Percent) Percent {
	const parts = 1e8 // of 1: six decimals of a percentage
	n := rapid.Int64Range(int64(math.Round(float64(low)*parts)), int64(math.Round(float64(high)*parts))).Draw(t, "share")
	p, err := strconv.ParseFloat(fmt.Sprintf("%de-8", n), 64)
	if err != nil {
		t.Fatal(err)
	}
	return Percent(p)
}

func drawAmount(t *rapid.T, most Percent) Amount {
	if rapid.Bool().Draw(t, "is a share") {
		return ShareOf(drawPercent(t, 0, most))
	}
	return BytesOf(drawBytes(t))
}

func drawBytes(t *rapid.T) Bytes {
	return Bytes(rapid.Uint64Range(0, uint64(MaxBytes)).Draw(t, "bytes"))
}

func drawDuration(t *rapid.T, low, high time.Duration) time.Duration {
	return time.Duration(rapid.Int64Range(int64(low), int64(high)).Draw(t, "duration"))
}

const anyPercent Percent = 1e-8

func drawPolicy(t *rapid.T, hostBudget Rate) Policy {
	p := defaultPolicy()
	switch rapid.IntRange(0, 2).Draw(t, "swappiness") {
	case 1:
		p.Swappiness = FixedSwappiness(rapid.IntRange(0, memcg.SwappinessMax-1).Draw(t, "value"))
	case 2:
		low := rapid.IntRange(0, 200).Draw(t, "min")
		base := rapid.IntRange(low, 200).Draw(t, "base")
		p.Swappiness = AutoSwappiness(base, low, rapid.IntRange(base, 200).Draw(t, "max"))
	}
	p.Law = rapid.SampledFrom([]Law{LawMemagent, LawTMO, LawSenpai}).Draw(t, "law")
	if p.Squeeze.Off = rapid.Bool().Draw(t, "off"); !p.Squeeze.Off {
		p.Squeeze = Squeeze{
			MaxStep:        drawPercent(t, anyPercent, MaxStep),
			PressureTarget: drawPercent(t, anyPercent, 1),
			CostTarget:     drawPercent(t, anyPercent, 1),
			Floor:          drawBytes(t),
			IdleAge:        drawDuration(t, MinIdleAge, MaxIdleAge),
		}
	}
	if rapid.Bool().Draw(t, "headroom") {
		p.Headroom = drawAmount(t, MaxHeadroom)
	}
	if rapid.Bool().Draw(t, "budget") {
		r := Rate(rapid.Uint64Range(0, uint64(hostBudget)).Draw(t, "rate"))
		p.Swap.WriteBudget = &r
	}
	p.Numa = Numa{
		Reclaim:       rapid.SampledFrom([]NumaReclaim{NumaReclaimOff, NumaReclaimLottery}).Draw(t, "reclaim"),
		Mems:          rapid.SampledFrom([]NumaMems{NumaMemsKeep, NumaMemsAvoidShort, NumaMemsCompact, NumaMemsSpread}).Draw(t, "mems"),
		SwapWhenShort: rapid.Bool().Draw(t, "swap when short"),
		Demote:        rapid.Bool().Draw(t, "demote"),
	}
	if ids := rapid.SliceOfNDistinct(rapid.IntRange(0, int(memcg.MaxNode)), 0, 3, rapid.ID[int]).Draw(t, "nodes"); len(ids) > 0 {
		slices.Sort(ids)
		for _, id := range ids {
			p.Numa.Nodes = append(p.Numa.Nodes, memcg.NodeID(id))
		}
	}
	if p.High.Lend = rapid.Bool().Draw(t, "lend"); p.High.Lend && rapid.Bool().Draw(t, "ceiling") {
		p.High.Ceiling = drawAmount(t, 1)
	}
	p.High.AnonGrowth = p.High.Lend && rapid.Bool().Draw(t, "anon growth")
	p.SwapGuard = p.Law == LawMemagent && rapid.Bool().Draw(t, "guard")
	p.Observe = rapid.Bool().Draw(t, "observe")
	p.Containers = Containers{Annotations: rapid.Bool().Draw(t, "annotations"), Swappiness: p.Swappiness.Kind != SwappinessFixed && rapid.Bool().Draw(t, "swappiness of specs")}
	return p
}

func drawConfig(t *rapid.T) *Config {
	c := &Config{
		Mode:     rapid.SampledFrom([]Mode{Observe, Enforce}).Draw(t, "mode"),
		Interval: drawDuration(t, MinInterval, MaxInterval),
		StateDir: rapid.OneOf(rapid.StringMatching(`(/[a-z.][a-z ~'#:-]{0,6}[a-z]){1,4}`), rapid.Just(DefaultStateDir)).Draw(t, "state_dir"),
		Host: Host{
			Swap: HostSwap{WriteBudget: Rate(drawBytes(t)), KeepFree: drawPercent(t, 0, 1)},
		},
	}
	c.Host.Reserve = drawAmount(t, 1)
	c.Telemetry = drawTelemetry(t)
	c.Host.Nodes.Low = drawPercent(t, anyPercent, MaxNodeMark-anyPercent)
	c.Host.Nodes.High = drawPercent(t, c.Host.Nodes.Low+anyPercent, MaxNodeMark)
	names := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-z0-9-]{1,5}|true|null|0x1f|1e3`), 1, 4, rapid.ID[string]).Draw(t, "names")
	globs := rapid.SliceOfNDistinct(rapid.Custom(drawGlob).Filter(func(g string) bool { return g != "/**" }),
		len(names), len(names)+3, rapid.ID[string]).Draw(t, "globs")
	for i, name := range names {
		p := drawPolicy(t, c.Host.Swap.WriteBudget)
		p.Name = name
		mine := globs[i : i+1]
		if i == len(names)-1 {
			mine = globs[i:]
		}
		for _, text := range mine {
			g, err := CompileGlob(text)
			if err != nil {
				t.Fatal(err)
			}
			p.Match = append(p.Match, Selector{Path: g})
		}
		if rapid.Bool().Draw(t, "by annotation") {
			p.Match = append(p.Match, Selector{Annotations: []Annotation{
				{Key: AnnotationPolicy, Value: rapid.StringMatching(`[ -~]{0,5}[!-~]`).Draw(t, "value")},
				{Key: "memagent.dev/x", Value: "true"},
			}})
		}
		c.Policies = append(c.Policies, p)
	}
	return c
}

func TestAConfigSurvivesBeingDescribed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := drawConfig(t)
		got, err := Parse("described", []byte(want.Describe()))
		if err != nil {
			t.Fatalf("%v\n%s", err, want.Describe())
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s\n%s", diff, want.Describe())
		}
	})
}

func FuzzParse(f *testing.F) {
	files, err := filepath.Glob("testdata/bad/*.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range append(files, exampleFile, "default.yaml") {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	for _, c := range textTable {
		f.Add([]byte(c.text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := Parse("fuzz", data)
		if err == nil {
			again, err := Parse("described", []byte(c.Describe()))
			if err != nil {
				t.Fatalf("the description is refused: %v\n%s", err, c.Describe())
			}
			if diff := cmp.Diff(c, again); diff != "" {
				t.Fatalf("the description differs (-file +described):\n%s", diff)
			}
			return
		}
		if c != nil {
			t.Fatal("a config beside an error")
		}
		faults, ok := errors.AsType[Errors](err)
		if !ok || len(faults) == 0 || len(faults) > maxErrors+1 {
			t.Fatalf("%d faults, as %T", len(faults), err)
		}
		for i, e := range faults {
			if !oneKind(e) || (e.Line < 1 || e.Col < 1) && i < maxErrors {
				t.Fatalf("%d:%d: no place or no single kind: %v", e.Line, e.Col, e)
			}
		}
	})
}
