package kernel

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"strings"
)

// dependencies are the modules an uncompressed module needs loaded before it, from the
// "depends=" line of its .modinfo section. Debian's packages carry no modules.dep.
func dependencies(module []byte) ([]string, error) {
	f, err := elf.NewFile(bytes.NewReader(module))
	if err != nil {
		return nil, fmt.Errorf("reading its ELF header: %w", err)
	}
	section := f.Section(".modinfo")
	if section == nil {
		return nil, errors.New("it has no .modinfo section")
	}
	raw, err := section.Data()
	if err != nil {
		return nil, fmt.Errorf("reading its .modinfo section: %w", err)
	}
	return parseDepends(string(raw)), nil
}

// parseDepends reads "depends=a,b" from the zero-terminated strings of a .modinfo section.
func parseDepends(modinfo string) []string {
	for _, s := range strings.Split(modinfo, "\x00") {
		if list, ok := strings.CutPrefix(s, "depends="); ok && list != "" {
			return strings.Split(list, ",")
		}
	}
	return nil
}

// loadOrder puts wanted modules and what they depend on in an order in which they can be loaded.
// Only modules that are keys of depends exist; the others are built into the kernel.
func loadOrder(wanted []string, depends map[string][]string) []string {
	var out []string
	seen := map[string]bool{}
	var visit func(string)
	visit = func(m string) {
		deps, exists := depends[m]
		if seen[m] || !exists {
			return
		}
		seen[m] = true
		for _, d := range deps {
			visit(d)
		}
		out = append(out, m)
	}
	for _, m := range wanted {
		visit(m)
	}
	return out
}
