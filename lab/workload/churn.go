package workload

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// runChurn keeps a number of cgroups alive below a parent, each with a process that holds a
// little memory, and replaces the oldest again and again. A pass is one replacement.
func runChurn(args []string, r *reporter) error {
	fs := flags("churn")
	parent := fs.String("parent", "", "folder of the cgroup to work below; it must hand down its memory controller")
	alive := fs.Int("alive", 10, "cgroups alive at a time")
	loops := fs.Int("loops", 0, "number of replacements; 0 goes on until SIGTERM")
	every := fs.Duration("every", 0, "time from one replacement to the next; 0 does not wait")
	each := size(1 << 20)
	fs.Var(&each, "size", "memory of each cgroup's process")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if *parent == "" || *alive < 1 {
		return errors.New("--parent is missing, or --alive is less than 1")
	}
	var live []tenant
	defer func() {
		for _, t := range live {
			if err := t.evict(); err != nil && r.err == nil {
				r.err = err
			}
		}
	}()
	for i := range *alive {
		t, err := settle(*parent, i, each)
		if err != nil {
			return err
		}
		live = append(live, t)
	}
	r.ready(int64(each) * int64(*alive))
	for i := 0; *loops == 0 || i < *loops; i++ {
		start := time.Now()
		oldest := live[0]
		live = live[1:]
		if err := oldest.evict(); err != nil {
			return err
		}
		t, err := settle(*parent, *alive+i, each)
		if err != nil {
			return err
		}
		live = append(live, t)
		r.pass(time.Since(start), int64(each))
		if r.err != nil {
			return r.err
		}
		pace(start, *every)
	}
	return nil
}

// tenant is a cgroup with a process in it.
type tenant struct {
	dir string
	cmd *exec.Cmd
}

func settle(parent string, n int, bytes size) (tenant, error) {
	t := tenant{dir: filepath.Join(parent, "churn-"+strconv.Itoa(n))}
	if err := os.Mkdir(t.dir, 0o755); err != nil {
		return t, err
	}
	f, err := os.Open(t.dir)
	if err != nil {
		return t, err
	}
	defer f.Close()
	t.cmd = exec.Command("/proc/self/exe", "workload", "anon", "--size", strconv.FormatInt(int64(bytes), 10))
	t.cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(f.Fd()), Pdeathsig: syscall.SIGKILL}
	if err := t.cmd.Start(); err != nil {
		return t, fmt.Errorf("starting a process in %s: %w", t.dir, err)
	}
	return t, nil
}

func (t tenant) evict() error {
	if err := t.cmd.Process.Kill(); err != nil {
		return fmt.Errorf("ending the process in %s: %w", t.dir, err)
	}
	// It was killed, so an exit error is what is wanted.
	_ = t.cmd.Wait()
	return RemoveCgroup(t.dir, time.Second)
}

// RemoveCgroup removes the folder of a cgroup, which is busy until its last process has ended; it tries
// again for so long.
func RemoveCgroup(dir string, within time.Duration) error {
	const pause = 10 * time.Millisecond
	var err error
	for range within / pause {
		if err = syscall.Rmdir(dir); !errors.Is(err, syscall.EBUSY) {
			break
		}
		time.Sleep(pause)
	}
	if err != nil {
		return fmt.Errorf("removing cgroup %s: %w", dir, err)
	}
	return nil
}
