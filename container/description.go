package container

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/memagent/memagent/memcg"
)

// Description is what is known of the container, or the pod, that a cgroup
// belongs to. Texts that are not known are "". The zero Description says that
// nothing is.
type Description struct {
	ID      string // of the container; "" for the cgroup of a pod
	Runtime string // Containerd, CRIO, Podman, Docker, Runc, Crun
	// Inner is the path of the cgroup below the container's own, such as
	// "/init.scope"; "" for the container's own.
	Inner string
	Pod   Pod
	Name  string // of the container in its pod, or as its runtime has it

	// Annotations are those of the spec that begin with AnnotationPrefix.
	Annotations map[string]string
	// Swappiness, Limit, Reservation and Mems are as Spec has them; missing and
	// empty where there is no spec.
	Swappiness         memcg.Field
	Limit, Reservation memcg.Limit
	Mems               memcg.NodeMask
	// Faults are values of the spec that could not be taken, and why there is no
	// spec where one was to be expected.
	Faults []error
}

// Pod is a pod of Kubernetes.
type Pod struct {
	UID             string
	Namespace, Name string
}

// AnnotationPrefix is what annotations begin with that are kept.
const AnnotationPrefix = "memagent.dev/"

// Bounds on the annotations that are kept of one container. Those of Kubernetes
// may have 256 KiB.
const (
	maxAnnotations = 32
	maxAnnotation  = 317 // bytes of key and of value: the longest key of Kubernetes
)

// Known reports whether anything is known.
func (d *Description) Known() bool { return d.ID != "" || d.Pod.UID != "" }

// Payload is the cgroup that crun makes inside a container's own for its
// processes, below that one's path. The limits are on it; crun 1.8.5 and later set
// that of memory on the container's own as well.
const Payload = "/container"

// sandbox is how the container that holds a pod's namespaces is named.
const sandbox = "POD"

// Label is the name for people: NAMESPACE/POD/CONTAINER in Kubernetes, else the
// container's name, else its runtime and the start of its id, with ":" and the
// path below it for a cgroup inside. "" where nothing is known.
func (d *Description) Label() string {
	const short = 12 // characters, as runtimes print ids
	name := ""
	switch {
	case !d.Known():
		return ""
	case d.Pod.Name != "" && d.Name != "":
		name = d.Pod.Namespace + "/" + d.Pod.Name + "/" + d.Name
	case d.Pod.Name != "" && d.ID == "":
		name = d.Pod.Namespace + "/" + d.Pod.Name
	case d.ID == "":
		name = "pod/" + d.Pod.UID
	case d.Pod.Name != "":
		name = d.Pod.Namespace + "/" + d.Pod.Name + "/" + d.ID[:min(short, len(d.ID))]
	case d.Name != "":
		name = d.Name
	default:
		name = d.ID
		if hexID.MatchString(name) {
			name = name[:short]
		}
		if d.Runtime == "" {
			name = "container/" + name
		} else {
			name = d.Runtime + "/" + name
		}
	}
	if d.Inner != "" && d.Inner != Payload { // which is all of the container
		name += ":" + d.Inner
	}
	return name
}

// Names of Kubernetes: a pod and a namespace are DNS names, a container's name is
// one component of one; CRI-O says POD for the sandbox.
var (
	dnsName = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$`)
	anyName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,126}$`)
)

// take fills in what the spec of the container says.
func (d *Description) take(s *Spec) {
	d.Swappiness, d.Limit, d.Reservation, d.Mems = s.Swappiness, s.Limit, s.Reservation, s.Mems
	d.Faults = append(d.Faults, s.Faults...)
	for key, value := range s.Annotations {
		if !strings.HasPrefix(key, AnnotationPrefix) {
			continue
		}
		if len(d.Annotations) == maxAnnotations || len(key) > maxAnnotation || len(value) > maxAnnotation {
			d.Annotations = nil
			d.Faults = append(d.Faults, fmt.Errorf("annotations %s*: more than %d of them, or one longer than %d bytes, so none is taken: %w", AnnotationPrefix, maxAnnotations, maxAnnotation, memcg.ErrInvalid))
			break
		}
		if d.Annotations == nil {
			d.Annotations = make(map[string]string)
		}
		d.Annotations[key] = value
	}
	if d.Pod.UID != "" {
		d.takePod(s.Annotations)
	} else if name := s.Annotations["nerdctl/name"]; anyName.MatchString(name) {
		d.Name = name
	}
}

// podKeys are the annotations in which a runtime has the names of Kubernetes.
type podKeys struct {
	uid, namespace, pod, name, kind string
}

var (
	criKeys  = podKeys{"io.kubernetes.cri.sandbox-uid", "io.kubernetes.cri.sandbox-namespace", "io.kubernetes.cri.sandbox-name", "io.kubernetes.cri.container-name", "io.kubernetes.cri.container-type"}
	crioKeys = podKeys{"io.kubernetes.pod.uid", "io.kubernetes.pod.namespace", "io.kubernetes.pod.name", "io.kubernetes.container.name", "io.kubernetes.cri-o.ContainerType"}
)

// crioLabels is where CRI-O has the labels that the kubelet gave, as JSON. They
// go before annotations of the same names: CRI-O hands on what the pod's author
// has annotated, and an author must not choose under which name the pod is seen.
const crioLabels = "io.kubernetes.cri-o.Labels"

// takePod fills in the names that Kubernetes has, from the annotations that
// containerd's CRI plugin or CRI-O writes.
func (d *Description) takePod(a map[string]string) {
	keys, labels := criKeys, a
	if d.Runtime == CRIO {
		keys = crioKeys
		var given map[string]string
		if json.Unmarshal([]byte(a[crioLabels]), &given) == nil && given[keys.pod] != "" {
			labels = given
		}
	}
	if uid := labels[keys.uid]; uid != "" && uid != d.Pod.UID {
		d.Faults = append(d.Faults, fmt.Errorf("the spec names pod %q, the cgroup is in pod %s: %w", uid, d.Pod.UID, memcg.ErrInvalid))
		return
	}
	ns, pod, name := labels[keys.namespace], labels[keys.pod], labels[keys.name]
	if !dnsName.MatchString(ns) || !dnsName.MatchString(pod) {
		return
	}
	d.Pod.Namespace, d.Pod.Name = ns, pod
	if a[keys.kind] == "sandbox" {
		name = sandbox
	}
	if anyName.MatchString(name) {
		d.Name = name
	}
}
