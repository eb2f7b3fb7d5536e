package top

import (
	"strings"
	"time"

	"github.com/charmbracelet/lipgloss"

	"github.com/memagent/memagent/memcg"
	"github.com/memagent/memagent/telemetry"
	"github.com/memagent/memagent/telemetry/status"
)

func action(c *status.Cgroup) string {
	if c.Last == nil {
		return ""
	}
	return c.Last.Text
}

// brief is action in the fewest words.
func brief(c *status.Cgroup) string {
	switch a := c.Last; {
	case a == nil:
		return ""
	case a.Held != "":
		return "held " + telemetry.Bytes(a.Want)
	case a.Took != nil:
		return "took " + telemetry.Bytes(*a.Took)
	default:
		return "asked " + telemetry.Bytes(a.Want)
	}
}

func latest(c *status.Cgroup) time.Time {
	if c.Last == nil {
		return time.Time{}
	}
	return c.Last.Time
}

// ellipsis stands for what was cut off.
const ellipsis = "…"

// head cuts a text to a width, at its end.
func head(text string, width int) string {
	if lipgloss.Width(text) <= width {
		return text
	}
	var b strings.Builder
	used := 1 // of the ellipsis
	for _, c := range text {
		w := lipgloss.Width(string(c))
		if used+w > width {
			break
		}
		b.WriteRune(c)
		used += w
	}
	return cut(b.String()+ellipsis, width)
}

// tail cuts a text to a width, at its front.
func tail(text string, width int) string {
	if lipgloss.Width(text) <= width {
		return text
	}
	runes := []rune(text)
	used, i := 1, len(runes)
	for i > 0 {
		w := lipgloss.Width(string(runes[i-1]))
		if used+w > width {
			break
		}
		used += w
		i--
	}
	return cut(ellipsis+string(runes[i:]), width)
}

// cut keeps even the ellipsis out where there is no room for it.
func cut(text string, width int) string {
	if width <= 0 {
		return ""
	}
	return text
}

// pad fills a text that fits up to a width.
func pad(text string, width int, right bool) string {
	fill := strings.Repeat(" ", max(0, width-lipgloss.Width(text)))
	if right {
		return fill + text
	}
	return text + fill
}

func nodeName(n int) string { return "N" + memcg.NodesOf(memcg.NodeID(n)).String() }
