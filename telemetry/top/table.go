package top

import (
	"slices"
	"strings"

	"github.com/charmbracelet/lipgloss"

	"github.com/memagent/memagent/telemetry/status"
)

// cell is one column of a table with the width it was given.
type cell struct {
	title string
	width int
	right bool
	front bool // what is too long loses its front
	text  func(*status.Cgroup) string
	style func(*status.Cgroup) lipgloss.Style // nil: plain
}

const (
	gap = 1 // blanks between columns
	// smallName is the least room for a name on a narrow terminal, wideName on
	// one of wideFrom columns.
	smallName, wideName = 11, 20
	wideFrom            = 40
	// nameShare is the part of a line, in percent, that names may take from what
	// is done.
	nameShare = 40
	// sentenceFrom is the width from which an action tells why.
	sentenceFrom = 28
)

func leastName(width int) int {
	if width >= wideFrom {
		return wideName
	}
	return smallName
}

// lay chooses the columns for rows of a table and gives each a width, so that
// all of them take width at most.
func lay(rows []status.Cgroup, width int) []cell {
	name := longest(rows, colName, len(columns[colName].title))
	least := min(leastName(width), name)
	left := width - least
	var shown []int
	for _, i := range kept {
		if i == colLent && !slices.ContainsFunc(rows, func(c status.Cgroup) bool { return c.Lent != nil }) {
			continue
		}
		if w := columns[i].width + gap; w <= left {
			shown = append(shown, i)
			left -= w
		}
	}
	slices.Sort(shown)
	// What is left goes to the name up to its share, then to the action, then to
	// the name again.
	more := min(left, name-least, max(0, width*nameShare/100-least))
	if slices.Contains(shown, colAction) {
		ask := longest(rows, colAction, 0) - columns[colAction].width
		more = max(more, min(left-ask, name-least))
	} else {
		more = min(left, name-least)
	}
	cells := []cell{{title: columns[colName].title, width: least + more, front: true, text: columns[colName].text}}
	left -= more
	for _, i := range shown {
		c := columns[i]
		one := cell{title: c.title, width: c.width, right: c.right, text: c.text}
		switch i {
		case colAction:
			if one.width += left; one.width < sentenceFrom {
				one.text = brief
			}
		case colVerdict:
			one.style = verdictStyle
		}
		cells = append(cells, one)
	}
	return cells
}

func longest(rows []status.Cgroup, col, atLeast int) int {
	for i := range rows {
		atLeast = max(atLeast, lipgloss.Width(columns[col].text(&rows[i])))
	}
	return atLeast
}

// layNodes chooses the columns of the view by node: the name, and from node
// number first on as many nodes as there is room for. more tells whether there
// are others behind them.
func layNodes(rows []status.Cgroup, nodes []int, first, width int) (cells []cell, more bool) {
	name := longest(rows, colName, len(columns[colName].title))
	least := min(leastName(width), name, max(0, width-nodeWidth-gap)) // one node is worth more than a name in full
	left := width - least
	cells = []cell{{title: columns[colName].title, front: true, text: columns[colName].text}}
	nodes = nodes[min(first, len(nodes)):]
	for len(nodes) > 0 && left >= nodeWidth+gap {
		id := nodes[0]
		cells = append(cells, cell{title: nodeName(id) + " anon/file", width: nodeWidth, right: true, text: func(c *status.Cgroup) string { return onNode(c, id) }})
		nodes, left = nodes[1:], left-nodeWidth-gap
	}
	cells[0].width = least + min(left, name-least)
	return cells, len(nodes) > 0
}

// nodeWidth has room for two sizes such as "1023 MiB" without their blanks.
const nodeWidth = 15

func onNode(c *status.Cgroup, id int) string {
	for _, n := range c.Nodes {
		if n.Node == id {
			return tight(size(n.Anon)) + "/" + tight(size(n.File))
		}
	}
	return absent
}

// tight leaves out the blank of a size, and the unit's last two letters.
func tight(size string) string {
	return strings.TrimSuffix(strings.ReplaceAll(size, " ", ""), "iB")
}

// nodesOf lists the nodes that rows and the host tell of, in ascending id.
func nodesOf(s *status.Status) (ids []int) {
	for _, n := range s.Host.Nodes {
		ids = append(ids, n.Node)
	}
	for i := range s.Cgroups {
		for _, n := range s.Cgroups[i].Nodes {
			ids = append(ids, n.Node)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// titles is the line above the rows.
func titles(cells []cell) string {
	parts := make([]string, len(cells))
	for i, c := range cells {
		parts[i] = pad(head(c.title, c.width), c.width, c.right)
	}
	return strings.TrimRight(strings.Join(parts, " "), " ")
}

// line is one row. styled is false for what is not a terminal.
func line(cells []cell, row *status.Cgroup, styled bool) string {
	var b strings.Builder
	for i, c := range cells {
		text := c.text(row)
		if c.front {
			text = tail(text, c.width)
		} else {
			text = head(text, c.width)
		}
		text = pad(text, c.width, c.right)
		if i > 0 {
			b.WriteByte(' ')
		}
		if styled && c.style != nil {
			text = c.style(row).Render(text)
		}
		b.WriteString(text)
	}
	return strings.TrimRight(b.String(), " ")
}

var (
	badStyle   = lipgloss.NewStyle().Foreground(lipgloss.Color("1")).Bold(true)
	wornStyle  = lipgloss.NewStyle().Foreground(lipgloss.Color("3"))
	quietStyle = lipgloss.NewStyle().Faint(true)
	plainStyle = lipgloss.NewStyle()
)

func verdictStyle(c *status.Cgroup) lipgloss.Style {
	switch u := urgency(c); {
	case u >= 5:
		return badStyle
	case u >= 3:
		return wornStyle
	case u == 1:
		return quietStyle
	}
	return plainStyle
}
