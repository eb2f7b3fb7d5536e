package telemetry

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"

	"github.com/memagent/memagent/memcg"
)

const hash = "1a2b3c4d5e6f708192a3b4c5d6e7f8091a2b3c4d5e6f708192a3b4c5d6e7f809"

func ofCart() *Record {
	return &Record{
		Time: time.Date(2026, 11, 30, 14, 2, 11, 0, time.UTC), Verdict: "idle", Rule: "squeeze-waits", Current: memcg.Value(4096),
		Cgroup: memcg.ID{Path: "/kubepods.slice/cri-containerd-" + hash + ".scope", Inode: 7}, Name: "shop/cart-7d9/app",
		Container: Container{ID: hash, Runtime: "containerd", PodUID: "u-1", Namespace: "shop", Pod: "cart-7d9", Name: "app", Asks: "swappiness 60"},
	}
}

func TestALineForPeopleHasTheNameOfTheContainerAndNotItsHash(t *testing.T) {
	var out bytes.Buffer
	(&Terminal{W: &out}).Record(ofCart())
	if line := out.String(); !strings.HasPrefix(line, "14:02:11 shop/cart-7d9/app  idle") {
		t.Errorf("got %s", line)
	}
}

func TestTheLogHasTheContainerInPartsAndThePath(t *testing.T) {
	var out bytes.Buffer
	r := ofCart()
	DecisionLog{zerolog.New(&out)}.Record(r)
	var got map[string]any
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"id": hash, "runtime": "containerd", "pod_uid": "u-1", "namespace": "shop", "pod": "cart-7d9", "name": "app", "asks": "swappiness 60"}
	if diff := cmp.Diff(want, got["container"]); diff != "" || got["name"] != "shop/cart-7d9/app" || got["cgroup"] != r.Cgroup.Path {
		t.Errorf("name %v, cgroup %v, container (-want +got):\n%s", got["name"], got["cgroup"], diff)
	}
}

func TestAnExplanationSaysWhoTheCgroupIs(t *testing.T) {
	for _, c := range []struct {
		name string
		edit func(*Record)
		want string
	}{
		{"a container of a pod", func(*Record) {}, "It is container " + hash + " of containerd, shop/cart-7d9/app, pod uid u-1."},
		{"a pod", func(r *Record) { r.Name, r.Container = "shop/cart-7d9", Container{PodUID: "u-1"} }, "It is a pod, shop/cart-7d9, pod uid u-1."},
		{"a cgroup inside a container", func(r *Record) {
			r.Name, r.Container = "web:/init.scope", Container{ID: "web", Inner: "/init.scope"}
		}, "It is the cgroup /init.scope inside container web, web:/init.scope."},
	} {
		r := ofCart()
		c.edit(r)
		if got := r.Explain()[0]; got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
		r.Err = memcg.ErrGone
		if got := r.Explain(); got[0] != c.want || len(got) < 2 {
			t.Errorf("%s, gone: got %q", c.name, got)
		}
	}
	if got := ofCart().Explain()[1]; got != "Its spec asks for swappiness 60." {
		t.Errorf("got %q", got)
	}
}

func TestACgroupOfNoContainerIsNamedByItsPathAndSaysNothingOfContainers(t *testing.T) {
	var out bytes.Buffer
	r := ofCart()
	r.Name, r.Container, r.Cgroup.Path = "", Container{}, "/batch/job 7"
	DecisionLog{zerolog.New(&out)}.Record(r)
	if strings.Contains(out.String(), "container") || strings.Contains(out.String(), `"name":"`) {
		t.Errorf("got %s", out.String())
	}
	if got := r.Label(); got != `"/batch/job 7"` {
		t.Errorf("got %s", got)
	}
	if got := r.Explain()[0]; !strings.HasPrefix(got, "It holds") {
		t.Errorf("got %s", got)
	}
}
