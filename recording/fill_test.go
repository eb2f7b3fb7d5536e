package recording

import (
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/memagent/memagent/memcg"
)

// filler gives every field of an event a value of its own, also those that were
// added since the layout was written: these then fail to survive.
type filler struct{ n uint64 }

func (f *filler) next() uint64 { f.n++; return f.n * 7919 }

// unfilled are fields that are the file's own.
var unfilled = map[string]bool{"Kind": true, "Recorded": true}

func (f *filler) fill(v reflect.Value) {
	switch p := v.Addr().Interface().(type) {
	case *memcg.Field:
		if *p = memcg.Value(f.next()); f.n%5 == 0 {
			*p = memcg.Absent(memcg.State(f.n % 3))
		}
		return
	case *memcg.Limit:
		switch f.next(); f.n % 3 {
		case 0:
			*p = memcg.Unlimited()
		case 1:
			*p = memcg.LimitOf(f.n)
		case 2:
			*p = memcg.NoLimitFile(memcg.Unsupported)
		}
		return
	case *memcg.NodeMask:
		*p = memcg.NodesOf(memcg.NodeID(f.next()%1024), 1023)
		return
	case *memcg.Swappiness:
		*p = memcg.SwappinessOf(int(f.next() % 202))
		return
	case *memcg.Stats:
		for k := range memcg.NumStats {
			p.Set(k, memcg.Value(f.next()))
		}
		return
	case *memcg.NodeStats:
		p.ID = memcg.NodeID(f.next() % 1024)
		for k := range memcg.NumNodeStats {
			p.Set(k, memcg.Value(f.next()))
		}
		return
	case *memcg.State:
		*p = memcg.Present
		return
	case *error:
		*p = &Error{Text: fmt.Sprint("error ", f.next()), Kinds: f.n % 8}
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if !unfilled[v.Type().Field(i).Name] {
				f.fill(v.Field(i))
			}
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range 2 {
			f.fill(v.Index(i))
		}
	case reflect.Uint8:
		v.SetUint(f.next() % 200)
	case reflect.Uint64:
		v.SetUint(f.next())
	case reflect.Int, reflect.Int64:
		v.SetInt(-int64(f.next()))
	case reflect.Float64:
		v.SetFloat(float64(f.next()) / 100)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.String:
		v.SetString(fmt.Sprint("text ", f.next()))
	default:
		panic("a kind of field that nobody fills: " + v.Type().String())
	}
}

// full returns an event of a kind with only what belongs to it.
func full(k Kind, seed uint64) *Event {
	var all, e Event
	(&filler{seed}).fill(reflect.ValueOf(&all).Elem())
	e.Kind, e.At, e.Wall, e.Zone = k, all.At, all.Wall, 3600
	switch k {
	case Configured:
		e.Config = all.Config
	case Tracked:
		e.Cgroups, e.Complete = all.Cgroups, all.Complete
	case HostSeen:
		e.Host = all.Host
	case Looked:
		e.Cgroup, e.Sample, e.Ages, e.AgesErr, e.Parent, e.ParErr = all.Cgroup, all.Sample, all.Ages, all.AgesErr, all.Parent, all.ParErr
	case Stepped:
		e.Slots, e.NoKnobs, e.Draws, e.Done = all.Slots, all.NoKnobs, all.Draws, all.Done
	case CameBack:
		e.Done = all.Done
	case Heard:
		e.Cgroup = all.Cgroup
	case Described:
		e.Cgroup, e.Who = all.Cgroup, all.Who
	case Rested:
		e.Cgroup, e.Rest = all.Cgroup, all.Rest
	}
	return &e
}

var exact = []cmp.Option{
	cmp.AllowUnexported(memcg.Field{}, memcg.Limit{}, memcg.NodeMask{}, memcg.Stats{}, memcg.NodeStats{}, memcg.Swappiness{}),
	cmp.Comparer(func(a, b error) bool {
		x, okA := errors.AsType[*Error](a)
		y, okB := errors.AsType[*Error](b)
		return okA == okB && (!okA || *x == *y)
	}),
}

func TestEveryFieldOfEveryEventSurvives(t *testing.T) {
	var want []*Event
	for k := Configured; k < ended; k++ {
		want = append(want, full(k, 0), full(k, 1000), full(k, 1000))
	}
	var refused, glance Event
	refused.Kind, refused.Cgroup, refused.Err = Looked, memcg.ID{Path: "/x", Inode: 1}, &Error{Text: "gone", Kinds: 1}
	glance.Kind, glance.Cgroup, glance.Glance = Looked, memcg.ID{Path: "/x", Inode: 1}, memcg.Value(4096)
	want = append(want, &refused, &glance)
	r := read(t, record(t, want...))
	for i, w := range want {
		var got Event
		if err := r.Next(&got); err != nil {
			t.Fatalf("event %d: %v", i, err)
		}
		if diff := cmp.Diff(w, &got, exact...); diff != "" {
			t.Errorf("event %d (-written +read):\n%s", i, diff)
		}
	}
}

func TestAnErrorIsWhatItWas(t *testing.T) {
	kept := Mark(fmt.Errorf("open /x: %w", memcg.ErrDenied), 3)
	e, ok := errors.AsType[*Error](kept)
	if !ok || !errors.Is(kept, memcg.ErrDenied) || errors.Is(kept, memcg.ErrGone) || !e.Marked(3) || e.Marked(2) || kept.Error() != "open /x: access denied" {
		t.Errorf("got %+v", kept)
	}
	if Mark(nil, 0) != nil {
		t.Error("no error became one")
	}
}

func TestTheTimeIsThatOfTheClockOnTheWallInItsZone(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 5, time.FixedZone("", 5400))
	e := Event{Wall: at.UnixNano(), Zone: 5400}
	if got := e.Time(); got.Format(time.RFC3339Nano) != at.Format(time.RFC3339Nano) {
		t.Errorf("got %v, want %v", got, at)
	}
}
