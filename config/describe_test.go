package config

import (
	"flag"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files and memagent.yaml anew")

const exampleFile = "../packaging/memagent.yaml"

func TestTheExampleFileSaysWhatTheDefaultsAre(t *testing.T) {
	if *update {
		if err := os.WriteFile(exampleFile, []byte(Example()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(exampleFile)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Example(), string(data)); diff != "" {
		t.Errorf("memagent.yaml is not what the schema gives; go test ./config -update writes it (-schema +file):\n%s", diff)
	}
	c, err := Load(exampleFile)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Default(), c); diff != "" {
		t.Errorf("memagent.yaml differs from the defaults (-defaults +file):\n%s", diff)
	}
}
