// Package guest is what runs inside a guest: its init, and the things scenarios do there
// (cgroups, workloads, the agent).
package guest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync"
	"time"

	"encoding/json"

	"golang.org/x/sys/unix"

	"github.com/memagent/memagent/lab/protocol"
)

// Job is something a guest can be asked to do. It returns an exit code for the host.
type Job func(ctx context.Context, g *Guest) (code int, err error)

// Guest is the inside of a running guest.
type Guest struct {
	Spec protocol.Spec

	mu sync.Mutex // serialises messages
	to io.Writer
}

// IsInit says whether this process is a guest's init: process 1, and started by a kernel that
// was told so. A container's first process has no such environment.
func IsInit() bool { return os.Getpid() == 1 && os.Getenv(protocol.GuestEnv) == "1" }

// Init sets the guest up, does the job its Spec names, and powers off. It does not return.
func Init(jobs map[string]Job) {
	defer powerOff()
	// What Go or a library writes to standard error is for the console.
	signal.Ignore(unix.SIGINT, unix.SIGHUP, unix.SIGPIPE)
	g, err := setUp()
	if err != nil {
		fmt.Fprintf(os.Stderr, "memlab: setting the guest up: %v\n", err)
		if g != nil {
			g.Send(protocol.Message{Done: &protocol.Done{Error: "setting the guest up: " + err.Error()}})
		}
		return
	}
	if g.Spec.System {
		err := g.startSystem()
		g.Send(protocol.Message{Done: &protocol.Done{Error: "starting the system: " + err.Error()}})
		return
	}
	g.work(context.Background(), jobs)
}

// work does the job that the Spec names, and says how it went.
func (g *Guest) work(ctx context.Context, jobs map[string]Job) {
	var err error
	done := protocol.Done{}
	job, ok := jobs[g.Spec.Job]
	if !ok {
		err = fmt.Errorf("this guest knows no job %q", g.Spec.Job)
	} else {
		done.Code, err = job(ctx, g)
	}
	if err != nil {
		done.Error = err.Error()
	}
	g.Send(protocol.Message{Done: &done})
}

// setUp brings the system to where jobs can run. The guest is returned with an error when it can
// already speak to the host.
func setUp() (*Guest, error) {
	if err := mountAll(systemMounts); err != nil {
		return nil, err
	}
	if err := os.Setenv("PATH", "/bin"); err != nil {
		return nil, err
	}
	port, err := openPort(protocol.ResultPort)
	if err != nil {
		return nil, err
	}
	g := &Guest{to: port}
	raw, err := os.ReadFile(protocol.SpecPath)
	if err != nil {
		return g, fmt.Errorf("reading the spec: %w", err)
	}
	if err := json.Unmarshal(raw, &g.Spec); err != nil {
		return g, fmt.Errorf("parsing the spec in %s: %w", protocol.SpecPath, err)
	}
	if err := chooseLRU(g.Spec.LRU); err != nil {
		return g, err
	}
	release, err := release()
	if err != nil {
		return g, err
	}
	g.Send(protocol.Message{Hello: &protocol.Hello{Release: release, LRU: currentLRU(), UptimeMS: uptime().Milliseconds()}})

	if err := loadModules(g.Spec.Modules); err != nil {
		return g, err
	}
	if g.Spec.Swap > 0 {
		if err := swapOnZram(g.Spec.Swap); err != nil {
			return g, err
		}
	}
	if g.Spec.System {
		return g, nil
	}
	if err := mountAll(ownMounts); err != nil {
		return g, err
	}
	if err := Write("/sys/fs/cgroup/cgroup.subtree_control", "+memory +cpuset +io"); err != nil {
		return g, err
	}
	if err := Write("/proc/sys/vm/page-cluster", "0"); err != nil { // exact swap-in counts
		return g, err
	}
	if g.Spec.Disk {
		if err := mountDisk(); err != nil {
			return g, err
		}
	}
	return g, nil
}

// Send hands a message to the host. A guest that cannot speak can do nothing about it but say so
// on its console.
func (g *Guest) Send(m protocol.Message) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := protocol.Write(g.to, m); err != nil {
		fmt.Fprintf(os.Stderr, "memlab: %v\n", err)
	}
}

// Logf tells the host something for people.
func (g *Guest) Logf(format string, args ...any) {
	g.Send(protocol.Message{Log: fmt.Sprintf(format, args...)})
}

// Write writes one value to a kernel file.
func Write(path, value string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("writing %q: %w", value, err)
	}
	_, err = f.WriteString(value)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return fmt.Errorf("writing %q: %w", value, err)
	}
	return nil
}

// lruFile switches between the kernel's two ways of ageing pages.
const lruFile = "/sys/kernel/mm/lru_gen/enabled"

func chooseLRU(want string) error {
	value := map[string]string{"classic": "n", "mglru": "y"}[want]
	if value == "" {
		return nil
	}
	err := Write(lruFile, value)
	if errors.Is(err, os.ErrNotExist) {
		if want == "classic" {
			return nil
		}
		return errors.New("this kernel has no multi-generational LRU")
	}
	return err
}

func currentLRU() string {
	raw, err := os.ReadFile(lruFile)
	if err != nil || strings.TrimSpace(string(raw)) == "0x0000" {
		return "classic"
	}
	return "mglru"
}

func release() (string, error) {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return "", fmt.Errorf("uname: %w", err)
	}
	return unix.ByteSliceToString(u.Release[:]), nil
}

func uptime() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}

// openPort opens a serial port as a plain stream of bytes.
func openPort(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, fmt.Errorf("opening the way to the host: %w", err)
	}
	t, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	if err == nil {
		t.Iflag, t.Oflag, t.Lflag = 0, 0, 0
		t.Cflag = unix.CS8 | unix.CLOCAL | unix.CREAD | unix.B115200
		err = unix.IoctlSetTermios(int(f.Fd()), unix.TCSETS, t)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("setting %s to raw: %w", path, err), f.Close())
	}
	return f, nil
}

func powerOff() {
	unix.Sync()
	if err := unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF); err != nil {
		fmt.Fprintf(os.Stderr, "memlab: powering off: %v\n", err)
	}
	select {} // a first process that ends is a panic
}
