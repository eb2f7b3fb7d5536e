package container

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opencontainers/runtime-spec/specs-go"

	"github.com/memagent/memagent/memcg"
)

var specTexts = []struct {
	name, text string
	check      func(s *Spec) bool
	faults     []string // a part of each
	bad        bool
}{
	{name: "nothing at all", text: `{}`, check: func(s *Spec) bool {
		return s.CgroupsPath == "" && s.Swappiness.State() == memcg.Missing && s.Limit.State() == memcg.Missing && s.Mems.Empty()
	}},
	{name: "memory", text: `{"linux":{"cgroupsPath":"/a","resources":{"memory":{"swappiness":0,"limit":4096,"reservation":-1},"cpu":{"mems":"0-1"}}}}`, check: func(s *Spec) bool {
		limit, ok := s.Limit.Bytes()
		return s.CgroupsPath == "/a" && s.Swappiness == memcg.Value(0) && ok && limit == 4096 && s.Reservation.IsMax() && s.Mems == memcg.NodesOf(0, 1)
	}},
	{name: "a limit of 0 is none", text: `{"linux":{"resources":{"memory":{"limit":0}}}}`, check: func(s *Spec) bool { return s.Limit.State() == memcg.Missing }},
	{name: "a negative swappiness costs itself alone", text: `{"linux":{"cgroupsPath":"/a","resources":{"memory":{"swappiness":-1,"limit":4096}}},"annotations":{"a":"b"}}`,
		check: func(s *Spec) bool {
			return s.CgroupsPath == "/a" && s.Swappiness.State() == memcg.Invalid && s.Limit.State() == memcg.Present && s.Annotations["a"] == "b"
		}, faults: []string{"swappiness"}},
	{name: "a negative limit is invalid", text: `{"linux":{"resources":{"memory":{"limit":-2}}}}`, check: func(s *Spec) bool { return s.Limit.State() == memcg.Invalid }, faults: []string{"limit is -2"}},
	{name: "a limit in words", text: `{"linux":{"resources":{"memory":{"limit":"max","swappiness":null}}}}`, check: func(s *Spec) bool {
		return s.Limit.State() == memcg.Invalid && s.Swappiness.State() == memcg.Missing
	}, faults: []string{"memory.limit is"}},
	{name: "memory that is a list", text: `{"linux":{"cgroupsPath":"/a","resources":{"memory":[]}}}`, check: func(s *Spec) bool { return s.CgroupsPath == "/a" && !s.Swappiness.Known() }, faults: []string{"linux.resources.memory"}},
	{name: "nodes that are none", text: `{"linux":{"resources":{"cpu":{"mems":"0-"}}}}`, check: func(s *Spec) bool { return s.Mems.Empty() }, faults: []string{"cpu.mems"}},
	{name: "an annotation that is no text", text: `{"annotations":{"a":7,"memagent.dev/a":7,"b":"x"}}`, check: func(s *Spec) bool { return s.Annotations["b"] == "x" }, faults: []string{"annotation memagent.dev/a is no text"}},
	{name: "half written", text: `{"linux":{"cgroupsPath":"/a`, bad: true},
	{name: "empty", text: ``, bad: true},
	{name: "a list", text: `[]`, bad: true},
	{name: "not JSON", text: "root:x:0:0", bad: true},
}

func TestASpecIsReadAndNonsenseInItCostsItselfAlone(t *testing.T) {
	for _, c := range specTexts {
		s, err := ParseSpec([]byte(c.text))
		if c.bad {
			if !errors.Is(err, memcg.ErrInvalid) {
				t.Errorf("%s: got %v", c.name, err)
			}
			continue
		}
		if err != nil || !c.check(s) || len(s.Faults) != len(c.faults) {
			t.Errorf("%s: got %+v, %v", c.name, s, err)
			continue
		}
		for i, f := range s.Faults {
			if !strings.Contains(f.Error(), c.faults[i]) || !errors.Is(f, memcg.ErrInvalid) {
				t.Errorf("%s: fault %v", c.name, f)
			}
		}
	}
}

func TestWhatTheTypesOfTheRuntimeSpecWriteIsRead(t *testing.T) {
	swappiness, limit, reservation := uint64(60), int64(1<<30), int64(-1)
	data, err := json.Marshal(specs.Spec{
		Annotations: map[string]string{"memagent.dev/observe": "true"},
		Linux: &specs.Linux{CgroupsPath: "a.slice:crio:x", Resources: &specs.LinuxResources{
			Memory: &specs.LinuxMemory{Swappiness: &swappiness, Limit: &limit, Reservation: &reservation},
			CPU:    &specs.LinuxCPU{Mems: "1"},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	s, err := ParseSpec(data)
	if err != nil || len(s.Faults) > 0 {
		t.Fatalf("%v, %v", err, s)
	}
	if got, _ := s.Limit.Bytes(); got != 1<<30 || s.Swappiness != memcg.Value(60) || !s.Reservation.IsMax() || s.Mems != memcg.NodesOf(1) ||
		s.CgroupsPath != "a.slice:crio:x" || s.Annotations["memagent.dev/observe"] != "true" {
		t.Errorf("got %+v", s)
	}
}

func FuzzParseSpec(f *testing.F) {
	for _, c := range specTexts {
		f.Add([]byte(c.text))
	}
	files, _ := filepath.Glob("testdata/*/run/*/*/*/*/config.json")
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	cand := Candidates(podDir + "/cri-containerd-" + hash("c0") + ".scope")[0]
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := ParseSpec(data)
		if (s == nil) == (err == nil) {
			t.Fatalf("got %v and %v", s, err)
		}
		if _, err := bundleOf(data); err != nil && !errors.Is(err, memcg.ErrInvalid) {
			t.Fatal(err)
		}
		if s == nil {
			return
		}
		s.Owns(cand)
		d := Description{ID: cand.ID, Pod: Pod{UID: podUID}}
		d.take(s)
		if label := d.Label(); strings.ContainsAny(label, "\n\x00\"") || len(label) > 1024 {
			t.Fatalf("label %q", label)
		}
		for key, value := range d.Annotations {
			if !strings.HasPrefix(key, AnnotationPrefix) || len(value) > maxAnnotation {
				t.Fatalf("kept %q: %q", key, value)
			}
		}
	})
}
