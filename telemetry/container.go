package telemetry

import (
	"strings"

	"github.com/rs/zerolog"
)

// Container is the container whose cgroup a record is about, as far as it is
// known; every text may be "". The zero Container is none.
type Container struct {
	ID      string // as its runtime has it
	Runtime string // who runs it: containerd, cri-o, podman, docker, runc, crun
	// Inner is the path of the cgroup below the container's own, "" for the
	// container's own.
	Inner string

	// Of Kubernetes: the pod's uid, namespace and name, and the container's name
	// in it.
	PodUID, Namespace, Pod, Name string

	// Asks is what its spec and annotations ask for, in words for people.
	Asks string
}

// Known reports whether the cgroup is known to belong to a container or a pod.
func (c *Container) Known() bool { return c.ID != "" || c.PodUID != "" }

// Label names the cgroup of a record for people: by Record.Name where it has
// one, else by its path.
func (r *Record) Label() string {
	if r.Name != "" {
		return Name(r.Name)
	}
	return Name(r.Cgroup.Path)
}

// logContainer writes who the cgroup is, where that is known.
func (r *Record) logContainer(e *zerolog.Event) {
	if r.Name != "" {
		e.Str("name", r.Name)
	}
	if !r.Container.Known() {
		return
	}
	d := zerolog.Dict()
	for _, f := range [...]struct{ name, text string }{
		{"id", r.Container.ID}, {"runtime", r.Container.Runtime}, {"inner", r.Container.Inner}, {"pod_uid", r.Container.PodUID},
		{"namespace", r.Container.Namespace}, {"pod", r.Container.Pod}, {"name", r.Container.Name}, {"asks", r.Container.Asks},
	} {
		if f.text != "" {
			d.Str(f.name, f.text)
		}
	}
	e.Dict("container", d)
}

// explainContainer tells who the cgroup is in a sentence or two; none where
// nothing is known of it.
func (r *Record) explainContainer() []string {
	c := &r.Container
	if !c.Known() {
		return nil
	}
	var b strings.Builder
	b.WriteString("It is ")
	if c.Inner != "" {
		b.WriteString("the cgroup " + Name(c.Inner) + " inside ")
	}
	switch {
	case c.ID == "":
		b.WriteString("a pod")
	case c.Runtime != "":
		b.WriteString("container " + c.ID + " of " + c.Runtime)
	default:
		b.WriteString("container " + c.ID)
	}
	if r.Name != "" {
		b.WriteString(", " + Name(r.Name))
	}
	if c.PodUID != "" {
		b.WriteString(", pod uid " + c.PodUID)
	}
	b.WriteString(".")
	lines := []string{b.String()}
	if c.Asks != "" {
		lines = append(lines, "Its spec asks for "+c.Asks+".")
	}
	return lines
}
