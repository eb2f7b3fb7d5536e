package controller

import (
	"errors"
	"strings"
	"testing"

	"github.com/memagent/memagent/container"
	"github.com/memagent/memagent/memcg"
	"github.com/memagent/memagent/telemetry"
)

// known answers by what a test has put into it; what is not settled yet is in
// later.
type known struct {
	is, later map[string]container.Description // by path
	asked     []string
	rounds    int
}

func (k *known) Round([]memcg.ID, bool) { k.rounds++ }

func (k *known) Describe(id memcg.ID) (container.Description, bool) {
	k.asked = append(k.asked, id.Path)
	_, waits := k.later[id.Path]
	return k.is[id.Path], !waits
}

const heeding = `policies:
  - {name: databases, match: [{annotation: {memagent.dev/policy: database}}], swappiness: 0}
  - {name: rest, match: [{path: '/kubepods/**'}], containers: {annotations: true, swappiness: true}}
`

func app(annotations ...string) container.Description {
	d := container.Description{ID: "1a2b", Runtime: container.Containerd, Pod: container.Pod{UID: "u", Namespace: "shop", Name: "cart-7d9"}, Name: "app"}
	for i := 0; i < len(annotations); i += 2 {
		if d.Annotations == nil {
			d.Annotations = map[string]string{}
		}
		d.Annotations[container.AnnotationPrefix+annotations[i]] = annotations[i+1]
	}
	return d
}

func (b *bench) record(path string) telemetry.Record {
	b.t.Helper()
	_, records := b.step(nil, 0, Observation{ID: id(path), Sample: quiet(64 * mib)})
	if len(records) != 1 {
		b.t.Fatalf("%d records", len(records))
	}
	return records[0]
}

func TestARecordHasTheContainerAndThePolicyThatItsAnnotationChose(t *testing.T) {
	b := newBench(t, telemetry.Enforce, "", heeding)
	k := &known{is: map[string]container.Description{"/docker/1a2b": app("policy", "database")}}
	b.core.DescribeBy(k)
	if got := b.track(id("/docker/1a2b"), id("/docker")); len(got) != 1 {
		t.Fatalf("watched %v", got)
	}
	r := b.record("/docker/1a2b")
	if r.Name != "shop/cart-7d9/app" || r.Container.ID != "1a2b" || r.Container.Namespace != "shop" || r.Policy != "databases" {
		t.Errorf("got %q, %+v under %s", r.Name, r.Container, r.Policy)
	}
	b.track(id("/docker/1a2b"), id("/docker"))
	if n := strings.Count(strings.Join(k.asked, " "), "1a2b"); n != 1 || k.rounds != 2 {
		t.Errorf("asked %v in %d rounds", k.asked, k.rounds)
	}
	if _, known := b.core.cgroups[id("/docker/1a2b")]; !known {
		t.Fatal("not watched any more")
	}
}

func TestWhatAContainerAsksForHoldsWithinItsPolicy(t *testing.T) {
	spec := app()
	spec.Swappiness, spec.Limit = memcg.Value(17), memcg.LimitOf(64*mib)
	b := newBench(t, telemetry.Enforce, "", heeding)
	b.core.DescribeBy(&known{is: map[string]container.Description{
		"/kubepods/a": spec, "/kubepods/b": app("observe", "true"), "/kubepods/c": app("swappiness", "60", "policy", "database"),
	}})
	b.track(id("/kubepods/a"), id("/kubepods/b"), id("/kubepods/c"), id("/kubepods/d"))
	for path, want := range map[string]struct{ swappiness, asks string }{
		"/kubepods/a": {"17", "swappiness 17, a limit of 64 MiB"},
		"/kubepods/b": {"kernel", "being observed only"},
		"/kubepods/c": {"0", "swappiness 60 (not granted: policy databases heeds no annotations)"},
		"/kubepods/d": {"kernel", ""},
	} {
		cg := b.core.cgroups[id(path)]
		if got := cg.policy.Swappiness.String(); got != want.swappiness || cg.who.shown.Asks != want.asks {
			t.Errorf("%s: swappiness %s, asks %q", path, got, cg.who.shown.Asks)
		}
		if observes := b.core.modeOf(cg) == telemetry.Observe; observes != (path == "/kubepods/b") {
			t.Errorf("%s: observes %v", path, observes)
		}
	}
	// Another config is granted by anew, and nobody is asked for it.
	b.reconfigure(telemetry.Enforce, "policies:\n  - {name: rest, match: [{path: '/**'}]}\n")
	if cg := b.core.cgroups[id("/kubepods/a")]; cg.policy.Swappiness.String() != "kernel" || cg.who.name != "shop/cart-7d9/app" ||
		!strings.Contains(cg.who.shown.Asks, "not granted: policy rest heeds no swappiness of a spec") {
		t.Errorf("got %v, %+v", cg.policy, cg.who)
	}
}

func TestNonsenseOfAContainerIsToldOnceAndCostsNothingElse(t *testing.T) {
	d := app("swappiness", "lots", "squeeze", "off")
	d.Faults = []error{errors.New("linux.resources.memory.limit is -7")}
	b := newBench(t, telemetry.Enforce, "", heeding)
	b.core.DescribeBy(&known{is: map[string]container.Description{"/kubepods/a": d}})
	b.track(id("/kubepods/a"))
	b.track(id("/kubepods/a"))
	told := strings.Join(b.notes.said, "\n")
	if strings.Count(told, "container /kubepods/a") != 1 || !b.core.cgroups[id("/kubepods/a")].policy.Squeeze.Off {
		t.Errorf("told %q", told)
	}
}

func TestAContainerThatIsKnownLateTakesItsPolicyThen(t *testing.T) {
	b := newBench(t, telemetry.Enforce, "", heeding)
	k := &known{is: map[string]container.Description{}, later: map[string]container.Description{}}
	k.later["/kubepods/a"], k.later["/kubepods/a/container"] = container.Description{}, container.Description{}
	b.core.DescribeBy(k)
	a, inner := id("/kubepods/a"), id("/kubepods/a/container")
	if got := b.track(a, inner); len(got) != 2 || b.core.cgroups[a].policy.Name != "rest" {
		t.Fatalf("watched %v", got)
	}
	clear(k.later)
	k.is[a.Path] = app("policy", "database")
	own := app("policy", "database")
	own.Inner = "/container"
	k.is[inner.Path] = own
	got, gone := b.core.Track([]memcg.ID{a, inner}, true, b.now)
	if len(got) != 1 || got[0] != inner || b.core.cgroups[inner].policy.Name != "databases" || len(gone) != 0 {
		t.Errorf("watched %v, gone %v", got, gone)
	}
	if left := b.core.Unwatched(); len(left) != 1 || left[0] != a {
		t.Errorf("the container's own is left to that of its processes: %v", left)
	}
}

func TestTheCgroupOfAContainersProcessesStandsForItFromWhenItIsThere(t *testing.T) {
	b := newBench(t, telemetry.Enforce, "", heeding)
	own := app("policy", "database")
	own.Inner = container.Payload
	own.Faults = []error{errors.New("half of it is nonsense")}
	b.core.DescribeBy(&known{is: map[string]container.Description{"/kubepods/a": app("policy", "database"), "/kubepods/a/container": own}})
	a, inner := id("/kubepods/a"), id("/kubepods/a/container")
	for _, step := range []struct {
		name string
		all  []memcg.ID
		want memcg.ID
	}{
		{"alone", []memcg.ID{a}, a},
		{"with that of its processes", []memcg.ID{a, inner}, inner},
		{"the same again", []memcg.ID{a, inner}, inner},
		{"alone again", []memcg.ID{a}, a},
	} {
		if got, _ := b.core.Track(step.all, true, b.now); len(got) != 1 || got[0] != step.want {
			t.Errorf("%s: watched %v, want %v", step.name, got, step.want)
		}
	}
	if told := strings.Join(b.notes.said, "\n"); told != "container /kubepods/a" {
		t.Errorf("told %q", told)
	}
}

func TestAPolicyForTheContainersOwnCgroupAloneKeepsIt(t *testing.T) {
	b := newBench(t, telemetry.Enforce, "", `policies:
  - name: own
    match: [{path: /kubepods/a}]
`)
	d := app()
	own := d
	own.Inner = container.Payload
	b.core.DescribeBy(&known{is: map[string]container.Description{"/kubepods/a": d, "/kubepods/a/container": own}})
	if got := b.track(id("/kubepods/a"), id("/kubepods/a/container")); len(got) != 1 || got[0] != id("/kubepods/a") {
		t.Errorf("watched %v", got)
	}
}

func TestAContainerWithAPayloadOfItsOwnPolicyIsAskedOnceUntilThatComesOrGoes(t *testing.T) {
	b := newBench(t, telemetry.Enforce, "", `policies:
  - {name: inside, match: [{path: '/kubepods/*/container'}]}
  - {name: rest, match: [{path: '/kubepods/**'}]}
`)
	own := app()
	own.Inner = container.Payload
	k := &known{is: map[string]container.Description{"/kubepods/a": app(), "/kubepods/a/container": own}}
	b.core.DescribeBy(k)
	outer, inner := id("/kubepods/a"), id("/kubepods/a/container")
	for i, step := range []struct {
		all  []memcg.ID
		asks int // of the outer one, so far
	}{{[]memcg.ID{outer}, 1}, {[]memcg.ID{outer}, 1}, {[]memcg.ID{outer, inner}, 2}, {[]memcg.ID{outer, inner}, 2}, {[]memcg.ID{outer}, 3}, {[]memcg.ID{outer}, 3}} {
		b.track(step.all...)
		asks := 0
		for _, path := range k.asked {
			if path == outer.Path {
				asks++
			}
		}
		if asks != step.asks || b.core.cgroups[outer] == nil {
			t.Errorf("round %d: asked %d times, want %d; watched: %v", i, asks, step.asks, b.core.cgroups[outer] != nil)
		}
	}
}
