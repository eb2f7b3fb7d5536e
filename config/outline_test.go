package config

import (
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"testing"
)

const schemaFile = "../packaging/memagent.schema.json"

func TestTheSchemaThatIsShippedIsCurrent(t *testing.T) {
	if *update {
		if err := os.WriteFile(schemaFile, Schema(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(schemaFile)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, Schema()) {
		t.Errorf("%s is not what memagent check --schema prints: run go test ./config -update", schemaFile)
	}
}

// keysOf returns the keys that a schema has anywhere.
func keysOf(v any) (keys []string) {
	switch v := v.(type) {
	case map[string]any:
		for name, below := range v {
			if props, ok := below.(map[string]any); ok && name == "properties" {
				for key := range props {
					keys = append(keys, key)
				}
			}
			keys = append(keys, keysOf(below)...)
		}
	case []any:
		for _, below := range v {
			keys = append(keys, keysOf(below)...)
		}
	}
	return keys
}

func TestTheSchemaHasEveryKeyThatTheExampleHas(t *testing.T) {
	var schema map[string]any
	if err := json.Unmarshal(Schema(), &schema); err != nil {
		t.Fatal(err)
	}
	have := keysOf(schema)
	var want []string
	var walk func(entries []entry)
	walk = func(entries []entry) {
		for _, e := range entries {
			want = append(want, e.name)
			walk(e.value.entries)
			for _, item := range e.value.list {
				walk(item.entries)
			}
		}
	}
	walk(showMapping(configKeys, Default()).entries)
	if len(want) < 25 {
		t.Fatalf("the example has only %v", want)
	}
	for _, key := range append(want, "auto", "base", "min", "max") {
		if !slices.Contains(have, key) {
			t.Errorf("the schema does not have %s", key)
		}
	}
	if required := schema["required"]; len(required.([]any)) != 1 {
		t.Errorf("required: %v", required)
	}
}
