package config

import (
	"regexp"
	"strings"
)

// shown is a value on its way to YAML: a text that is YAML already, a mapping
// or a list. The zero shown is a value that is not set.
type shown struct {
	text    string
	entries []entry
	list    []shown
}

type entry struct {
	name, about, example string
	value                shown
}

// set reports whether there is anything to print.
func (s shown) set() bool {
	for _, e := range s.entries {
		if e.value.set() {
			return true
		}
	}
	return s.text != "" || s.list != nil
}

// Describe returns the config as YAML with every default filled in. Parse of
// it gives an equal config.
func (c *Config) Describe() string {
	var p printer
	p.mapping(showMapping(configKeys, c).entries, "")
	return p.String()
}

// Example returns an annotated config file in which every value is the
// default and every key that is unset by default is a comment.
func Example() string {
	p := printer{annotate: true}
	p.WriteString("# memagent.yaml: every key with its default. Only policies is required, and of a policy its name and\n" +
		"# match. Sizes are 0 or have B, KiB, MiB, GiB or TiB; rates have /s, shares %, times s, m or h.\n\n")
	p.mapping(showMapping(configKeys, Default()).entries, "")
	return p.String()
}

type printer struct {
	strings.Builder
	annotate bool
}

func (p *printer) mapping(entries []entry, indent string) {
	for _, e := range entries {
		p.entry(e, indent)
	}
}

func (p *printer) entry(e entry, indent string) {
	v := e.value
	if !v.set() {
		if p.annotate {
			p.comment(e, indent)
		}
		return
	}
	p.about(e.about, indent)
	switch {
	case v.text != "":
		p.WriteString(indent + e.name + ": " + v.text + "\n")
	case v.list != nil:
		p.WriteString(indent + e.name + ":\n")
		for _, item := range v.list {
			p.item(item.entries, indent+"  ")
		}
	default:
		p.WriteString(indent + e.name + ":\n")
		p.mapping(v.entries, indent+"  ")
	}
}

// item prints a mapping as an entry of a list: the mark takes the place of the
// first two blanks. The words about its first key go before the mark.
func (p *printer) item(entries []entry, indent string) {
	p.about(entries[0].about, indent)
	entries[0].about = ""
	inner := printer{annotate: p.annotate}
	inner.mapping(entries, indent+"  ")
	p.WriteString(indent + "- " + strings.TrimPrefix(inner.String(), indent+"  "))
}

func (p *printer) about(text, indent string) {
	if p.annotate && text != "" {
		p.WriteString(prefixed(text, indent+"# ") + "\n")
	}
}

// comment prints an entry that is not set as a comment that shows its examples.
func (p *printer) comment(e entry, indent string) {
	p.about(e.about, indent)
	if e.value.entries == nil {
		p.WriteString(indent + "# " + e.name + ": " + e.example + "\n")
		return
	}
	for _, below := range e.value.entries {
		p.about(below.about, indent)
	}
	p.WriteString(indent + "# " + e.name + ":\n")
	for _, below := range e.value.entries {
		p.WriteString(indent + "#   " + below.name + ": " + below.example + "\n")
	}
}

// prefixed puts prefix before every line of text.
func prefixed(text, prefix string) string {
	return prefix + strings.ReplaceAll(text, "\n", "\n"+prefix)
}

var plainWord = regexp.MustCompile(`^[a-z][a-z0-9-]*$`)

// yamlName leaves a name as it is where no YAML reader takes it for anything
// but a text.
func yamlName(name string) string {
	switch name {
	case "true", "false", "null", "yes", "no", "on", "off", "y", "n":
		return yamlQuote(name)
	}
	if plainWord.MatchString(name) {
		return name
	}
	return yamlQuote(name)
}

func yamlQuote(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }
