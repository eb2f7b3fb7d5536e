package units

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/memagent/memagent/memcg"
)

func TestUnitOfACgroup(t *testing.T) {
	for _, c := range []struct{ cgroup, name, kind string }{
		{"/system.slice/web.service", "web.service", "Service"},
		{"/system.slice", "system.slice", "Slice"},
		{"/init.scope", "init.scope", "Scope"},
		{"/kubepods.slice/kubepods-burstable.slice/cri-containerd-12.scope", "cri-containerd-12.scope", "Scope"},
		{`/system.slice/system-getty.slice/getty@tty1.service`, "getty@tty1.service", "Service"},
		{`/system.slice/dev-disk-by\x2duuid-1.swap`, `dev-disk-by\x2duuid-1.swap`, "Swap"},
		{"/system.slice/_memory.service", "memory.service", "Service"},
		{"/", "", ""},
		{"/app", "", ""},
		{"/system.slice/.service", "", ""},
		{"/system.slice/a b.service", "", ""},
		{"/system.slice/web.service/inner.scope", "", ""},
		{"/user.slice/user-0.slice/user@0.service/app.slice/x.service", "", ""},
		{"/lxc/web.service", "", ""},
	} {
		u, ok := unitOf(c.cgroup)
		if !ok {
			u = unit{}
		}
		if u.name != c.name || u.kind != c.kind {
			t.Errorf("unitOf(%q) = %+v, want %s, %s", c.cgroup, u, c.name, c.kind)
		}
	}
}

func TestAPropertySaysWhatTheFileSays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		knob := rapid.SampledFrom([]memcg.Knob{memcg.KnobHigh, memcg.KnobSwapMax, memcg.KnobMems}).Draw(t, "knob")
		var value string
		if knob == memcg.KnobMems {
			var nodes memcg.NodeMask
			for _, id := range rapid.SliceOf(rapid.IntRange(0, int(memcg.MaxNode))).Draw(t, "nodes") {
				nodes.Add(memcg.NodeID(id))
			}
			value = nodes.String()
		} else {
			value = memcg.LimitOf(rapid.Uint64().Draw(t, "bytes")).String()
		}
		p, err := toProperty(knob, value)
		if err != nil {
			t.Fatal(err)
		}
		if back, err := fromProperty(knob, p); err != nil || back != value {
			t.Errorf("%s became %v, and that %q, %v", value, p, back, err)
		}
	})
}

func TestWhatADropInSays(t *testing.T) {
	for _, c := range []struct {
		text string
		knob memcg.Knob
		want string
	}{
		{"# by systemctl\n[Service]\nMemoryHigh=41943040\n", memcg.KnobHigh, "41943040"},
		{"[Slice]\nMemoryHigh=infinity\n", memcg.KnobHigh, "max"},
		{"[Slice]\nMemoryHigh=10.00%\n", memcg.KnobHigh, "?"},
		{"[Slice]\nMemoryHigh=1G\nMemoryHigh=7\n", memcg.KnobHigh, "7"},
		{"[Scope]\nAllowedMemoryNodes=\nAllowedMemoryNodes=0-1 3\n", memcg.KnobMems, "0-1,3"},
		{"", memcg.KnobSwapMax, "?"},
		{"[Scope]\nMemoryMax=7\n", memcg.KnobHigh, "?"},
	} {
		if got := said(c.text, properties[c.knob], c.knob); got != c.want {
			t.Errorf("%q says %q, want %q", c.text, got, c.want)
		}
	}
}
