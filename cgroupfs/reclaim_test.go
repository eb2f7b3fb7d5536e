package cgroupfs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"github.com/memagent/memagent/memcg"
)

const mib = 1 << 20

// reclaimer is a tree that claims to be a kernel's and reacts to writes of
// memory.reclaim: it takes from memory.current of the one cgroup /p.
type reclaimer struct {
	*faulty
	t    testing.TB
	root string
	now  time.Time

	current, steal uint64 // bytes, pages
	// react answers one write; it may change the counters and the clock.
	react func(k *reclaimer, bytes uint64) error
	asked []uint64 // bytes of each write
}

const reclaimed = "sys/fs/cgroup/p/"

func newReclaimer(t testing.TB, current uint64) *reclaimer {
	root := fixtureCopy(t, "", append(onCgroup2("/agent"), reclaimed+"memory.reclaim", "", reclaimed+"cgroup.events", "populated 1\nfrozen 0\n",
		reclaimed+"memory.swap.current", "0\n")...)
	k := &reclaimer{faulty: withFaults(t, root, nil), t: t, root: root, now: time.Unix(1e9, 0), current: current}
	k.faulty.cgroup2 = true
	k.react = func(k *reclaimer, bytes uint64) error { k.take(bytes); return nil }
	k.publish()
	return k
}

// take removes bytes from the cgroup.
func (k *reclaimer) take(bytes uint64) {
	bytes = min(bytes, k.current)
	k.current -= bytes
	k.steal += bytes / uint64(unix.Getpagesize())
}

func (k *reclaimer) publish() {
	k.set("memory.current", fmt.Sprintln(k.current))
	k.set("memory.stat", fmt.Sprintf("anon %d\npgsteal %d\n", k.current, k.steal))
}

func (k *reclaimer) set(file, content string) {
	if err := os.WriteFile(filepath.Join(k.root, reclaimed, file), []byte(content), 0o666); err != nil {
		k.t.Fatal(err)
	}
}

func (k *reclaimer) write(fd int, b []byte) (int, error) {
	if _, err := k.faulty.write(fd, b); err != nil {
		return -1, err
	}
	word, _, _ := strings.Cut(string(b), " ")
	bytes, err := strconv.ParseUint(word, 10, 64)
	if err != nil {
		k.t.Fatalf("not a request: %q", b)
	}
	k.asked = append(k.asked, bytes)
	if err := k.react(k, bytes); err != nil {
		k.publish()
		return -1, err
	}
	k.publish()
	return len(b), nil
}

func (k *reclaimer) open(dir int, name string, flags int, how resolve) (int, error) {
	if flags&unix.O_NONBLOCK != 0 {
		k.t.Errorf("%s is opened without blocking", name)
	}
	return k.faulty.open(dir, name, flags, how)
}

// host opens the tree.
func (k *reclaimer) host() *FS {
	return mustOpen(k.t, k.root, withKernel(k), withClock(func() time.Time { return k.now }))
}

// run reclaims from /p.
func (k *reclaimer) run(r memcg.Reclaim) memcg.Outcome {
	k.t.Helper()
	fs := k.host()
	r.Cgroup = idOf(k.t, fs, "/p")
	return fs.Reclaim(k.t.Context(), r)
}

func total(list []uint64) (sum uint64) {
	for _, v := range list {
		sum += v
	}
	return sum
}

func TestARequestIsCutIntoChunksAndMeasured(t *testing.T) {
	k := newReclaimer(t, 200*mib)
	o := k.run(memcg.Reclaim{Bytes: 100*mib + 1, Swappiness: memcg.SwappinessOf(60)})
	if o.Err != nil || o.Asked != 100*mib || o.Reclaimed != memcg.Value(100*mib) || o.Shrunk != memcg.Value(100*mib) || o.SwapOut != memcg.Value(0) {
		t.Errorf("outcome %+v", o)
	}
	if o.Demoted.State() != memcg.Unsupported {
		t.Errorf("demoted %v on a kernel that does not count it", o.Demoted)
	}
	// Writes take no time here: chunks double.
	if want := []uint64{8 * mib, 16 * mib, 32 * mib, 44 * mib}; !slices.Equal(k.asked, want) || o.Writes != len(want) {
		t.Errorf("chunks %v, want %v", k.asked, want)
	}
	if want := "sys/fs/cgroup/p/memory.reclaim 8388608 swappiness=60"; k.writes[0] != want {
		t.Errorf("wrote %q, want %q", k.writes[0], want)
	}
}

func TestChunksFollowTheTimeAWriteTakes(t *testing.T) {
	k := newReclaimer(t, 4096*mib)
	k.react = func(k *reclaimer, bytes uint64) error {
		k.take(bytes)
		k.now = k.now.Add(time.Duration(bytes) * time.Second / (40 * mib)) // 40 MiB/s: 2 MiB in 50 ms
		return nil
	}
	if o := k.run(memcg.Reclaim{Bytes: 20 * mib, Deadline: time.Hour}); o.Err != nil {
		t.Fatal(o.Err)
	}
	if k.asked[0] != 8*mib || k.asked[1] != 2*mib || k.asked[2] != 2*mib {
		t.Errorf("chunks %v, want 8 MiB and then 2 MiB each", k.asked)
	}
}

// A write that was held up, by a busy CPU say, makes the next ones small, whatever
// size that gives; it must not keep them small.
func TestThePaceRecoversFromAWriteThatWasHeldUp(t *testing.T) {
	for _, slow := range []time.Duration{51, 67, 97, 311, 1009, 1999} {
		k := newReclaimer(t, 4096*mib)
		held := slow * time.Millisecond
		k.react = func(k *reclaimer, bytes uint64) error {
			k.take(bytes)
			k.now = k.now.Add(held + time.Duration(bytes)*time.Second/(1024*mib))
			held = 0
			return nil
		}
		if o := k.run(memcg.Reclaim{Bytes: 512 * mib, Deadline: time.Hour}); o.Err != nil {
			t.Fatal(o.Err)
		}
		if !slices.ContainsFunc(k.asked[1:], func(size uint64) bool { return size >= 16*mib }) {
			t.Errorf("held up for %d ms: chunks %v at 1 GiB/s, want some of 16 MiB and more", slow, k.asked)
		}
	}
}

func TestThePaceStaysWithinItsBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var p pace
		for range rapid.IntRange(1, 50).Draw(t, "writes") {
			size := min(p.chunk(), rapid.Uint64Range(4096, mostChunk).Draw(t, "size"))
			p.learn(size, time.Duration(rapid.Int64Range(0, int64(time.Minute)).Draw(t, "took")))
			if c := p.chunk(); c < leastChunk || c > mostChunk {
				t.Fatalf("chunk of %d bytes", c)
			}
		}
	})
}

func TestOverReclaimOfOneChunkIsTakenOffTheRest(t *testing.T) {
	k := newReclaimer(t, 200*mib)
	k.react = func(k *reclaimer, bytes uint64) error { k.take(3 * bytes); return nil } // case c28
	o := k.run(memcg.Reclaim{Bytes: 30 * mib})
	if want := []uint64{8 * mib, 6 * mib}; !slices.Equal(k.asked, want) || o.Err != nil || o.Shrunk != memcg.Value(42*mib) {
		t.Errorf("chunks %v, want %v; %+v", k.asked, want, o)
	}
}

func TestARequestStopsWhereItMust(t *testing.T) {
	for _, tt := range []struct {
		name   string
		react  func(k *reclaimer)
		r      memcg.Reclaim
		writes int
		asked  uint64
		kind   error
		text   string
	}{
		{"at the floor", nil, memcg.Reclaim{Bytes: 100 * mib, Floor: 95 * mib}, 1, 5 * mib, memcg.ErrPartial, "down to the floor"},
		{"at once below the floor", nil, memcg.Reclaim{Bytes: 100 * mib, Floor: 101 * mib}, 0, 0, memcg.ErrPartial, "down to the floor"},
		{"when time is up", func(k *reclaimer) { k.now = k.now.Add(time.Second) }, memcg.Reclaim{Bytes: 100 * mib, Deadline: time.Second}, 1, 8 * mib, memcg.ErrPartial, "out of time"},
		{"by itself after two seconds", func(k *reclaimer) { k.now = k.now.Add(2 * time.Second) }, memcg.Reclaim{Bytes: 100 * mib}, 1, 8 * mib, memcg.ErrPartial, "out of time"},
		{"c37 when nobody is left", func(k *reclaimer) { k.set("cgroup.events", "populated 0\n") }, memcg.Reclaim{Bytes: 100 * mib}, 1, 8 * mib, memcg.ErrPartial, "nobody is left"},
		{"c37 when the cgroup was replaced", func(k *reclaimer) {
			if err := os.Rename(filepath.Join(k.root, reclaimed), filepath.Join(k.root, "old")); err != nil {
				k.t.Fatal(err)
			}
			if err := os.Mkdir(filepath.Join(k.root, reclaimed), 0o777); err != nil {
				k.t.Fatal(err)
			}
		}, memcg.Reclaim{Bytes: 100 * mib}, 1, 8 * mib, memcg.ErrGone, "gone"},
		{"below a page", nil, memcg.Reclaim{Bytes: 4095}, 0, 0, memcg.ErrInvalid, "less than a page"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			k := newReclaimer(t, 100*mib)
			k.react = func(k *reclaimer, bytes uint64) error {
				k.take(bytes)
				if tt.react != nil {
					tt.react(k)
				}
				return nil
			}
			o := k.run(tt.r)
			if o.Writes != tt.writes || o.Asked != tt.asked || !errors.Is(o.Err, tt.kind) || !strings.Contains(o.Err.Error(), tt.text) {
				t.Errorf("outcome %+v", o)
			}
		})
	}
}

func TestARequestEndsWithItsContext(t *testing.T) {
	k := newReclaimer(t, 100*mib)
	fs := k.host()
	ctx, cancel := context.WithCancel(t.Context())
	k.react = func(k *reclaimer, bytes uint64) error { k.take(bytes); cancel(); return nil }
	o := fs.Reclaim(ctx, memcg.Reclaim{Cgroup: idOf(t, fs, "/p"), Bytes: 100 * mib})
	if o.Writes != 1 || !errors.Is(o.Err, context.Canceled) || !errors.Is(o.Err, memcg.ErrPartial) || o.Shrunk != memcg.Value(8*mib) {
		t.Errorf("outcome %+v", o)
	}
}

// The laws of a request, whatever the kernel does: no write is empty, none is
// larger than the chunk limit or not whole pages, the floor is not crossed by
// asking, and what is asked beyond interrupted writes is no more than wanted.
func TestLawsOfARequest(t *testing.T) {
	page := uint64(unix.Getpagesize())
	k := newReclaimer(t, 1)
	rapid.Check(t, func(rt *rapid.T) {
		k.current = rapid.Uint64Range(0, 600*mib).Draw(rt, "current")
		k.asked, k.writes = nil, nil
		k.publish()
		r := memcg.Reclaim{Bytes: rapid.Uint64Range(0, 600*mib).Draw(rt, "bytes"), Floor: rapid.Uint64Range(0, 600*mib).Draw(rt, "floor"), Deadline: time.Second}
		var interrupted uint64
		k.react = func(k *reclaimer, bytes uint64) error {
			if bytes == 0 || bytes%page != 0 || bytes > mostChunk || k.current < r.Floor+bytes {
				rt.Errorf("asked for %d with %d left above %d", bytes, k.current, r.Floor)
			}
			k.now = k.now.Add(time.Duration(rapid.Int64Range(0, int64(200*time.Millisecond)).Draw(rt, "took")))
			part := rapid.Uint64Range(0, 2*bytes).Draw(rt, "taken")
			k.take(part)
			switch rapid.IntRange(0, 9).Draw(rt, "errno") {
			case 0:
				interrupted += bytes
				return unix.EINTR
			case 1:
				return unix.EAGAIN
			}
			return nil
		}
		o := k.run(r)
		if sum := total(k.asked); sum != o.Asked || sum > r.Bytes+interrupted || len(k.asked) != o.Writes {
			rt.Errorf("asked %v of %d, outcome %+v", k.asked, r.Bytes, o)
		}
	})
}
