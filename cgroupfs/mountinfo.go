package cgroupfs

import (
	"bytes"
	"strconv"
	"strings"
)

// mount is one line of /proc/PID/mountinfo.
type mount struct {
	id, parent int
	root       string // directory of the filesystem that is mounted, unescaped
	point      string // where, unescaped
	options    string // of the mount, "rw,nosuid"
	fstype     string
	super      string // options of the filesystem; may hold blanks
}

// parseMountinfo reads mountinfo (proc(5), show_mountinfo in fs/proc_namespace.c):
//
//	36 35 98:0 /root /point rw,noatime master:1 shared:2 - ext4 /dev/sda1 rw,errors=continue
//
// Between the sixth field and a lone "-" stand any number of optional fields,
// none included. After it come type, source, which may itself be "-", and
// super options, which may hold blanks: only the first two are split off.
// Lines of another shape are passed over, for they are somebody else's mount.
func parseMountinfo(b []byte) []mount {
	var mounts []mount
	for line := range bytes.Lines(b) {
		if m, ok := parseMount(strings.TrimRight(string(line), "\n")); ok {
			mounts = append(mounts, m)
		}
	}
	return mounts
}

func parseMount(line string) (m mount, ok bool) {
	var fields [6]string
	rest := line
	for i := range fields {
		if fields[i], rest, ok = strings.Cut(rest, " "); !ok {
			return mount{}, false
		}
	}
	for {
		var f string
		f, rest, ok = strings.Cut(rest, " ")
		if f == "-" {
			break
		}
		if !ok {
			return mount{}, false
		}
	}
	var source string
	m.fstype, rest, _ = strings.Cut(rest, " ")
	source, m.super, _ = strings.Cut(rest, " ")
	var err1, err2 error
	m.id, err1 = strconv.Atoi(fields[0])
	m.parent, err2 = strconv.Atoi(fields[1])
	if err1 != nil || err2 != nil || m.fstype == "" || source == "" {
		return mount{}, false
	}
	m.root, m.point, m.options = unescape(fields[3]), unescape(fields[4]), fields[5]
	return m, strings.HasPrefix(m.point, "/")
}

// unescape undoes mangle_path (fs/seq_file.c), which prints blank, tab,
// newline, backslash and, in newer kernels, '#' as a backslash and three octal
// digits. A backslash without three octal digits stands for itself.
func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if v, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(v))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// readOnly reports whether the mount or its filesystem is read-only.
func (m mount) readOnly() bool { return hasOption(m.options, "ro") || hasOption(m.super, "ro") }

func hasOption(options, name string) bool {
	for o := range strings.SplitSeq(options, ",") {
		if o == name {
			return true
		}
	}
	return false
}

// covered reports whether another mount is stacked on m's own mount point.
func covered(m mount, all []mount) bool {
	for _, o := range all {
		if o.point == m.point && o.parent == m.id && o.id != m.id {
			return true
		}
	}
	return false
}

// hidden reports whether a mount further down the table lies over a directory
// on the way to m. A kernel answers that better itself, when the mount point
// is opened; for a recorded table this is all there is.
func hidden(m mount, all []mount) bool {
	after := false
	for _, o := range all {
		if o.id == m.id {
			after = true
			continue
		}
		if after && isAbove(o.point, m.point) && !liesIn(m, o.id, all) {
			return true
		}
	}
	return false
}

// liesIn reports whether m was mounted, directly or through others, inside the
// mount with the given id.
func liesIn(m mount, id int, all []mount) bool {
	for range len(all) { // parents may form a loop only in a damaged file
		if m.parent == id {
			return true
		}
		up := -1
		for i := range all {
			if all[i].id == m.parent {
				up = i
			}
		}
		if up < 0 {
			return false
		}
		m = all[up]
	}
	return false
}

// isAbove reports whether dir is a proper ancestor of the absolute path p.
func isAbove(dir, p string) bool {
	return dir != p && (dir == "/" || strings.HasPrefix(p, dir+"/"))
}
