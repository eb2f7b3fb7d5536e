package cgroupfs

import (
	"bytes"
	"strconv"
	"strings"
	"testing"

	"github.com/memagent/memagent/memcg"
)

// splitStat is the naive reader that parseStat must agree with.
func splitStat(b []byte) map[string]string {
	m := map[string]string{}
	for _, line := range strings.Split(string(b), "\n") {
		if f := strings.SplitN(line, " ", 2); len(f) == 2 {
			m[f[0]] = f[1]
		}
	}
	return m
}

func FuzzStat(f *testing.F) {
	f.Add(fixture(f, "c01/sys/fs/cgroup/app.slice/memory.stat"))
	f.Add(fixture(f, "c02/t1/sys/fs/cgroup/app.slice/memory.stat"))
	f.Add(fixture(f, "c05/negative/sys/fs/cgroup/c/memory.stat"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var s memcg.Stats
		parseStat(b, &s)
		naive := splitStat(b)
		for k := memcg.Stat(0); k < memcg.NumStats; k++ {
			word, printed := naive[k.String()]
			v, err := strconv.ParseUint(word, 10, 63)
			want := memcg.Value(v)
			switch {
			case !printed:
				want = memcg.Absent(unsupported)
			case err != nil || word[0] == '+':
				want = memcg.Absent(invalid)
			}
			if got := s.Get(k); got != want {
				t.Errorf("%v = %v, want %v", k, got, want)
			}
		}
		if (invalidLine(b) == nil) != s.Valid() && len(naive) == bytes.Count(b, []byte("\n"))+1 {
			t.Errorf("invalidLine %q, valid %v", invalidLine(b), s.Valid())
		}
	})
}

func FuzzNumaStat(f *testing.F) {
	f.Add(fixture(f, "c07/v1/sys/fs/cgroup/memory/pod/memory.numa_stat"))
	f.Add(fixture(f, "c07/v2/sys/fs/cgroup/pod/memory.numa_stat"))
	f.Add(fixture(f, "c09/wide/sys/fs/cgroup/db/memory.numa_stat"))
	f.Fuzz(func(t *testing.T, b []byte) {
		nodes, state := parseNumaStat(b, nil)
		if state != memcg.Present && len(nodes) > 0 {
			t.Errorf("%d nodes of a file that is %v", len(nodes), state)
		}
		for i := range nodes {
			if id := nodes[i].ID; id < 0 || id > memcg.MaxNode || i > 0 && id <= nodes[i-1].ID {
				t.Errorf("ids %v", ids(nodes))
			}
		}
		// The last anon line in which a node has a column decides.
		want := map[memcg.NodeID]memcg.Field{}
		for _, line := range strings.Split(string(b), "\n") {
			for _, w := range strings.Split(strings.TrimPrefix(line, "anon "), " ") {
				name, digits, ok := strings.Cut(w, "=")
				id, err := strconv.ParseUint(strings.TrimPrefix(name, "N"), 10, 64)
				if !strings.HasPrefix(line, "anon ") || !ok || name[:min(1, len(name))] != "N" || err != nil || id > 1023 {
					continue
				}
				want[memcg.NodeID(id)] = parseField([]byte(digits))
			}
		}
		for id, field := range want {
			if state == memcg.Present && nodeField(t, nodes, id, memcg.NodeAnon) != field {
				t.Errorf("anon of node %d = %v, want %v", id, nodeField(t, nodes, id, memcg.NodeAnon), field)
			}
		}
	})
}

func FuzzPSI(f *testing.F) {
	f.Add(fixture(f, "c24/ok/sys/fs/cgroup/p/memory.pressure"))
	f.Add([]byte("full avg10=100.01 avg60=0 total=1"))
	f.Fuzz(func(t *testing.T, b []byte) {
		p := parsePSI(b)
		for _, s := range []memcg.Stall{p.Some, p.Full} {
			if !(s.Avg10 >= 0 && s.Avg10 <= 100 && s.Avg60 >= 0 && s.Avg60 <= 100) {
				t.Errorf("%+v", s)
			}
		}
	})
}

func FuzzEvents(f *testing.F) {
	f.Add([]byte("low 0\nhigh 1\nmax 2\noom 3\noom_kill 4\n"))
	f.Add([]byte("populated 1\nfrozen 0\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		naive := map[string]string{}
		for _, line := range strings.Split(string(b), "\n") {
			if line != "" {
				key, value, _ := strings.Cut(line, " ")
				naive[key] = value
			}
		}
		field := func(key string) memcg.Field {
			if v, ok := naive[key]; ok {
				return parseField([]byte(v))
			}
			return memcg.Absent(unsupported)
		}
		want := memcg.Events{Low: field("low"), High: field("high"), Max: field("max"), OOM: field("oom"), OOMKill: field("oom_kill")}
		if got := parseEvents(b); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
		if got := parseSwapEvents(b); got != (memcg.SwapEvents{High: field("high"), Max: field("max"), Fail: field("fail")}) {
			t.Errorf("got %+v", got)
		}
		if p, _ := parseCgroupEvents(b); p.Known() != (naive["populated"] != "" && strings.Trim(naive["populated"], "0") == "" || strings.TrimLeft(naive["populated"], "0") == "1") {
			t.Errorf("populated %q reads as %v", naive["populated"], p)
		}
	})
}

func FuzzNodesFile(f *testing.F) {
	for _, s := range []string{"", "0\n", "0-3,8,252-255\n", "1023", "1024", "3-1", "0,,1", " 1"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 4096 {
			return // one page is all that a kernel prints
		}
		got, ok := parseNodesFile(b)
		want, err := memcg.ParseNodeMask(string(b))
		// The shared reader forgives blanks; the kernel prints none.
		if ok && (err != nil || got != want) {
			t.Errorf("%q: %v, want %v, %v", b, got, want, err)
		}
		if !ok && err == nil && !bytes.ContainsAny(b, " \t\r\v\f\n\u0085\u00a0") {
			t.Errorf("%q refused, want %v", b, want)
		}
	})
}

func FuzzValue(f *testing.F) {
	for _, s := range []string{"0", "max\n", "18446744073709551615", "18446744073709551616", "-1", "+1", "0x10", "1_0"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		got, ok := parseUint(b)
		want, err := strconv.ParseUint(string(b), 10, 64)
		if ok != (err == nil) || ok && got != want {
			t.Errorf("%q: %d, %v; want %d, %v", b, got, ok, want, err)
		}
		if l := parseLimitFile(b); l.State() != memcg.Present && l.State() != invalid {
			t.Errorf("%q: %v", b, l.State())
		}
	})
}
