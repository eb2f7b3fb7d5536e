package container

import (
	"bufio"
	"bytes"
	"path"
	"strings"
)

// Runtimes as Description.Runtime names them.
const (
	Containerd = "containerd"
	CRIO       = "cri-o"
	Podman     = "podman"
	Docker     = "docker"
	Runc       = "runc"
	Crun       = "crun"
)

// byPrefix says who runs a container by the prefix of its cgroup.
var byPrefix = map[string]string{
	"cri-containerd": Containerd, "nerdctl": Containerd, "crio": CRIO, "libpod": Podman, "docker": Docker, "runc": Runc, "crun": Crun,
}

// folder is a folder of a runtime that has one folder for each container.
type folder struct {
	path    string
	runtime string // "" where only the prefix of the cgroup can tell
	// config is the file of a container below its folder; for runc the state
	// that says where the bundle is.
	config string
	state  bool
}

// task is where containerd 1.3 and later has bundles, by namespace.
const task = "io.containerd.runtime.v2.task"

// Bounds on what is taken up of a runtime's state folder: namespaces of
// containerd.
const maxNamespaces = 64

var (
	containerdState = []string{"/run/containerd", "/run/docker/containerd/daemon", "/run/k3s/containerd", "/run/k0s/containerd", "/var/snap/microk8s/common/run/containerd"}
	storage         = []string{"/run/containers/storage", "/var/lib/containers/storage"}
	// The drivers of containers/storage that keep containers by driver.
	storageDrivers = []string{"overlay", "vfs", "btrfs", "zfs"}
)

// systemFolders returns the folders of root's runtimes that are there.
func (r *root) systemFolders() []folder {
	return r.folders(containerdState, storage, "/run")
}

// userFolders returns the folders of a user's runtimes that are there.
func (r *root) userFolders(uid string) []folder {
	run := "/run/user/" + uid
	stores := []string{run + "/containers"}
	if home := r.home(uid); home != "" {
		stores = append(stores, path.Join(home, ".local/share/containers/storage"))
	}
	return r.folders([]string{run + "/containerd", run + "/docker/containerd/daemon"}, stores, run)
}

func (r *root) folders(containerds, stores []string, run string) []folder {
	var list []folder
	for _, state := range containerds {
		for _, ns := range r.names(path.Join(state, task), maxNamespaces) {
			f := folder{path: path.Join(state, task, ns), runtime: Containerd, config: "config.json"}
			if ns == "moby" { // Docker's
				f.runtime = Docker
			}
			list = append(list, f)
		}
	}
	for _, store := range stores {
		if !r.has(store) {
			continue
		}
		for _, driver := range storageDrivers {
			if dir := path.Join(store, driver+"-containers"); r.has(dir) {
				list = append(list, folder{path: dir, config: "userdata/config.json"})
			}
		}
	}
	if dir := run + "/crun"; r.has(dir) {
		list = append(list, folder{path: dir, runtime: Crun, config: "config.json"})
	}
	if dir := run + "/runc"; r.has(dir) {
		list = append(list, folder{path: dir, runtime: Runc, config: "state.json", state: true})
	}
	return list
}

// home returns the home of a user by /etc/passwd (passwd(5)), "" where that
// does not tell.
func (r *root) home(uid string) string {
	data, err := r.read("/etc/passwd", "")
	if err != nil {
		return ""
	}
	for lines := bufio.NewScanner(bytes.NewReader(data)); lines.Scan(); {
		if f := strings.Split(lines.Text(), ":"); len(f) == 7 && f[2] == uid && path.IsAbs(f[5]) {
			return path.Clean(f[5])
		}
	}
	return ""
}

// spec reads the spec of a container in a folder. Where the folder does not
// have the container the error is fs.ErrNotExist.
func (r *root) spec(f folder, id, owner string) (*Spec, error) {
	name := path.Join(f.path, id, f.config)
	data, err := r.read(name, owner)
	if err != nil {
		return nil, err
	}
	if f.state {
		bundle, err := bundleOf(data)
		if err != nil {
			return nil, at(name, err)
		}
		if !path.IsAbs(bundle) {
			return &Spec{}, nil // a library's, without a bundle: nothing is said
		}
		name = path.Join(bundle, "config.json")
		if data, err = r.read(name, owner); err != nil {
			return nil, err
		}
	}
	s, err := ParseSpec(data)
	if err != nil {
		return nil, at(name, err)
	}
	return s, nil
}
