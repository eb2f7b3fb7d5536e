package lab

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/memagent/memagent/lab/scenario"
)

func TestAScenarioGetsTheBuildOfMemagentThatItNeeds(t *testing.T) {
	agent := filepath.Join(t.TempDir(), "memagent")
	if err := os.WriteFile(agent+"-crashpoints", nil, 0o755); err != nil {
		t.Fatal(err)
	}
	plain, special, missing := scenario.Scenario{}, scenario.Scenario{Build: "crashpoints"}, scenario.Scenario{Name: "x", Build: "other"}
	for _, tc := range []struct {
		name  string
		lab   *Lab
		s     scenario.Scenario
		state string
		want  string
		fails string
	}{
		{"the ordinary one", &Lab{Agent: agent}, plain, "on", agent, ""},
		{"one with a tag", &Lab{Agent: agent}, special, "on", agent + "-crashpoints", ""},
		{"any will do with the agent off", &Lab{Agent: agent}, missing, "off", agent, ""},
		{"none is needed with the agent off", &Lab{}, special, "off", "", ""},
		{"none is needed where a package brings it", &Lab{}, scenario.Scenario{Host: true}, "on", "", ""},
		{"there is none", &Lab{}, plain, "on", "", "there is no memagent"},
		{"there is none with that tag", &Lab{Agent: agent}, missing, "on", "", "go build -tags other"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := tc.lab.AgentFor(tc.s, tc.state)
			if got != tc.want || (err == nil) != (tc.fails == "") || err != nil && !strings.Contains(err.Error(), tc.fails) {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}
