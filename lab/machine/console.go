package machine

import (
	"os"
	"regexp"
	"strings"
)

// escapes are the terminal control sequences firmware writes to a console.
var escapes = regexp.MustCompile(`\x1b(\[[0-9;?=]*[A-Za-z]|[()][A-Z0-9]|c)`)

// Tail returns the last n lines of a console's output, without control characters and empty lines.
func Tail(text string, n int) []string {
	text = escapes.ReplaceAllString(text, "")
	var lines []string
	for _, l := range strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' }) {
		l = strings.Map(func(r rune) rune {
			if r < ' ' && r != '\t' || r == 0x7f {
				return -1
			}
			return r
		}, l)
		if l = strings.TrimRight(l, " \t"); l != "" {
			lines = append(lines, l)
		}
	}
	if len(lines) > n {
		lines = lines[len(lines)-n:]
	}
	return lines
}

// TailFile is Tail of a file. A file that cannot be read gives the reason as its only line.
func TailFile(path string, n int) []string {
	raw, err := os.ReadFile(path)
	if err != nil {
		return []string{"the console log cannot be read: " + err.Error()}
	}
	return Tail(string(raw), n)
}
