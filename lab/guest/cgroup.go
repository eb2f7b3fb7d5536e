package guest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/memagent/memagent/lab/counters"
)

// CgroupRoot is where the guest's cgroup tree is mounted.
const CgroupRoot = "/sys/fs/cgroup"

// Cgroup is a cgroup of the guest by its path, such as "/app".
type Cgroup struct{ Path string }

// NewCgroup makes a cgroup and those above it, which hand their controllers down.
func NewCgroup(path string) (Cgroup, error) {
	c := Cgroup{path}
	dir := CgroupRoot
	for _, part := range strings.Split(strings.Trim(path, "/"), "/") {
		if dir != CgroupRoot {
			if err := Write(filepath.Join(dir, "cgroup.subtree_control"), "+memory +cpuset +io"); err != nil {
				return c, fmt.Errorf("making cgroup %s: %w", path, err)
			}
		}
		dir = filepath.Join(dir, part)
		if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
			return c, fmt.Errorf("making cgroup %s: %w", path, err)
		}
	}
	return c, nil
}

// Dir is the cgroup's folder.
func (c Cgroup) Dir() string { return filepath.Join(CgroupRoot, c.Path) }

// Set writes one of the cgroup's files.
func (c Cgroup) Set(file, value string) error { return Write(filepath.Join(c.Dir(), file), value) }

// Reclaim asks the kernel for bytes of the cgroup's memory with one write(2). An error that is EAGAIN
// says that it gave less. An os.File would not do: it waits for ever for a file that answers EAGAIN.
// Interrupted by a signal, the kernel has done a part, which nobody but the counters can tell.
func (c Cgroup) Reclaim(bytes int64) error {
	fd, err := unix.Open(filepath.Join(c.Dir(), "memory.reclaim"), unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err == nil {
		_, err = unix.Write(fd, strconv.AppendInt(nil, bytes, 10))
		err = errors.Join(err, unix.Close(fd))
	}
	if err != nil && !errors.Is(err, unix.EINTR) {
		return fmt.Errorf("asking for %d bytes of cgroup %s: %w", bytes, c.Path, err)
	}
	return nil
}

// Get reads one of the cgroup's files, without the newline.
func (c Cgroup) Get(file string) (string, error) {
	raw, err := os.ReadFile(filepath.Join(c.Dir(), file))
	if err != nil {
		return "", err
	}
	return strings.TrimRight(string(raw), "\n"), nil
}

// Take reads the cgroup's counters.
func (c Cgroup) Take() (counters.Snapshot, error) { return counters.Take(c.Dir()) }

// attr makes a child start inside the cgroup. The descriptor must be closed once it has started.
func (c Cgroup) attr() (*syscall.SysProcAttr, *os.File, error) {
	f, err := os.Open(c.Dir())
	if err != nil {
		return nil, nil, fmt.Errorf("opening cgroup %s: %w", c.Path, err)
	}
	return &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(f.Fd()), Setpgid: true}, f, nil
}
