package packaging_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

type dashboard struct {
	UID, Title string
	Panels     []struct {
		ID          int
		Type, Title string
		Description string
		GridPos     struct{ X, Y, W, H int }
		Targets     []struct{ Expr, LegendFormat, RefID string }
	}
	Templating struct {
		List []struct{ Name, Type, Definition string }
	}
}

func board(t *testing.T) (d dashboard) {
	t.Helper()
	if err := json.Unmarshal([]byte(read(t, "grafana/memagent.json")), &d); err != nil {
		t.Fatal(err)
	}
	return d
}

func TestTheDashboardAsksForMetricsThatThereAre(t *testing.T) {
	known := families(t)
	for _, p := range board(t).Panels {
		if p.Type == "row" {
			continue
		}
		if len(p.Targets) == 0 || p.Description == "" {
			t.Errorf("%s: want a query and a description", p.Title)
		}
		for _, q := range p.Targets {
			checkQuery(t, p.Title, q.Expr, q.LegendFormat, known)
		}
	}
}

func TestTheDashboardShowsWhatObservingPredicts(t *testing.T) {
	d := board(t)
	for name := range families(t) {
		if !strings.HasPrefix(name, "memagent_predicted_") {
			continue
		}
		shown := false
		for _, p := range d.Panels {
			for _, q := range p.Targets {
				if !strings.Contains(q.Expr, name) {
					continue
				}
				shown = true
				if !strings.Contains(q.Expr, "by (policy)") || !strings.Contains(q.Expr, `instance=~"$instance"`) {
					t.Errorf("%s: want a sum for each policy of the instances that are chosen, got %s", p.Title, q.Expr)
				}
			}
		}
		if !shown {
			t.Errorf("no panel shows %s", name)
		}
	}
}

func TestPanelsNeitherOverlapNorShareAnID(t *testing.T) {
	ids, cells := map[int]string{}, map[[2]int]string{}
	for _, p := range board(t).Panels {
		if other, taken := ids[p.ID]; taken {
			t.Errorf("%s and %s have the id %d", p.Title, other, p.ID)
		}
		ids[p.ID] = p.Title
		if p.GridPos.X+p.GridPos.W > 24 {
			t.Errorf("%s is wider than the board", p.Title)
		}
		for x := range p.GridPos.W {
			for y := range p.GridPos.H {
				cell := [2]int{p.GridPos.X + x, p.GridPos.Y + y}
				if other, taken := cells[cell]; taken {
					t.Fatalf("%s lies over %s", p.Title, other)
				}
				cells[cell] = p.Title
			}
		}
	}
}

func TestPrometheusUnderstandsTheQueriesOfTheDashboard(t *testing.T) {
	tool := promtool(t)
	variables := strings.NewReplacer("$__rate_interval", "5m", "$instance", ".*", "$cgroup", ".*")
	var b strings.Builder
	b.WriteString("groups:\n  - name: dashboard\n    rules:\n")
	for _, p := range board(t).Panels {
		for _, q := range p.Targets {
			text, err := json.Marshal(variables.Replace(q.Expr))
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&b, "      - {record: 'panel%d:%s', expr: %s}\n", p.ID, q.RefID, text)
		}
	}
	file := filepath.Join(t.TempDir(), "dashboard.yaml")
	if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	output(t, tool, "check", "rules", file)
}
