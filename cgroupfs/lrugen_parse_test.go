package cgroupfs

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"golang.org/x/sys/unix"

	"github.com/memagent/memagent/memcg"
)

// pieces hands a text out as seq_file does: whole records, at most a page a
// read, and for size 0 all at once.
type pieces struct {
	kernel
	text string
	size int
}

func (k pieces) pread(_ int, b []byte, offset int64) (int, error) {
	rest := k.text[offset:]
	if k.size > 0 && len(rest) > k.size {
		rest = rest[:k.size]
	}
	return copy(b, rest), nil
}

// parseLRUGen reads a text; places are indexes of paths.
func parseLRUGen(text string, size, buffer int, paths ...string) (lruGenListing, error) {
	place := map[string]int32{}
	for i, p := range paths {
		place[p] = int32(i)
	}
	var l lruGenListing
	p := lruGenParser{place: place, to: &l}
	_, err := p.read(pieces{text: text, size: size}, -1, make([]byte, buffer))
	return l, err
}

// sameListing compares listings; an empty one is as good as none.
var sameListing = cmp.Options{cmp.AllowUnexported(lruGenListing{}, listedCgroup{}), cmpopts.EquateEmpty()}

// generation is one generation as the tables write it.
func generation(node memcg.NodeID, seq uint64, ms int, anon, file uint64, evictable bool) memcg.Generation {
	return memcg.Generation{Node: node, Seq: seq, Age: time.Duration(ms) * time.Millisecond, AnonPages: anon, FilePages: file, Evictable: evictable}
}

const (
	// lines as 6.12 prints them: "memcg %5hu %s", " node %5d", " %10lu %10u %10lu%c %10lu%c".
	listing612 = "memcg     1 /\n" +
		" node     0\n" +
		"          5      90000          1           2 \n" +
		"          6      10000          3           4 \n" +
		"memcg    37 /a b: c\n" +
		" node     0\n" +
		"          3      90000        100         200 \n" +
		"          4      30000         10          20 \n" +
		"          5        500          1           2 \n" +
		"          6          0          0           0 \n" +
		" node     8\n" +
		"          7      60000          0           0 \n" +
		"          8      50000          0           0 \n" +
		" node   252\n" +
		"         11       1000          0           7 \n" +
		"         12         10          5           0 \n"
	// and as 7.3 does: "memcg %llu %s".
	listing73 = "memcg 1 /\n node     0\n          0       1000          0           9 \n          1          0          0           0 \n" +
		"memcg 4294967301 /a b: c\n node     0\n          1       2000          4           0 \n          2       1500          1           0 \n          3          0          2           0 \n"
	// a multi-gen LRU that is built in and off: the lists are there and empty.
	listingOff = "memcg     1 /\n node     0\n          0       1000          0           0 \n          1       1000          0           0 \n" +
		"          2       1000          0           0 \n          3       1000          0           0 \n"
)

func TestLRUGenListings(t *testing.T) {
	spaced := []memcg.Generation{
		generation(0, 3, 90000, 100, 200, true), generation(0, 4, 30000, 10, 20, true), generation(0, 5, 500, 1, 2, false), generation(0, 6, 0, 0, 0, false),
		generation(252, 11, 1000, 0, 7, false), generation(252, 12, 10, 5, 0, false),
	}
	for _, tt := range []struct {
		name, text string
		paths      []string
		want       lruGenListing
	}{
		{"private ids, sparse nodes and a path with blanks and a colon", listing612, []string{"/a b: c"},
			lruGenListing{[]listedCgroup{{0, 37, 0, 6}}, spaced}},
		{"inodes for ids", listing73, []string{"/", "/a b: c"}, lruGenListing{
			[]listedCgroup{{0, 1, 0, 2}, {1, 4294967301, 2, 5}},
			[]memcg.Generation{generation(0, 0, 1000, 0, 9, false), generation(0, 1, 0, 0, 0, false),
				generation(0, 1, 2000, 4, 0, true), generation(0, 2, 1500, 1, 0, false), generation(0, 3, 0, 2, 0, false)}}},
		{"nobody asks for any of them", listing612, nil, lruGenListing{}},
		{"switched off", listingOff, []string{"/"}, lruGenListing{[]listedCgroup{{0, 1, 0, 0}}, nil}},
		{"empty", "", []string{"/"}, lruGenListing{}},
		{"a removed cgroup under the path of a living one",
			"memcg     0 /a\n node     0\n          1          9          1           0 \n          2          0          0           0 \n" +
				"memcg    40 /a\n node     0\n          6          8          0           2 \n          7          0          0           0 \n",
			[]string{"/a"}, lruGenListing{[]listedCgroup{{0, 0, 0, 2}, {0, 40, 2, 4}}, []memcg.Generation{
				generation(0, 1, 9, 1, 0, false), generation(0, 2, 0, 0, 0, false), generation(0, 6, 8, 0, 2, false), generation(0, 7, 0, 0, 0, false)}}},
		{"no cgroups at all", "memcg     0 \n node     0\n          1          9          1           0 \n", []string{"/"}, lruGenListing{}},
		{"a cgroup whose nodes were passed over", "memcg     5 /a\nmemcg     6 /b\n", []string{"/a", "/b"},
			lruGenListing{[]listedCgroup{{0, 5, 0, 0}, {1, 6, 0, 0}}, nil}},
	} {
		for _, size := range []int{0, 1, 64, 4096} {
			t.Run(fmt.Sprintf("%s, %d bytes a read", tt.name, size), func(t *testing.T) {
				got, err := parseLRUGen(tt.text, size, lruGenBuffer, tt.paths...)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(tt.want, got, sameListing); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		}
	}
}

func TestWhatIsNoLRUGenListingIsRefused(t *testing.T) {
	const head = "memcg     1 /\n node     0\n"
	for _, tt := range []struct{ name, text, tells string }{
		{"a generation before any cgroup", " node 0\n", "node 0"},
		{"a generation before any node", "memcg 1 /\n  1 2 3 4\n", "1 2 3 4"},
		{"a field is missing", head + "  1 2 3\n", "1 2 3"},
		{"a field too many", head + "  1 2 3 4 5\n", "1 2 3 4 5"},
		{"the marks of lru_gen_full", head + "          5      90000          1x          2 \n", "1x"},
		{"a negative size", head + "  1 2 -3 4\n", "-3"},
		{"an age that is none", head + "  1 4294967296 3 4\n", "4294967296"},
		{"generations that do not follow on each other", head + "  1 2 3 4\n  3 0 0 0\n", "3 0 0 0"},
		{"a node that cannot be", "memcg 1 /\n node 1024\n", "1024"},
		{"a node without a number", "memcg 1 /\n node\n", "node"},
		{"an id that is no number", "memcg x /\n", "memcg x"},
		{"the end of a line is missing", head + "  1 2 3 4", "within a line"},
		{"something else", "hello\n", "hello"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := parseLRUGen(tt.text, 0, lruGenBuffer, "/")
			if err == nil || !strings.Contains(err.Error(), tt.tells) {
				t.Errorf("err = %v, want one that tells %q", err, tt.tells)
			}
		})
	}
	if _, err := parseLRUGen("memcg 1 /"+strings.Repeat("x", 100)+"\n", 0, 64, "/"); err == nil {
		t.Error("a line longer than the buffer is accepted")
	}
}

func TestLinesOfLRUGenCostNoAllocation(t *testing.T) {
	var b bytes.Buffer
	place := map[string]int32{}
	for i := range 500 {
		path := "/some.slice/cgroup-" + strconv.Itoa(i)
		place[path] = int32(i)
		fmt.Fprintf(&b, "memcg %5d %s\n node     0\n%s", i, path, strings.Repeat("          1          9          1           0 \n", 1))
	}
	file := filepath.Join(t.TempDir(), "lru_gen")
	if err := os.WriteFile(file, b.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
	fd, err := unix.Open(file, unix.O_RDONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	var k kernel = &linux{}
	var l lruGenListing
	var buf []byte
	read := func() {
		l.reset()
		p := lruGenParser{place: place, to: &l}
		if buf, err = p.read(k, fd, buf); err != nil {
			t.Fatal(err)
		}
	}
	read()
	if len(l.listed) != 500 || len(l.gens) != 500 {
		t.Fatalf("%d cgroups, %d generations", len(l.listed), len(l.gens))
	}
	if n := testing.AllocsPerRun(20, read); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// naiveLRUGen reads what is one of the known listings with the means of the
// standard library; ok is false for everything else.
func naiveLRUGen(text string, place map[string]int32) (l lruGenListing, ok bool) {
	if text != "" && !strings.HasSuffix(text, "\n") {
		return l, false
	}
	seen, inNode, wanted := false, false, false
	var node memcg.NodeID
	var list []memcg.Generation
	flush := func() {
		pages := uint64(0)
		for i := range list {
			list[i].Evictable = list[i].Seq+2 <= list[len(list)-1].Seq
			pages += min(list[i].AnonPages, 1) + min(list[i].FilePages, 1)
		}
		if pages > 0 && wanted {
			l.gens = append(l.gens, list...)
			l.listed[len(l.listed)-1].end = int32(len(l.gens))
		}
		list = nil
	}
	number := func(s string) (uint64, bool) {
		v, err := strconv.ParseUint(s, 10, 64)
		return v, err == nil && strings.Trim(s, "0123456789") == ""
	}
	for _, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		if text == "" {
			break
		}
		if rest, is := strings.CutPrefix(line, "memcg "); is {
			rest = strings.TrimLeft(rest, " ")
			number_, path, found := strings.Cut(rest, " ")
			id, good := number(number_)
			if !found || !good {
				return l, false
			}
			flush()
			seen, inNode = true, false
			var at int32
			if at, wanted = place[path]; wanted {
				l.listed = append(l.listed, listedCgroup{at, id, int32(len(l.gens)), int32(len(l.gens))})
			}
			continue
		}
		f := strings.FieldsFunc(line, func(r rune) bool { return r == ' ' })
		switch {
		case seen && len(f) == 2 && f[0] == "node":
			n, good := number(f[1])
			if !good || n > 1023 {
				return l, false
			}
			flush()
			node, inNode = memcg.NodeID(n), true
		case inNode && len(f) == 4:
			var v [4]uint64
			for i := range v {
				if v[i], ok = number(f[i]); !ok {
					return l, false
				}
			}
			if v[1] > 1<<32-1 || wanted && len(list) > 0 && (v[0] == 0 || list[len(list)-1].Seq != v[0]-1) {
				return l, false
			}
			list = append(list, memcg.Generation{Node: node, Seq: v[0], Age: time.Duration(v[1]) * time.Millisecond, AnonPages: v[2], FilePages: v[3]})
		default:
			return l, false
		}
	}
	flush()
	return l, true
}

func FuzzLRUGen(f *testing.F) {
	for _, text := range []string{listing612, listing73, listingOff, "", "memcg 1 /\n", "memcg 0 /a\n node 3\n 18446744073709551615 1 2 3\n 0 1 2 3\n"} {
		f.Add(text, 0)
		f.Add(text, 7)
	}
	place := map[string]int32{"/": 0, "/a": 1, "/a b: c": 2}
	f.Fuzz(func(t *testing.T, text string, size int) {
		if len(text) > 32<<10 {
			return
		}
		got, err := parseLRUGen(text, max(size, 0), lruGenBuffer, "/", "/a", "/a b: c")
		want, ok := naiveLRUGen(text, place)
		if (err == nil) != ok {
			t.Fatalf("err %v, the naive reader says %v", err, ok)
		}
		if ok && !cmp.Equal(got, want, sameListing) {
			t.Errorf("got %+v, want %+v", got, want)
		}
	})
}
