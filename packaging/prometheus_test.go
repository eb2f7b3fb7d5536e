package packaging_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

type rules struct {
	Groups []struct {
		Name  string
		Rules []struct {
			Alert, Expr, For    string
			Labels, Annotations map[string]string
		}
	}
}

func alerts(t *testing.T) (r rules) {
	t.Helper()
	if err := yaml.UnmarshalWithOptions([]byte(read(t, "prometheus/memagent.rules.yaml")), &r, yaml.Strict()); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestAlertsAskForMetricsThatThereAre(t *testing.T) {
	known := families(t)
	for _, g := range alerts(t).Groups {
		for _, a := range g.Rules {
			checkQuery(t, a.Alert, a.Expr, a.Annotations["summary"]+a.Annotations["action"], known)
			if a.Labels["severity"] == "" || a.Annotations["summary"] == "" || a.Annotations["action"] == "" {
				t.Errorf("%s: want a severity, a summary and an action", a.Alert)
			}
		}
	}
}

func TestEveryAlertHasATestInWhichItFires(t *testing.T) {
	tests := read(t, "prometheus/memagent.rules.test.yaml")
	for _, g := range alerts(t).Groups {
		for _, a := range g.Rules {
			if !strings.Contains(tests, "alertname: "+a.Alert+"\n") {
				t.Errorf("%s is in no test", a.Alert)
			}
		}
	}
}

func TestAlertsFireAndStaySilent(t *testing.T) {
	tool := promtool(t)
	output(t, tool, "check", "rules", "--lint-fatal", filepath.FromSlash("prometheus/memagent.rules.yaml"))
	output(t, tool, "test", "rules", filepath.FromSlash("prometheus/memagent.rules.test.yaml"))
}
