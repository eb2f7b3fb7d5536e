package container

import (
	"path"
	"strings"
)

// Owns reports whether the spec says that the cgroup of a candidate is its own,
// by linux.cgroupsPath in any of its forms:
//
//   - slice:prefix:name, where systemd makes the cgroup: prefix-name.scope in
//     that slice, of the system's manager or of the user's;
//   - an absolute path, which is the cgroup's;
//   - a relative one, with which the cgroup's path ends: the runtime's own cgroup
//     goes before it;
//   - none, where runtimes choose by the id, at the top or in system.slice.
func (s *Spec) Owns(c Candidate) bool {
	user := userOf(c.Path)
	if strings.Count(s.CgroupsPath, ":") == 2 {
		slice, unit, _ := strings.Cut(s.CgroupsPath, ":")
		want, ok := unitPath(slice, unit, user)
		return ok && c.Path == want
	}
	switch {
	case s.CgroupsPath == "":
		want, ok := unitPath("", c.Prefix+":"+c.ID, user)
		return c.Path == "/"+c.ID || c.Prefix != "" && ok && c.Path == want
	case path.Clean(s.CgroupsPath) == "/" || path.Clean(s.CgroupsPath) == ".":
		return false
	case s.CgroupsPath[0] == '/':
		want := path.Clean(s.CgroupsPath)
		// A user's runtime may see the user's cgroups alone.
		return c.Path == want || user != "" && strings.HasSuffix(c.Path, want)
	}
	want := path.Join("/", s.CgroupsPath)
	return strings.HasSuffix(c.Path, want)
}

// unitPath returns the cgroup that systemd makes for a unit, given as
// prefix:name, in a slice.
func unitPath(slice, unit, user string) (string, bool) {
	prefix, name, _ := strings.Cut(unit, ":")
	if name == "" || strings.Contains(unit, "/") {
		return "", false
	}
	if !strings.HasSuffix(name, ".slice") {
		if prefix != "" {
			name = prefix + "-" + name
		}
		name += ".scope"
	}
	if slice == "" {
		slice = "system.slice"
		if user != "" {
			slice = "user.slice"
		}
	}
	dir, ok := slicePath(slice)
	if !ok {
		return "", false
	}
	if user != "" {
		dir = "/user.slice/user-" + user + ".slice/user@" + user + ".service" + dir
	}
	return dir + "/" + name, true
}

// slicePath returns where a slice is: a-b.slice is in a.slice (systemd.slice(5)).
func slicePath(slice string) (string, bool) {
	name, ok := strings.CutSuffix(slice, ".slice")
	if !ok || name == "" || strings.ContainsAny(name, "/:") {
		return "", false
	}
	if name == "-" {
		return "", true
	}
	var b strings.Builder
	for i := 0; i <= len(name); i++ {
		if i == len(name) || name[i] == '-' {
			if i == 0 || name[i-1] == '-' {
				return "", false
			}
			b.WriteString("/" + name[:i] + ".slice")
		}
	}
	return b.String(), true
}
