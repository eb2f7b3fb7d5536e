package journal

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/memagent/memagent/memcg"
)

func anEntry() Entry {
	return Entry{
		Key: Key{pg, memcg.KnobHigh}, Boot: "b", Before: "max", Wrote: "1610612736",
		At: time.Unix(1_700_000_000, 0).UTC(), Why: "lend 512 MiB",
	}
}

func written(t testing.TB, entries ...Entry) []byte {
	t.Helper()
	c := contents{entries: map[Key]Entry{}, boot: "b"}
	for _, e := range entries {
		c.entries[e.Key] = e
	}
	b, err := encode(c)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestAJournalIsReadAsItWasWritten(t *testing.T) {
	at := time.Unix(1_700_000_000, 5).UTC()
	raw := memcg.ID{Path: "/machine.slice/\xff \x2d.scope", Inode: 1<<64 - 1}
	want := contents{boot: "b", entries: map[Key]Entry{}, rests: []Cooldown{
		{raw, at.Add(time.Minute), time.Minute, "streaming"}, {pg, at, 0, ""}, {Host, at, time.Second, "swap"},
	}}
	for _, e := range []Entry{anEntry(), {
		Key: Key{raw, memcg.KnobMems}, Boot: "b", Before: "", Wrote: "0-3", Earlier: "0", At: at,
		Challenges: 2, Challenged: at, Yielded: true,
	}} {
		want.entries[e.Key] = e
	}
	b, err := encode(want)
	if err != nil {
		t.Fatal(err)
	}
	got, err := decode(b)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got, cmp.AllowUnexported(contents{})); d != "" {
		t.Errorf("-written +read:\n%s", d)
	}
}

// journals that are not whole, and what each is.
func damaged(t testing.TB) []struct {
	name string
	file []byte
	want error
} {
	good := written(t, anEntry())
	head, body, _ := bytes.Cut(good, []byte{'\n'})
	with := func(body string) []byte { return seal([]byte(body)) }
	entry := func(change string, to string) []byte {
		return with(strings.Replace(string(body), change, to, 1))
	}
	return []struct {
		name string
		file []byte
		want error
	}{
		{"an empty file", nil, ErrTruncated},
		{"half of its first word", good[:4], ErrTruncated},
		{"half of its first line", good[:30], ErrTruncated},
		{"its first line alone", head, ErrTruncated},
		{"half of its content", good[:len(good)/2], ErrTruncated},
		{"all but a byte", good[:len(good)-1], ErrTruncated},
		{"a byte too many", append(bytes.Clone(good), '\n'), ErrCorrupt},
		{"a byte changed", bytes.Replace(good, []byte(`"max"`), []byte(`"mex"`), 1), ErrCorrupt},
		{"zeroes of the same length, as a crash of the host may leave", make([]byte, len(good)), ErrCorrupt},
		{"another file", []byte("# memagent.yaml\nmode: observe\n"), ErrCorrupt},
		{"a later version", bytes.Replace(good, []byte(" 1 "), []byte(" 2 "), 1), ErrNewer},
		{"a later version of another form", []byte("memagent-journal 12\n\x00\x01"), ErrNewer},
		{"version 0", bytes.Replace(good, []byte(" 1 "), []byte(" 0 "), 1), ErrCorrupt},
		{"no version", []byte("memagent-journal one 0 0\n"), ErrCorrupt},
		{"no length", []byte("memagent-journal 1 -1 0\n"), ErrCorrupt},
		{"content that is no JSON", with("{"), ErrCorrupt},
		{"two contents", with("{}{}"), ErrCorrupt},
		{"a key that this version does not know", with(`{"boot":"b","entries":[],"more":1}`), ErrCorrupt},
		{"an unknown knob", entry("memory.high", "memory.max"), ErrCorrupt},
		{"a value that is none", entry(`"max"`, `"much"`), ErrCorrupt},
		{"a path that leads out", entry(`"/pg"`, `"/../pg"`), ErrCorrupt},
		{"the root", entry(`"/pg"`, `"/"`), ErrCorrupt},
		{"no inode", entry("1234", "0"), ErrCorrupt},
		{"no boot id", entry(`   "boot": "b"`, `   "boot": ""`), ErrCorrupt},
	}
}

func TestADamagedJournalIsToldFromTheOthers(t *testing.T) {
	for _, tt := range damaged(t) {
		t.Run(tt.name, func(t *testing.T) {
			c, err := decode(tt.file)
			if !errors.Is(err, tt.want) {
				t.Fatalf("%v, want %v", err, tt.want)
			}
			for _, other := range []error{ErrTruncated, ErrCorrupt, ErrNewer} {
				if other != tt.want && errors.Is(err, other) {
					t.Errorf("%v is %v too", err, other)
				}
			}
			if len(c.entries) != 0 {
				t.Errorf("it gave %v", c.entries)
			}
		})
	}
}

func TestTheBoundsOfAJournalAreHeld(t *testing.T) {
	c := contents{entries: map[Key]Entry{}, boot: "b"}
	for i := range MaxEntries + 1 {
		e := anEntry()
		e.ID.Path = fmt.Sprintf("/%d", i)
		c.entries[e.Key] = e
	}
	if _, err := encode(c); !errors.Is(err, ErrTooMuch) {
		t.Errorf("%d entries: %v", len(c.entries), err)
	}
	delete(c.entries, Key{memcg.ID{Path: "/0", Inode: pg.Inode}, memcg.KnobHigh})
	b, err := encode(c)
	if err != nil || len(b) > 2<<20 {
		t.Errorf("%d entries: %d bytes, %v", len(c.entries), len(b), err)
	}
	if _, err := encode(contents{rests: make([]Cooldown, MaxCooldowns+1)}); !errors.Is(err, ErrTooMuch) {
		t.Errorf("too many cool-downs: %v", err)
	}
	long := anEntry()
	long.Why = strings.Repeat("ä", MaxWhy)
	got, err := decode(written(t, long))
	if why := got.entries[long.Key].Why; err != nil || len(why) > MaxWhy || !strings.HasPrefix(long.Why, why) {
		t.Errorf("a long reason became %q, %v", why, err)
	}
}

func TestAnyCutOfAJournalIsTruncatedOrCorrupt(t *testing.T) {
	whole := written(t, anEntry())
	rapid.Check(t, func(rt *rapid.T) {
		b := bytes.Clone(whole[:rapid.IntRange(0, len(whole)).Draw(rt, "length")])
		for range rapid.IntRange(0, 3).Draw(rt, "flips") {
			if len(b) > 0 {
				b[rapid.IntRange(0, len(b)-1).Draw(rt, "at")] ^= byte(rapid.IntRange(1, 255).Draw(rt, "by"))
			}
		}
		_, err := decode(b)
		if known := errors.Is(err, ErrTruncated) || errors.Is(err, ErrCorrupt) || errors.Is(err, ErrNewer); known == bytes.Equal(b, whole) {
			rt.Fatalf("%q: %v", b, err)
		}
	})
}

func FuzzDecode(f *testing.F) {
	f.Add(written(f, anEntry()))
	for _, d := range damaged(f) {
		f.Add(d.file)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := decode(b)
		if err != nil {
			if !errors.Is(err, ErrTruncated) && !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrNewer) {
				t.Errorf("of no kind: %v", err)
			}
			return
		}
		again, err := encode(c)
		if err != nil {
			t.Fatalf("what was read cannot be written: %v", err)
		}
		same, err := decode(again)
		if err != nil {
			t.Fatalf("what was written cannot be read: %v", err)
		}
		if d := cmp.Diff(c, same, cmp.AllowUnexported(contents{})); d != "" {
			t.Errorf("-read +read again:\n%s", d)
		}
	})
}

// FuzzBody is FuzzDecode behind the checksum, which no fuzzer gets past.
func FuzzBody(f *testing.F) {
	_, body, _ := bytes.Cut(written(f, anEntry()), []byte{'\n'})
	f.Add(body)
	f.Add([]byte(`{"boot":"","entries":[],"cooldowns":[{"cgroup":"/a","inode":1,"until":"2026-01-01T00:00:00Z","length_ms":60000,"why":"lend"}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		c, err := decode(seal(body))
		if err != nil {
			return
		}
		again, err := encode(c)
		if err != nil {
			t.Fatalf("what was read cannot be written: %v", err)
		}
		if _, err := decode(again); err != nil {
			t.Fatalf("what was written cannot be read: %v", err)
		}
	})
}
