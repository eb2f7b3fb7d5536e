package container

import (
	"regexp"
	"slices"
	"strings"
)

// Candidate is a component of a cgroup's path that may be the cgroup of a
// container.
type Candidate struct {
	ID string // of the container
	// Prefix is what the runtime puts before the id: cri-containerd, crio,
	// libpod, docker, nerdctl, runc, crun; "" where the component is the id.
	Prefix string
	// Path is the container's own cgroup and Inner what is below it, "" where
	// nothing is: together they are the path that was asked for.
	Path, Inner string
	// Certain tells that the component is of a form that only runtimes use. Else
	// only a spec can tell.
	Certain bool
}

// idLength is that of the ids which containerd, CRI-O, podman and Docker draw,
// 32 bytes in hex.
const idLength = 64

var (
	// What runc takes for an id, and with it everybody who runs it.
	goodID = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.+-]{0,254}$`)
	hexID  = regexp.MustCompile(`^[0-9a-f]{64}$`)
	// Prefixes whose containers have ids that people choose.
	chosen = []string{"runc-", "crun-"}
)

// unitSuffixes are those of systemd's units, none of which but .scope holds a
// container.
var unitSuffixes = []string{".slice", ".service", ".scope", ".mount", ".socket", ".swap"}

// maxCandidates bounds how many components of one path are looked up.
const maxCandidates = 4

// Candidates returns the components of a cgroup's path that may be containers,
// the innermost first: those that are certain where there are any, a few others
// where not. Cgroups of systemd's units have none.
func Candidates(path string) []Candidate {
	var list []Candidate
	certain := false
	for end := len(path); end > 1; end = strings.LastIndexByte(path[:end], '/') {
		part := path[strings.LastIndexByte(path[:end], '/')+1 : end]
		id, prefix, sure, ok := readPart(part)
		if !ok || !goodID.MatchString(id) {
			continue
		}
		certain = certain || sure
		list = append(list, Candidate{ID: id, Prefix: prefix, Path: path[:end], Inner: path[end:], Certain: sure})
	}
	if certain {
		list = slices.DeleteFunc(list, func(c Candidate) bool { return !c.Certain })
	}
	return list[:min(len(list), maxCandidates)]
}

// readPart reads one component of a path.
func readPart(part string) (id, prefix string, certain, ok bool) {
	name, scope := strings.CutSuffix(part, ".scope")
	if at := len(name) - idLength; at > 1 && name[at-1] == '-' && hexID.MatchString(name[at:]) {
		prefix = name[:at-1]
		// conmon watches a container from a cgroup of its own.
		return name[at:], prefix, true, !strings.HasSuffix(prefix, "conmon")
	}
	if hexID.MatchString(name) {
		return name, "", true, true
	}
	if scope {
		for _, p := range chosen {
			if id, ok := strings.CutPrefix(name, p); ok {
				return id, p[:len(p)-1], false, true
			}
		}
		return "", "", false, false
	}
	for _, s := range unitSuffixes {
		if strings.HasSuffix(part, s) {
			return "", "", false, false
		}
	}
	return part, "", false, true
}

var (
	// As the kubelet names the cgroups of pods: kubepods-burstable-podUID.slice
	// with _ for -, and podUID below a kubepods of its own. Static pods have a
	// hash for a uid.
	podSlice  = regexp.MustCompile(`^(?:[a-z0-9]+-)*kubepods(?:-burstable|-besteffort)?-pod([0-9A-Za-z_]{1,63})\.slice$`)
	podFolder = regexp.MustCompile(`^pod([0-9A-Za-z-]{1,63})$`)
)

// podOf returns the uid of the pod that a cgroup is of, "" for none, and the
// path of the pod's own cgroup.
func podOf(path string) (uid, own string) {
	kubelets := false
	for at := 1; at < len(path); {
		end := strings.IndexByte(path[at:], '/') + at
		if end < at {
			end = len(path)
		}
		part := path[at:end]
		if m := podSlice.FindStringSubmatch(part); m != nil {
			return strings.ReplaceAll(m[1], "_", "-"), path[:end]
		}
		if m := podFolder.FindStringSubmatch(part); m != nil && kubelets {
			return m[1], path[:end]
		}
		kubelets = kubelets || part == "kubepods"
		at = end + 1
	}
	return "", ""
}

var userSlice = regexp.MustCompile(`^/user\.slice/user-([0-9]{1,10})\.slice(?:/|$)`)

// userOf returns the uid, in decimal, of the user whose cgroups a path is
// among; "" for the system's.
func userOf(path string) string {
	if m := userSlice.FindStringSubmatch(path); m != nil {
		return m[1]
	}
	return ""
}
