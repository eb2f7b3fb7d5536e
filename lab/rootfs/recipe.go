package rootfs

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// recipe is all that an image is made of but the versions of the packages, which are those of the day.
type recipe struct {
	release  string   // of Debian
	packages []string // beside what every Debian has
	excluded []string // paths that dpkg leaves out
	files    []file   // written in the end
}

type file struct{ path, text string }

// host is a container host. Docs and translations are for people, who are not there; plugins for
// networks are of no use without one.
var host = recipe{
	release: "bookworm",
	packages: []string{
		"systemd", "systemd-sysv", "dbus", // the service manager, and how one talks to it
		"podman", "crun", "containerd", "runc", // two engines, each with its runtime
		"busybox-static", // root file systems of containers are made of it
		"procps",         // which memagent's package recommends
	},
	excluded: []string{"/usr/share/doc/*", "/usr/share/man/*", "/usr/share/locale/*", "/usr/share/info/*", "/usr/lib/cni/*"},
	files: []file{
		// With an id it is no first boot, at which systemd would set all units to their presets.
		{"/etc/machine-id", "686f7374206775657374206964212121\n"},
		{"/etc/hostname", "host\n"},
		{"/etc/apt/sources.list", ""}, // nowhere; without the file apt complains
		{"/etc/fstab", "/dev/vda / ext4 rw 0 0\n"},
		// The other drivers need modules of the kernel that guests do not have.
		{"/etc/containers/storage.conf", "[storage]\ndriver = \"vfs\"\nrunroot = \"/run/containers/storage\"\ngraphroot = \"/var/lib/containers/storage\"\n"},
	},
}

// suites are where its packages come from.
func (r recipe) suites() []string {
	return []string{r.release, r.release + "-updates", r.release + "-security"}
}

// name tells images of different recipes apart.
func (r recipe) name() string {
	h := sha256.New()
	fmt.Fprintf(h, "%q", []any{r.release, r.packages, r.excluded, r.files})
	return "host_" + r.release + "_" + hex.EncodeToString(h.Sum(nil))[:12]
}

// arguments are mmdebstrap's for a folder dir, with the sources of packages in a file.
func (r recipe) arguments(dir, sources string) []string {
	args := []string{"--variant=minbase", "--format=directory", "--quiet",
		`--aptopt=APT::Install-Recommends "false"`, "--include=" + strings.Join(r.packages, ",")}
	for _, p := range r.excluded {
		args = append(args, "--dpkgopt=path-exclude="+p)
	}
	return append(args, r.release, dir, sources)
}
