package config

import (
	"path/filepath"
	"testing"
)

func TestTheProfilesThatAreShippedAreTakenAndObserve(t *testing.T) {
	files, err := filepath.Glob("../packaging/profiles/*.yaml")
	if err != nil || len(files) != 3 {
		t.Fatalf("found %v, %v", files, err)
	}
	for _, file := range files {
		c, err := Load(file)
		if err != nil {
			t.Error(err)
			continue
		}
		if c.Mode != Observe {
			t.Errorf("%s does more than observe", file)
		}
		for _, p := range c.Policies {
			if c.Match(matching(p.Match[0].Path)) == nil {
				t.Errorf("%s: policy %s matches nothing", file, p.Name)
			}
		}
	}
}

// matching returns a path that a glob of stars matches.
func matching(g Glob) string {
	var path []byte
	for _, c := range []byte(g.String()) {
		if c != '*' {
			path = append(path, c)
		} else if n := len(path); path[n-1] != 'x' {
			path = append(path, 'x')
		}
	}
	return string(path)
}
