package result

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func kept(agent, build string, at int64) Kept {
	return Kept{
		At: time.Unix(at, 0).UTC(), Build: build,
		Result: Result{Scenario: "squeeze", Kernel: "6.12.1", LRU: "mglru", Law: "tmo",
			Runs: []Run{{Agent: agent, HostMS: 5, Artifacts: map[string]string{"log": "long"}}}},
	}
}

func TestWhatWasKeptIsThereForTheNextCall(t *testing.T) {
	s := Store{Dir: filepath.Join(t.TempDir(), "results")}
	if got, err := s.Load(); err != nil || len(got) != 0 {
		t.Fatalf("a folder that is not there: %v, %v", got, err)
	}
	second, first := kept("on", "abc", 20), kept("off", "abc", 10)
	for _, k := range []Kept{second, first} {
		if err := s.Add(k); err != nil {
			t.Fatal(err)
		}
	}
	got, err := s.Load()
	if err != nil || len(got) != 2 || got[0].Runs[0].Agent != "off" || got[1].Build != "abc" || got[1].Runs[0].HostMS != 5 {
		t.Errorf("got %+v, %v; want both, the older first", got, err)
	}
	if got[0].Runs[0].Artifacts != nil {
		t.Error("the artifacts were kept")
	}
	if second.Runs[0].Artifacts == nil {
		t.Error("the caller's run lost its artifacts")
	}
}

func TestAFileThatCannotBeReadCostsNoOther(t *testing.T) {
	s := Store{Dir: t.TempDir()}
	if err := s.Add(kept("on", "abc", 1)); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"cut.json": `{"scenario": "squ`, "none.json": `{"runs": []}`, "half.part": "{"} {
		if err := os.WriteFile(filepath.Join(s.Dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := s.Load()
	if len(got) != 1 {
		t.Errorf("got %d runs, want 1", len(got))
	}
	if err == nil || !strings.Contains(err.Error(), "cut.json") || !strings.Contains(err.Error(), "none.json") || strings.Contains(err.Error(), "half.part") {
		t.Errorf("got %v, want both files named and the unfinished one left alone", err)
	}
}

func TestOnlyOneRunIsKeptAtATime(t *testing.T) {
	k := kept("on", "abc", 1)
	k.Runs = append(k.Runs, k.Runs[0])
	if err := (Store{Dir: t.TempDir()}).Add(k); err == nil {
		t.Error("two runs were kept as one")
	}
}

func TestWithoutTheAgentItsBuildAndLawMakeNoOtherCell(t *testing.T) {
	a, b := kept("off", "abc", 1), kept("off", "", 2)
	b.Law = "memagent"
	if a.Cell() != b.Cell() {
		t.Errorf("%+v and %+v", a.Cell(), b.Cell())
	}
	on, other := kept("on", "abc", 1), kept("on", "def", 2)
	if on.Cell() == other.Cell() {
		t.Error("two builds are in one cell")
	}
}
