package main

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// flagName finds the names of flags in what a command says of them.
var flagName = regexp.MustCompile(`(?m)^ +(?:-[a-z], )?--([a-z-]+)`)

func flagsOf(c *cobra.Command) (names []string) {
	for _, f := range flagName.FindAllStringSubmatch(c.LocalFlags().FlagUsages(), -1) {
		if f[1] != "help" {
			names = append(names, f[1])
		}
	}
	return names
}

// documented returns the rows of each command in the table of a document.
func documented(t *testing.T, file, program string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../docs", file))
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{}
	for line := range strings.Lines(string(text)) {
		first, rest, ok := strings.Cut(strings.TrimPrefix(line, "| `"), "` |")
		if words := strings.Fields(first); ok && strings.HasPrefix(line, "| `"+program+" ") && len(words) > 1 {
			rows[words[1]] += first + rest
		}
	}
	return rows
}

func TestEveryCommandAndFlagIsDocumented(t *testing.T) {
	rows := documented(t, "operations.md", "memagent")
	var walk func(name string, c *cobra.Command)
	walk = func(name string, c *cobra.Command) {
		row, ok := rows[name]
		if !ok {
			t.Errorf("docs/operations.md has no row for %s", c.CommandPath())
		}
		for _, f := range flagsOf(c) {
			if !strings.Contains(row, "`--"+f+"`") {
				t.Errorf("docs/operations.md does not name --%s in a row of %s", f, c.CommandPath())
			}
		}
		for _, sub := range c.Commands() {
			walk(name, sub)
		}
	}
	flags := map[string]bool{}
	for _, c := range newRoot(env{out: io.Discard, err: io.Discard}).Commands() {
		if c.Hidden {
			continue
		}
		walk(c.Name(), c)
		for _, f := range flagsOf(c) {
			flags[c.Name()+" --"+f] = true
		}
	}
	if !flags["check --brief"] || !flags["top --every"] {
		t.Errorf("the walk misses flags: %v", flags)
	}
	for name, row := range rows {
		for _, word := range strings.Fields(row) {
			flag, ok := strings.CutPrefix(word, "`--")
			if flag, _, _ = strings.Cut(flag, "`"); ok && !flags[name+" --"+flag] && name != "completion" {
				t.Errorf("docs/operations.md has --%s in a row of %s, which takes no such flag", flag, name)
			}
		}
	}
}
