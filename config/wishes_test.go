package config

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/memagent/memagent/memcg"
)

const twoWays = `
policies:
  - name: databases
    match: [{annotation: {memagent.dev/policy: database}}]
    swappiness: 0
  - name: gold
    match: [{path: '/kubepods.slice/**', annotation: {memagent.dev/tier: gold, memagent.dev/zone: 'a 1'}}]
  - name: everything
    match: [{path: '/**'}]
    containers: {annotations: true, swappiness: true}
`

func TestAPolicyIsMatchedByTheAnnotationsOfTheContainer(t *testing.T) {
	c, err := Parse("test", []byte(twoWays))
	if err != nil {
		t.Fatal(err)
	}
	database := map[string]string{"memagent.dev/policy": "database", "io.kubernetes.cri.sandbox-name": "x"}
	gold := map[string]string{"memagent.dev/tier": "gold", "memagent.dev/zone": "a 1"}
	for _, row := range []struct {
		name, path  string
		annotations map[string]string
		want        string
	}{
		{"by annotation alone, wherever it is", "/machine.slice/libpod-1.scope", database, "databases"},
		{"by path and annotations", "/kubepods.slice/x", gold, "gold"},
		{"the right annotations at another path", "/machine.slice/x", gold, "everything"},
		{"one of two annotations", "/kubepods.slice/x", map[string]string{"memagent.dev/tier": "gold"}, "everything"},
		{"another value", "/a", map[string]string{"memagent.dev/policy": "databases"}, "everything"},
		{"no container", "/kubepods.slice/x", nil, "everything"},
		{"the root", "/", database, ""},
	} {
		got := ""
		if p := c.MatchContainer(row.path, row.annotations); p != nil {
			got = p.Name
		}
		if got != row.want {
			t.Errorf("%s: got %q, want %q", row.name, got, row.want)
		}
	}
	if n := testing.AllocsPerRun(100, func() { c.MatchContainer("/kubepods.slice/x", gold) }); n != 0 {
		t.Errorf("allocates %v times", n)
	}
	if text := c.Policies[1].String(); !strings.Contains(text, "/kubepods.slice/** with memagent.dev/tier: gold with memagent.dev/zone: a 1") {
		t.Error(text)
	}
}

func TestWhatAContainerAsksForIsReadStrictly(t *testing.T) {
	c, err := Parse("test", []byte(twoWays))
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		name string
		in   map[string]string
		spec memcg.Field
		want Wishes
		says []string // a part of each fault
		kind error
	}{
		{name: "nothing"},
		{name: "annotations of others are passed over", in: map[string]string{"memagent.device/x": "1", "io.x": "y"}},
		{name: "all of it", in: map[string]string{"memagent.dev/observe": "true", "memagent.dev/squeeze": "off", "memagent.dev/lend": "false", "memagent.dev/swappiness": "0", "memagent.dev/policy": "database"},
			want: Wishes{Observe: true, NoSqueeze: true, NoLend: true, Swappiness: memcg.Value(0)}},
		{name: "swappiness of the spec", spec: memcg.Value(200), want: Wishes{SpecSwappiness: memcg.Value(200)}},
		{name: "a spec beyond what there is", spec: memcg.Value(201), says: []string{"linux.resources.memory.swappiness: 201 is above 200"}, kind: ErrValue},
		{name: "observe other than true", in: map[string]string{"memagent.dev/observe": "false"}, says: []string{`false is not true, the only thing to ask for`}, kind: ErrValue},
		{name: "signed swappiness", in: map[string]string{"memagent.dev/swappiness": "+1"}, says: []string{"+1 is not a whole number of 0..200"}, kind: ErrValue},
		{name: "octal swappiness", in: map[string]string{"memagent.dev/swappiness": "060"}, says: []string{"060 is not a whole number"}, kind: ErrValue},
		{name: "anon alone is not theirs to ask", in: map[string]string{"memagent.dev/swappiness": "201"}, says: []string{"201 is not a whole number of 0..200"}, kind: ErrValue},
		{name: "a typo", in: map[string]string{"memagent.dev/swapiness": "60"}, says: []string{"did you mean memagent.dev/swappiness?"}, kind: ErrUnknownKey},
		{name: "a key that a selector looks at", in: map[string]string{"memagent.dev/tier": "silver"}},
		{name: "a policy that nobody has", in: map[string]string{"memagent.dev/policy": "databse"}, says: []string{"no policy is matched by databse"}, kind: ErrValue},
		{name: "nonsense costs nothing else", in: map[string]string{"memagent.dev/lend": "", "memagent.dev/squeeze": "off", "memagent.dev/observe": "yes"},
			want: Wishes{NoSqueeze: true}, says: []string{"memagent.dev/lend", "memagent.dev/observe"}, kind: ErrValue},
	} {
		got, faults := c.Wishes(row.in, row.spec)
		if diff := cmp.Diff(row.want, got, cmp.AllowUnexported(memcg.Field{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", row.name, diff)
		}
		if len(faults) != len(row.says) {
			t.Errorf("%s: got %v", row.name, faults)
			continue
		}
		for i, err := range faults {
			if !strings.Contains(err.Error(), row.says[i]) || !errors.Is(err, row.kind) {
				t.Errorf("%s: got %v", row.name, err)
			}
		}
	}
}

func TestAWishIsGrantedWithinTheBoundsOfThePolicy(t *testing.T) {
	heeds := Containers{Annotations: true, Swappiness: true}
	auto := AutoSwappiness(60, 20, 100)
	for _, row := range []struct {
		name   string
		policy Policy
		wish   Wishes
		want   Swappiness
		denied string
	}{
		{"the kernel's gives way", Policy{Containers: heeds}, Wishes{Swappiness: memcg.Value(7)}, FixedSwappiness(7), ""},
		{"within bounds", Policy{Containers: heeds, Swappiness: auto}, Wishes{SpecSwappiness: memcg.Value(30)}, FixedSwappiness(30), ""},
		{"above bounds", Policy{Name: "p", Containers: heeds, Swappiness: auto}, Wishes{Swappiness: memcg.Value(200)}, FixedSwappiness(100), "swappiness 200: policy p allows 20..100, so it is 100"},
		{"never swapping, where the policy does not allow it", Policy{Name: "p", Containers: heeds, Swappiness: auto}, Wishes{SpecSwappiness: memcg.Value(0)}, FixedSwappiness(20), "so it is 20"},
		{"a fixed one stays", Policy{Name: "p", Containers: heeds, Swappiness: FixedSwappiness(0)}, Wishes{Swappiness: memcg.Value(60)}, FixedSwappiness(0), "policy p has it fixed at 0"},
		{"the annotation goes before the spec", Policy{Containers: heeds}, Wishes{Swappiness: memcg.Value(7), SpecSwappiness: memcg.Value(8)}, FixedSwappiness(7), ""},
		{"without leave for annotations the spec holds", Policy{Name: "p", Containers: Containers{Swappiness: true}}, Wishes{Swappiness: memcg.Value(7), SpecSwappiness: memcg.Value(8)}, FixedSwappiness(8), "policy p heeds no annotations"},
		{"without leave for the spec's", Policy{Name: "p", Containers: Containers{Annotations: true}}, Wishes{SpecSwappiness: memcg.Value(8)}, Swappiness{}, "policy p heeds no swappiness of a spec"},
	} {
		got, denied := row.policy.Grant(row.wish)
		if text := strings.Join(denied, "; "); got.Swappiness != row.want || row.denied == "" != (text == "") || !strings.Contains(text, row.denied) {
			t.Errorf("%s: got %v, denied %q", row.name, got.Swappiness, text)
		}
	}
}

func TestWhatTheOperatorForbidsNoContainerCanAllow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPolicy(t, 1<<30)
		before := p
		maybe := func(name string) memcg.Field {
			if rapid.Bool().Draw(t, name) {
				return memcg.Value(rapid.Uint64Range(0, MaxWish).Draw(t, name))
			}
			return memcg.Field{}
		}
		w := Wishes{Observe: rapid.Bool().Draw(t, "w observe"), NoSqueeze: rapid.Bool().Draw(t, "w squeeze"), NoLend: rapid.Bool().Draw(t, "w lend"),
			Swappiness: maybe("w swappiness"), SpecSwappiness: maybe("w spec")}
		got, denied := p.Grant(w)
		switch {
		case !reflect.DeepEqual(p, before):
			t.Fatal("changed the policy of everybody else")
		case p.Observe && !got.Observe, p.Squeeze.Off && !got.Squeeze.Off, !p.High.Lend && got.High.Lend:
			t.Fatalf("allows more: %v", got)
		case p.Containers == Containers{} && got != &p:
			t.Fatalf("granted without leave: %v", got)
		case p.Swappiness.NeverSwaps() && !got.Swappiness.NeverSwaps():
			t.Fatalf("swaps where the policy never does: %v", got.Swappiness)
		case slices.Contains(denied, ""):
			t.Fatalf("denied without a reason: %q", denied)
		}
		switch s := got.Swappiness; p.Swappiness.Kind {
		case SwappinessFixed:
			if s != p.Swappiness {
				t.Fatalf("%v became %v", p.Swappiness, s)
			}
		case SwappinessAuto:
			if s != p.Swappiness && (s.Kind != SwappinessFixed || s.Value < p.Swappiness.Min || s.Value > p.Swappiness.Max) {
				t.Fatalf("%v became %v", p.Swappiness, s)
			}
		}
		same := *got
		same.Observe, same.Squeeze.Off, same.High, same.Swappiness = p.Observe, p.Squeeze.Off, p.High, p.Swappiness
		if !reflect.DeepEqual(same, p) {
			t.Fatalf("something else changed: %v", got)
		}
	})
}

func TestWishesAreToldInWords(t *testing.T) {
	w := Wishes{Observe: true, NoSqueeze: true, NoLend: true, Swappiness: memcg.Value(7), SpecSwappiness: memcg.Value(8)}
	if got := w.String(); got != "being observed only, no squeeze, no lending, swappiness 7" {
		t.Error(got)
	}
	if got := (Wishes{}).String(); got != "" {
		t.Error(got)
	}
}
