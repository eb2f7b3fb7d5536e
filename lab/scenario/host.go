package scenario

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/memagent/memagent/lab/disk"
	"github.com/memagent/memagent/lab/guest"
	"github.com/memagent/memagent/lab/result"
)

// The host scenario: what operators live with. On a container host memagent is installed from its
// package by apt, told by one edit of its config what to do, upgraded and purged, beside containers of
// several runtimes and a service of systemd that it lends memory to.
const (
	hostTick    = time.Second
	hostService = "db.service"
	hostCgroup  = "/system.slice/" + hostService
	hostHigh    = 24 * mib // bytes, the service's MemoryHigh
	hostReads   = 64 * mib // bytes that it reads again and again

	hostConfigFile = "/etc/memagent/memagent.yaml"
	hostUnits      = "/run/systemd/system" // of units that do not outlive the guest

	hostSettles  = 60 * time.Second // for what is idle to be taken
	hostLends    = 40 * time.Second // for memory to be lent
	hostReload   = 8 * time.Second  // that memory.high is watched after a daemon-reload
	hostWatchdog = 10 * time.Second
	hostPoll     = 200 * time.Millisecond
)

var host = Scenario{
	Name:     "host",
	About:    "a container host: apt install, one edit, containers and a service, daemon-reload, upgrade, purge",
	Law:      "memagent",
	Topology: "single",
	Alone:    true,
	Host:     true,
	Within:   func(bool) time.Duration { return 8 * time.Minute },
	Run:      runHost,
	Checks:   checkHost,
}

// hostConfig is what the operator edits.
const hostConfig = `mode: enforce
interval: 1s
telemetry: {status: /run/memagent/status.sock}
host:
  units: property
  swap: {write_budget: 64MiB/s}
policies:
  - name: service
    match: [{path: ` + hostCgroup + `}]
    swappiness: 0
    squeeze: off
    high: {lend: true, ceiling: 512MiB}
  - name: containers
    match: [{annotation: {memagent.dev/policy: lab}}]
    swappiness: {auto: {base: 60, min: 0, max: 200}}
    containers: {annotations: true, swappiness: true}
    squeeze: {max_step: 5%, floor: 8MiB, idle_age: 3s}
`

// hostRun is a run of it. Facts of yes and no are 1 and 0.
type hostRun struct {
	ctx        context.Context
	g          *guest.Guest
	run        *result.Run
	containers []*hostContainer
	before     map[string]bool // files, before the package came
	knobs      guest.Knobs     // likewise
}

func runHost(ctx context.Context, g *guest.Guest) (result.Run, error) {
	run := result.Run{Facts: map[string]float64{}, Artifacts: map[string]string{}}
	h := &hostRun{ctx: ctx, g: g, run: &run, containers: hostContainers()}
	if g.Spec.Agent != "on" {
		return run, nil
	}
	start := time.Now()
	err := h.all()
	run.ElapsedMS = time.Since(start).Milliseconds()
	if log, lerr := guest.Command(ctx, "journalctl", "-u", "memagent", "--no-pager", "-o", "short-precise"); lerr == nil {
		run.Artifacts["memagent.log"] = log
		if err != nil {
			lines := strings.Split(log, "\n")
			err = fmt.Errorf("%w; its log ends with:\n%s", err, strings.Join(lines[max(0, len(lines)-25):], "\n"))
		}
	}
	return run, err
}

// all goes through the life of an installation.
func (h *hostRun) all() error {
	steps := []struct {
		what string
		do   func() error
	}{
		{"preparing the host", h.prepare},
		{"starting containers and a service", h.populate},
		{"installing the package", h.install},
		{"enforcing by one edit of the config", h.enforce},
		{"waiting for what is idle to go", h.settle},
		{"asking about containers", h.ask},
		{"waiting for a loan", func() error { return h.lent("lend_seconds") }},
		{"reloading systemd", h.reload},
		{"stopping the watchdog's food", h.watchdog},
		{"upgrading the package", h.upgrade},
		{"purging the package", h.purge},
	}
	for _, s := range steps {
		h.g.Logf("%s", s.what)
		if err := s.do(); err != nil {
			return fmt.Errorf("%s: %w", s.what, err)
		}
	}
	return nil
}

// command runs a program of the host.
func (h *hostRun) command(name string, args ...string) (string, error) {
	return guest.Command(h.ctx, name, args...)
}

// note keeps a fact and says it.
func (h *hostRun) note(name string, v float64) {
	h.run.Facts[name] = v
	h.g.Logf("  %s: %.4g", name, v)
}

// within polls until a condition holds, and returns the time it took.
func (h *hostRun) within(limit time.Duration, holds func() (bool, error)) (time.Duration, error) {
	start := time.Now()
	for {
		ok, err := holds()
		took := time.Since(start)
		switch {
		case ok:
			return took, nil
		case h.ctx.Err() != nil:
			return took, h.ctx.Err()
		case took > limit && err == nil:
			return took, fmt.Errorf("not within %s", limit)
		case took > limit:
			return took, fmt.Errorf("not within %s: %w", limit, err)
		}
		time.Sleep(hostPoll)
	}
}

// prepare waits for systemd to be done, and makes what containers are made of.
func (h *hostRun) prepare() error {
	// "degraded" is an error, and no matter of ours.
	if out, err := h.command("systemctl", "is-system-running", "--wait"); err != nil {
		h.g.Logf("the system is %s", strings.TrimSpace(out))
	}
	for _, d := range []string{"bin", "data", "dev", "etc", "proc", "run", "sys", "tmp"} {
		if err := os.MkdirAll(filepath.Join(hostRoot, d), 0o755); err != nil {
			return err
		}
	}
	for from, to := range map[string]string{"/bin/busybox": "/bin/busybox", guest.Program: "/bin/memlab"} {
		if err := copyProgram(from, hostRoot+to); err != nil {
			return err
		}
	}
	for _, name := range []string{"sh", "cat"} {
		if err := os.Symlink("busybox", filepath.Join(hostRoot, "bin", name)); err != nil {
			return err
		}
	}
	for _, c := range h.containers {
		if err := disk.Fill(filepath.Join(hostRoot, "data", c.name), hostFile); err != nil {
			return err
		}
	}
	return disk.Fill("/srv/db", hostReads)
}

func copyProgram(from, to string) error {
	raw, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, raw, 0o755)
}

// populate starts the service and all containers but the last, and waits until they have their memory.
func (h *hostRun) populate() error {
	if err := guest.DropCaches(); err != nil { // so that each is charged for its file
		return err
	}
	unit := fmt.Sprintf("[Service]\nExecStart=%s workload file --path /srv/db --loops 0 --every 1s\nMemoryHigh=%d\nStandardOutput=null\n", guest.Program, hostHigh)
	if err := os.WriteFile(filepath.Join(hostUnits, hostService), []byte(unit), 0o644); err != nil {
		return err
	}
	if _, err := h.command("systemctl", "daemon-reload"); err != nil {
		return err
	}
	if _, err := h.command("systemctl", "start", hostService); err != nil {
		return err
	}
	for _, c := range h.containers[:len(h.containers)-1] {
		if err := h.start(c); err != nil {
			return err
		}
	}
	return nil
}

// start starts a container and waits until it has filled its memory.
func (h *hostRun) start(c *hostContainer) error {
	if err := c.run(h.ctx, c); err != nil {
		return fmt.Errorf("container %s: %w", c.name, err)
	}
	_, err := h.within(setUpWithin, func() (bool, error) {
		s, err := guest.Cgroup{Path: c.cgroup}.Take()
		return err == nil && s.Stat["anon"] >= hostAnon*95/100, err
	})
	if err != nil {
		return fmt.Errorf("container %s did not fill its memory: %w", c.name, err)
	}
	return nil
}
