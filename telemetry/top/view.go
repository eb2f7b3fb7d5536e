package top

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/memagent/memagent/telemetry"
	"github.com/memagent/memagent/telemetry/status"
)

// View is what somebody chose to see.
type View struct {
	Sort    int // a column
	Reverse bool
	Nodes   bool // sizes by node instead of verdicts
	Paused  bool
	row     int // the first that is shown
	node    int // the first that is shown, by its place
}

// sorted returns the rows in the order of the view; rows that are equal in it
// are in the order of their paths.
func (v *View) sorted(rows []status.Cgroup) []status.Cgroup {
	rows = slices.Clone(rows)
	slices.SortStableFunc(rows, func(a, b status.Cgroup) int {
		d := columns[v.Sort].order(&a, &b)
		if v.Reverse {
			d = -d
		}
		if d == 0 {
			d = strings.Compare(a.Path, b.Path)
		}
		return d
	})
	return rows
}

// Write prints the table once in full, for what is no terminal.
func Write(w io.Writer, s *status.Status) error {
	for _, text := range Summary(s) {
		if _, err := fmt.Fprintln(w, text); err != nil {
			return err
		}
	}
	if len(s.Cgroups) == 0 {
		_, err := fmt.Fprintln(w, "\nno cgroup is watched: no policy matches one, or the first look is not over")
		return err
	}
	v := View{Sort: colResident}
	rows := v.sorted(s.Cgroups)
	wide := longest(rows, colName, 0) + longest(rows, colAction, 0)
	for _, c := range columns {
		wide += c.width + gap
	}
	cells := lay(rows, wide)
	if _, err := fmt.Fprintf(w, "\n%s\n", titles(cells)); err != nil {
		return err
	}
	for i := range rows {
		if _, err := fmt.Fprintln(w, line(cells, &rows[i], false)); err != nil {
			return err
		}
	}
	return nil
}

// Summary says how the agent and the host are, in a few lines.
func Summary(s *status.Status) []string {
	a := &s.Agent
	lines := []string{
		fmt.Sprintf("memagent %s (pid %d), mode %s, up %s, looks every %s%s", a.Version, a.PID, a.Mode, span(s.Now.Sub(a.Started)),
			time.Duration(a.IntervalMS)*time.Millisecond, lastLook(s)),
		fmt.Sprintf("config %s: %s, %s watched", a.Config.Name, count(a.Config.Policies, "policy", "policies"), count(len(s.Cgroups), "cgroup", "cgroups")),
	}
	if a.Config.Refused != "" {
		lines = append(lines, "REFUSED is what the config says now; the one before stays in force: "+a.Config.Refused)
	}
	if a.Trouble != "" {
		lines = append(lines, "TROUBLE: nothing was decided: "+a.Trouble)
	}
	lines = append(lines, hostLine(&s.Host),
		fmt.Sprintf("%d requests made, %d in flight, %s taken; memagent itself used %s of CPU and at most %s",
			a.Requests, a.InFlight, telemetry.Bytes(a.Reclaimed), time.Duration(a.CPUMS)*time.Millisecond, telemetry.Bytes(a.PeakRSS)))
	return append(lines, telemetry.Predict(s.Predicted)...)
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}

func hostLine(h *status.Host) string {
	text := fmt.Sprintf("host: %s of %s available, %s of %s swap free", size(h.MemAvailable), size(h.MemTotal), size(h.SwapFree), size(h.SwapTotal))
	if len(h.Nodes) > 1 {
		for _, n := range h.Nodes {
			text += fmt.Sprintf(", node %d %s free", n.Node, size(n.MemFree))
		}
	}
	return text
}

func lastLook(s *status.Status) string {
	if s.Agent.LastTick == nil {
		return ", the first is not over"
	}
	return fmt.Sprintf(", the last %s ago in %s", span(s.Now.Sub(*s.Agent.LastTick)), time.Duration(s.Agent.LastTickUS)*time.Microsecond)
}

// span is a time for people: in whole seconds, in minutes from an hour on.
func span(d time.Duration) string {
	if d >= time.Hour {
		return strings.TrimSuffix(d.Truncate(time.Minute).String(), "0s")
	}
	return d.Truncate(time.Second).String()
}

// screen draws a whole terminal: exactly height lines of at most width columns.
// trouble is what went wrong since s was answered, "" for nothing.
func (v *View) screen(s *status.Status, trouble string, width, height int) string {
	rows := v.sorted(s.Cgroups)
	var cells []cell
	keys := []string{"q quit", "space pause", "n nodes", "c/v/m/s/f/p/l/a sort", "r reverse", "↑↓ scroll"}
	if v.Nodes {
		nodes := nodesOf(s)
		v.node = max(0, min(v.node, len(nodes)-1))
		cells, _ = layNodes(rows, nodes, v.node, width)
		keys = []string{"q quit", "space pause", "n verdicts", "←→ nodes", "c/m sort", "↑↓ scroll"}
	} else {
		cells = lay(rows, width)
	}
	top := v.head(s, trouble, len(rows), height)
	foot := 1
	if height < 6 {
		foot = 0
	}
	room := max(0, height-len(top)-foot-1)
	v.row = max(0, min(v.row, len(rows)-room))
	lines := make([]string, 0, height)
	for _, text := range top {
		lines = append(lines, head(text, width))
	}
	lines = append(lines, titleStyle.Render(head(titles(cells), width)))
	for i := v.row; i < min(len(rows), v.row+room); i++ {
		lines = append(lines, line(cells, &rows[i], true))
	}
	for len(lines) < height-foot {
		lines = append(lines, "")
	}
	if foot > 0 {
		lines = append(lines, quietStyle.Render(head(fitWords(keys, width), width)))
	}
	return strings.Join(lines[:min(len(lines), height)], "\n")
}

var titleStyle = plainStyle.Reverse(true)

// head is the lines above the table, as many as a height has room for.
func (v *View) head(s *status.Status, trouble string, rows, height int) []string {
	state := s.Agent.Mode
	if v.Paused {
		state = "PAUSED, " + state
	}
	order := strings.ToLower(columns[v.Sort].title)
	if v.Reverse {
		order += " reversed"
	}
	lines := []string{fmt.Sprintf("%s, %d cgroups by %s at %s", state, rows, order, s.Now.Local().Format("15:04:05"))}
	switch {
	case trouble != "":
		lines = append(lines, "! "+trouble)
	case s.Agent.Trouble != "":
		lines = append(lines, "! "+s.Agent.Trouble)
	case s.Agent.Config.Refused != "":
		lines = append(lines, "! config refused: "+s.Agent.Config.Refused)
	default:
		lines = append(lines, hostLine(&s.Host))
	}
	if height >= 16 {
		a := &s.Agent
		lines = append(lines, fmt.Sprintf("%d requests, %d in flight, %s taken%s", a.Requests, a.InFlight, telemetry.Bytes(a.Reclaimed), lastLook(s)))
	}
	if p := telemetry.Total(s.Predicted); height >= 20 && p.Cgroups > 0 {
		lines = append(lines, fmt.Sprintf("prediction: would ask for %s now, at most %s of %s out by now", telemetry.Bytes(p.Next), telemetry.Bytes(p.Most), telemetry.Bytes(p.Resident)))
	}
	return lines[:min(len(lines), max(0, height-2))]
}

// fitWords joins as many of the first words as fit.
func fitWords(words []string, width int) string {
	text := ""
	for _, w := range words {
		if text != "" {
			w = "  " + w
		}
		if len([]rune(text+w)) > width {
			break
		}
		text += w
	}
	return text
}
