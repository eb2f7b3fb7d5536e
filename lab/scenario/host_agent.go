package scenario

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/memagent/memagent/lab/guest"
)

// hostStatus is what is looked at of `memagent status --json`.
type hostStatus struct {
	Agent struct {
		PID       int    `json:"pid"`
		Mode      string `json:"mode"`
		Reclaimed uint64 `json:"reclaimed"`
	} `json:"agent"`
	Cgroups []struct {
		Path   string  `json:"path"`
		Name   string  `json:"name"`
		Policy string  `json:"policy"`
		Lent   *uint64 `json:"lent"`
	} `json:"cgroups"`
}

func (h *hostRun) status() (hostStatus, error) {
	var st hostStatus
	out, err := h.command("memagent", "status", "--json")
	if err != nil {
		return st, err
	}
	// Terminals and libraries may have something to say before the answer.
	if i := strings.IndexByte(out, '{'); i > 0 {
		return st, fmt.Errorf("memagent status --json begins with %q", out[:i])
	}
	if err := json.Unmarshal([]byte(out), &st); err != nil {
		return st, fmt.Errorf("parsing memagent status: %w", err)
	}
	return st, nil
}

// watched counts the cgroups among paths that a policy of that name watches.
func (st hostStatus) watched(policy string, paths ...string) int {
	n := 0
	for _, c := range st.Cgroups {
		for _, p := range paths {
			if c.Path == p && c.Policy == policy {
				n++
			}
		}
	}
	return n
}

var exposure = regexp.MustCompile(`exposure level for memagent\.service: ([0-9.]+)`)

// install installs the package beside the running containers. As it comes it only observes.
func (h *hostRun) install() error {
	var err error
	if h.before, err = diskFiles(); err != nil {
		return err
	}
	if h.knobs, err = guest.ReadKnobs(); err != nil {
		return err
	}
	start := time.Now()
	if _, err := h.command("apt-get", "install", "-y", filepath.Join(guest.LabDir, guest.PackageFile)); err != nil {
		return err
	}
	h.note("install_seconds", time.Since(start).Seconds())
	_, err = h.command("systemctl", "is-active", "memagent")
	h.note("active", yes(err == nil))
	st, err := h.status()
	if err != nil {
		return err
	}
	h.note("observes", yes(st.Agent.Mode == "observe"))
	out, err := h.command("systemd-analyze", "security", "--no-pager", "memagent.service")
	if err != nil {
		return err
	}
	m := exposure.FindStringSubmatch(out)
	if m == nil {
		return fmt.Errorf("systemd-analyze says no exposure: %s", out)
	}
	v, err := strconv.ParseFloat(m[1], 64)
	h.note("exposure", v)
	return err
}

// enforce is the operator's edit. From observing to enforcing takes a restart. A container that comes
// afterwards falls under the policy too.
func (h *hostRun) enforce() error {
	if err := os.WriteFile(hostConfigFile, []byte(hostConfig), 0o644); err != nil {
		return err
	}
	if _, err := h.command("memagent", "check", "-c", hostConfigFile); err != nil {
		return err
	}
	if _, err := h.command("systemctl", "restart", "memagent"); err != nil {
		return err
	}
	var here []string
	last := h.containers[len(h.containers)-1]
	for _, c := range h.containers {
		if c.matched && c != last {
			here = append(here, c.cgroup)
		}
	}
	took, err := h.watches(here...)
	if err != nil {
		return err
	}
	h.note("policy_seconds", took.Seconds())
	if err := h.start(last); err != nil {
		return err
	}
	took, err = h.watches(last.cgroup)
	if err != nil {
		return err
	}
	h.note("late_policy_seconds", took.Seconds())
	return nil
}

// watches waits until the policy for containers watches all of those cgroups.
func (h *hostRun) watches(paths ...string) (time.Duration, error) {
	return h.within(20*hostTick, func() (bool, error) {
		st, err := h.status()
		if err != nil {
			return false, err
		}
		if n := st.watched("containers", paths...); n < len(paths) {
			return false, fmt.Errorf("%d of %d containers are watched by the policy for containers: %+v", n, len(paths), st.Cgroups)
		}
		return true, nil
	})
}

// settle waits until what is idle is gone where it may go, and notes where it went.
func (h *hostRun) settle() error {
	_, err := h.within(hostSettles, func() (bool, error) {
		for _, c := range h.containers {
			s, err := guest.Cgroup{Path: c.cgroup}.Take()
			if err != nil {
				return false, err
			}
			if c.matched && c.swappiness == 0 && s.Stat["file"] > hostFile/4 {
				return false, fmt.Errorf("container %s still has %d bytes of file", c.name, s.Stat["file"])
			}
			if c.matched && c.swappiness > 0 && s.Swap < hostAnon/2 {
				return false, fmt.Errorf("container %s has %d bytes in swap", c.name, s.Swap)
			}
		}
		return true, nil
	})
	if err != nil {
		h.g.Logf("  %v", err)
	}
	for _, c := range h.containers {
		s, err := guest.Cgroup{Path: c.cgroup}.Take()
		if err != nil {
			return err
		}
		name := strings.ReplaceAll(c.who(), "/", "_")
		h.note(name+"_swap_mib", float64(s.Swap)/mib)
		h.note(name+"_file_mib", float64(s.Stat["file"])/mib)
	}
	return nil
}

// who is a name for a container that is the same in each run.
func (c *hostContainer) who() string {
	if c.name == hostPodID {
		return "pod"
	}
	return c.name
}

// ask asks memagent about each container.
func (h *hostRun) ask() error {
	named, heeded, limited := 0, 0, 0
	st, err := h.status()
	if err != nil {
		return err
	}
	for _, c := range h.containers {
		if !c.matched {
			h.note("strangers_watched", float64(st.watched("containers", c.cgroup)))
			continue
		}
		out, err := h.command("memagent", "explain", c.cgroup)
		if err != nil {
			return err
		}
		h.run.Artifacts["explain-"+c.who()+".txt"] = out
		inStatus := false
		for _, row := range st.Cgroups {
			inStatus = inStatus || row.Path == c.cgroup && row.Name == c.label
		}
		if inStatus && strings.Contains(out, c.label) {
			named++
		} else {
			h.g.Logf("  %s is not called %s: %s", c.cgroup, c.label, out)
		}
		if strings.Contains(out, fmt.Sprintf("limit %d MiB.", hostLimit/mib)) {
			limited++
		} else {
			h.g.Logf("  %s: its limit is not known: %s", c.label, out)
		}
		if strings.Contains(out, fmt.Sprintf("asks for swappiness %d", c.swappiness)) && !strings.Contains(out, "not granted") {
			heeded++
		} else {
			h.g.Logf("  %s: its wish is not told: %s", c.label, out)
		}
	}
	h.note("named", float64(named))
	h.note("limited", float64(limited))
	h.note("heeded", float64(heeded))
	return nil
}

// lent waits until the service has more memory than its operator gave it.
func (h *hostRun) lent(fact string) error {
	took, err := h.within(hostLends, func() (bool, error) {
		high, err := limit(guest.Cgroup{Path: hostCgroup}, "memory.high")
		return high > hostHigh, err
	})
	if err != nil {
		out, _ := h.command("memagent", "explain", hostCgroup)
		return fmt.Errorf("nothing was lent: %w: %s", err, out)
	}
	h.note(fact, took.Seconds())
	return nil
}

// reload has systemd read its units again while a loan is out, as any other package does. Its
// value must not come and go.
func (h *hostRun) reload() error {
	service := guest.Cgroup{Path: hostCgroup}
	before, err := limit(service, "memory.high")
	if err != nil {
		return err
	}
	log, err := h.command("journalctl", "-u", "memagent", "--no-pager", "-o", "cat")
	if err != nil {
		return err
	}
	said := len(log)
	if _, err := h.command("systemctl", "daemon-reload"); err != nil {
		return err
	}
	lost, looks := 0, 0
	for start := time.Now(); time.Since(start) < hostReload; looks++ {
		now, err := limit(service, "memory.high")
		if err != nil {
			return err
		}
		if now < before {
			lost++
		}
		time.Sleep(hostPoll)
	}
	h.note("reload_looks", float64(looks))
	h.note("reload_lost", float64(lost))
	if log, err = h.command("journalctl", "-u", "memagent", "--no-pager", "-o", "cat"); err != nil {
		return err
	}
	h.note("reload_complaints", float64(len(about(strings.Split(log[min(said, len(log)):], "\n"), "somebody else"))))
	return nil
}

// watchdog stops memagent where it stands. systemd ends it, which puts the loan back, and starts it
// again, which lends anew.
func (h *hostRun) watchdog() error {
	dir := filepath.Join(hostUnits, "memagent.service.d")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "watchdog.conf"), fmt.Appendf(nil, "[Service]\nWatchdogSec=%s\n", hostWatchdog), 0o644); err != nil {
		return err
	}
	if _, err := h.command("systemctl", "daemon-reload"); err != nil {
		return err
	}
	if _, err := h.command("systemctl", "restart", "memagent"); err != nil {
		return err
	}
	if err := h.lent("lend_again_seconds"); err != nil {
		return err
	}
	st, err := h.status()
	if err != nil {
		return err
	}
	if err := syscall.Kill(st.Agent.PID, syscall.SIGSTOP); err != nil {
		return fmt.Errorf("stopping memagent: %w", err)
	}
	service := guest.Cgroup{Path: hostCgroup}
	_, err = h.within(5*hostWatchdog, func() (bool, error) {
		high, err := limit(service, "memory.high")
		return high == hostHigh, err
	})
	h.note("watchdog_restores", yes(err == nil))
	_, err = h.within(5*hostWatchdog, func() (bool, error) {
		now, err := h.status()
		return err == nil && now.Agent.PID != st.Agent.PID, err
	})
	h.note("watchdog_restarts", yes(err == nil))
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	_, err = h.command("systemctl", "daemon-reload")
	return err
}

// upgrade installs the later package while a loan is out.
func (h *hostRun) upgrade() error {
	if err := h.lent("lend_third_seconds"); err != nil {
		return err
	}
	before, err := h.status()
	if err != nil {
		return err
	}
	if _, err := h.command("apt-get", "install", "-y", filepath.Join(guest.LabDir, guest.NewerPackageFile)); err != nil {
		return err
	}
	version, err := h.command("dpkg-query", "-W", "-f", "${Version}", "memagent")
	if err != nil {
		return err
	}
	h.note("upgraded", yes(strings.HasSuffix(version, "+later")))
	raw, err := os.ReadFile(hostConfigFile)
	h.note("config_kept", yes(err == nil && string(raw) == hostConfig))
	_, err = os.Stat(filepath.Join(guest.StateDir, "journal"))
	h.note("journal_kept", yes(err == nil))
	st, err := h.status()
	if err != nil {
		return err
	}
	h.note("restarted", yes(st.Agent.PID != before.Agent.PID && st.Agent.Mode == "enforce"))
	return h.lent("upgrade_lend_seconds")
}

// purge removes the package and all that it has, while a loan is out, and looks what stays.
func (h *hostRun) purge() error {
	if _, err := h.command("apt-get", "purge", "-y", "memagent"); err != nil {
		return err
	}
	knobs, err := guest.ReadKnobs()
	if err != nil {
		return err
	}
	for path, was := range h.knobs {
		if now, ok := knobs[path]; ok && now != was && limits(path) {
			h.run.Differences = append(h.run.Differences, fmt.Sprintf("%s was %q and is %q", path, was, now))
		}
	}
	h.note("knobs_changed", float64(len(h.run.Differences)))
	high, err := limit(guest.Cgroup{Path: hostCgroup}, "memory.high")
	if err != nil {
		return err
	}
	h.note("high_mib", float64(high)/mib)
	after, err := diskFiles()
	if err != nil {
		return err
	}
	left := more(after, h.before)
	for _, f := range left {
		h.run.Differences = append(h.run.Differences, f+" was left behind")
	}
	h.note("files_left", float64(len(left)))
	missing := more(h.before, after)
	for _, f := range missing {
		h.run.Differences = append(h.run.Differences, f+" is gone")
	}
	h.note("files_gone", float64(len(missing)))
	return nil
}

// limits says whether a knob is one that memagent could have written: the others of a system are
// its service manager's too.
func limits(path string) bool {
	base := filepath.Base(path)
	return strings.HasPrefix(base, "memory.") || strings.HasPrefix(base, "cpuset.") || !strings.HasPrefix(path, guest.CgroupRoot)
}

// yes is a fact of yes and no.
func yes(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
