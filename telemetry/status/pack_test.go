package status

import (
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/memagent/memagent/memcg"
	"github.com/memagent/memagent/telemetry"
)

// fill gives every field of v a value of its own, also those that were added since pack was written:
// these then fail to come back.
func fill(v reflect.Value, n *uint64) {
	*n++
	switch p := v.Addr().Interface().(type) {
	case *memcg.Field:
		if *p = memcg.Value(*n * 7919); *n%5 == 0 {
			*p = memcg.Absent(memcg.State(*n % 3))
		}
		return
	case *memcg.Swappiness:
		*p = memcg.SwappinessOf(int(*n % 202))
		return
	case *error:
		*p = errors.New(fmt.Sprint("error ", *n))
		return
	case *time.Time:
		*p = start.Add(time.Duration(*n))
		return
	case *memcg.NodeMask:
		*p = memcg.NodesOf(memcg.NodeID(*n % 1024))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), n)
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), n)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range 2 {
			fill(v.Index(i), n)
		}
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(*n % 200)
	case reflect.Int, reflect.Int16, reflect.Int64:
		v.SetInt(int64(*n))
	case reflect.Float64:
		v.SetFloat(float64(*n) / 100)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.String:
		v.SetString(fmt.Sprint("text ", *n))
	default:
		panic("a kind of field that nobody fills: " + v.Type().String())
	}
}

func back(p *packer, r *telemetry.Record) telemetry.Record {
	var e entry
	p.pack(r)
	e.take(p, r)
	return e.record(r.Cgroup, &p.words)
}

var asIs = cmp.Options{
	cmp.Comparer(func(a, b error) bool { return a == b }), cmp.AllowUnexported(memcg.Field{}, memcg.Swappiness{}),
	cmp.Comparer(func(a, b memcg.NodeMask) bool { return reflect.DeepEqual(a, b) }),
}

func TestAPackedRecordComesBackWhole(t *testing.T) {
	for seed := range uint64(10) {
		var r telemetry.Record
		n := seed
		fill(reflect.ValueOf(&r).Elem(), &n)
		if d := cmp.Diff(r, back(&packer{}, &r), asIs); d != "" {
			t.Errorf("seed %d: %s", seed, d)
		}
		r.Glance, r.Acted, r.Guarded, r.Cost.Known, r.Lending.On = false, false, false, false, false
		if d := cmp.Diff(r, back(&packer{}, &r), asIs); d != "" {
			t.Errorf("seed %d: %s", seed, d)
		}
	}
	for _, r := range []*telemetry.Record{{}, quietly("/a", 1, 5), wishing("/a", 1, 5), finished("/a", 1, 5), gone("/a", 1, 5)} {
		if d := cmp.Diff(*r, back(&packer{}, r), asIs); d != "" {
			t.Error(d)
		}
	}
}

func TestARecordComesBackWholeWhenTheListOfWordsIsFull(t *testing.T) {
	var p packer
	for i := range 2 * maxWords {
		r := quietly("/a", 1, 5)
		r.Rule = fmt.Sprint("rule-", i)
		if d := cmp.Diff(*r, back(&p, r), asIs); d != "" {
			t.Fatal(d)
		}
	}
	if n := len(p.words.list); n != maxWords {
		t.Errorf("%d words are kept", n)
	}
}

func TestAnEntryThatHadAnOutcomeDoesNotTellItAgain(t *testing.T) {
	var p packer
	var e entry
	for _, r := range []*telemetry.Record{finished("/a", 1, 5), quietly("/a", 1, 10), gone("/a", 1, 15), quietly("/a", 1, 20)} {
		p.pack(r)
		e.take(&p, r)
		if d := cmp.Diff(*r, e.record(r.Cgroup, &p.words), asIs, cmp.Transformer("none", func(s []telemetry.Setting) []telemetry.Setting {
			if len(s) == 0 {
				return nil
			}
			return s
		})); d != "" {
			t.Error(d)
		}
	}
}
