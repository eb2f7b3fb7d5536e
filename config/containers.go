package config

import (
	"fmt"
	"strings"
)

// Containers is what containers may ask for themselves, by their OCI specs. The
// zero Containers heeds nothing of it.
type Containers struct {
	// Annotations heeds those that Config.Wishes knows.
	Annotations bool
	// Swappiness heeds linux.resources.memory.swappiness, which container
	// runtimes ignore or refuse on cgroup v2.
	Swappiness bool
}

var containersKeys = []key[Containers]{
	boolKey("annotations", "Heed their annotations memagent.dev/observe: \"true\", memagent.dev/squeeze: \"off\",\n"+
		"memagent.dev/lend: \"false\" and memagent.dev/swappiness: \"0\"..\"200\", the last within the bounds of\n"+
		"swappiness above.",
		func(c *Containers) *bool { return &c.Annotations }),
	boolKey("swappiness", "Heed linux.resources.memory.swappiness, within the same bounds.",
		func(c *Containers) *bool { return &c.Swappiness }),
}

// String returns what is heeded in one phrase for people, "" where nothing is.
func (c Containers) String() string {
	var out []string
	if c.Annotations {
		out = append(out, "annotations")
	}
	if c.Swappiness {
		out = append(out, "swappiness")
	}
	if len(out) == 0 {
		return ""
	}
	return "heeds the " + strings.Join(out, " and ") + " of containers"
}

// checkContainers reports a leave to ask for what is fixed.
func (r *reader) checkContainers(p *Policy, field string) {
	at, ok := r.sound(field + ".containers.swappiness")
	if !ok || !p.Containers.Swappiness || p.Swappiness.Kind != SwappinessFixed || r.bad[field+".swappiness"] {
		return
	}
	r.fault(at, true, faultf(ErrConflict, "no container can ask for another than the policy's fixed swappiness %v", p.Swappiness),
		fmt.Sprintf("want swappiness kernel, or bounds such as {auto: {base: %d, min: %d, max: %d}}", autoBase, autoMin, autoMax))
}
