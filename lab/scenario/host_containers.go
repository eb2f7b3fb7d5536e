package scenario

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/memagent/memagent/lab/guest"
)

// Where the containers of the host scenario are made of.
const (
	hostRoot    = "/srv/rootfs" // busybox, the workloads, and a file for each container to read
	hostBundles = "/srv/bundles"

	hostAnon  = 48 * mib  // bytes that a container fills and leaves alone
	hostFile  = 32 * mib  // bytes that it has read once before
	hostLimit = 160 * mib // bytes, its memory.max
)

// hostPod is how a kubelet and containerd name a container.
const (
	hostPodUID  = "0f6a2c1e-5b1d-4c58-9c4e-7a3f1d2b8e90"
	hostPodID   = "c0c0a5e1c0c0a5e1c0c0a5e1c0c0a5e1c0c0a5e1c0c0a5e1c0c0a5e1c0c0a5e1"
	hostPodName = "shop/cart-7d9/app"
)

// crunPayload is the cgroup that crun makes for the processes, below a container's own. The limits are on
// it.
const crunPayload = "/container"

// hostContainer is one container. Its name is that of its file and its bundle too.
type hostContainer struct {
	name string
	// swappiness is what it asks for, inSpec where runtimes have it, else by annotation; -1 for nothing.
	swappiness int
	inSpec     bool
	// matched says that the policy for containers is for it.
	matched bool
	// cgroup is the path of that of its processes, below the mount, label the name that memagent is to
	// give it; what an engine draws is not known before it runs.
	cgroup, label string
	run           func(ctx context.Context, c *hostContainer) error
}

// hostContainers are the containers of the scenario. The last starts when memagent enforces already.
func hostContainers() []*hostContainer {
	return []*hostContainer{
		{name: "mail", swappiness: 0, inSpec: true, matched: true, cgroup: "/system.slice/runc-mail.scope", label: "runc/mail", run: runRunc},
		{name: hostPodID, swappiness: 0, inSpec: true, matched: true, cgroup: podCgroup(), label: hostPodName, run: runContainerd},
		{name: "cron", swappiness: 200, matched: true, cgroup: "/system.slice/crun-cron.scope" + crunPayload, label: "crun/cron", run: runCrun},
		{name: "stranger", swappiness: -1, cgroup: "/system.slice/runc-stranger.scope", run: runRunc},
		{name: "shop", swappiness: 200, matched: true, run: runPodman},
	}
}

// podSlice is the unit that a kubelet makes for the pod, and podCgroup where the container's is.
func podSlice() string {
	return "kubepods-burstable-pod" + strings.ReplaceAll(hostPodUID, "-", "_") + ".slice"
}

func podCgroup() string {
	return "/kubepods.slice/kubepods-burstable.slice/" + podSlice() + "/cri-containerd-" + hostPodID + ".scope"
}

func (c *hostContainer) annotations() map[string]string {
	a := map[string]string{}
	if c.matched {
		a["memagent.dev/policy"] = "lab"
	}
	if c.swappiness >= 0 && !c.inSpec {
		a["memagent.dev/swappiness"] = fmt.Sprint(c.swappiness)
	}
	if c.name == hostPodID { // what containerd writes down for the kubelet
		a["io.kubernetes.cri.container-type"] = "container"
		a["io.kubernetes.cri.container-name"] = "app"
		a["io.kubernetes.cri.sandbox-name"] = "cart-7d9"
		a["io.kubernetes.cri.sandbox-namespace"] = "shop"
		a["io.kubernetes.cri.sandbox-uid"] = hostPodUID
	}
	return a
}

// command reads the container's file once, fills memory, and rests.
func (c *hostContainer) command() []string {
	return []string{"/bin/sh", "-c", fmt.Sprintf("cat /data/%s >/dev/null; exec /bin/memlab workload anon --size %d", c.name, hostAnon)}
}

// spec is its OCI spec, where cgroupsPath is what systemd is asked for.
func (c *hostContainer) spec(cgroupsPath string) specs.Spec {
	limit := int64(hostLimit)
	memory := &specs.LinuxMemory{Limit: &limit}
	if c.inSpec && c.swappiness >= 0 {
		s := uint64(c.swappiness)
		memory.Swappiness = &s
	}
	mount := func(target, kind, source string, options ...string) specs.Mount {
		return specs.Mount{Destination: target, Type: kind, Source: source, Options: options}
	}
	return specs.Spec{
		Version:     "1.0.2",
		Root:        &specs.Root{Path: hostRoot},
		Hostname:    "container",
		Process:     &specs.Process{Args: c.command(), Cwd: "/", Env: []string{"PATH=/bin"}},
		Annotations: c.annotations(),
		Mounts: []specs.Mount{
			mount("/proc", "proc", "proc"),
			mount("/dev", "tmpfs", "tmpfs", "nosuid", "mode=755", "size=64k"),
			mount("/dev/pts", "devpts", "devpts", "nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620"),
		},
		Linux: &specs.Linux{
			CgroupsPath: cgroupsPath,
			Resources:   &specs.LinuxResources{Memory: memory},
			Namespaces:  []specs.LinuxNamespace{{Type: specs.PIDNamespace}, {Type: specs.IPCNamespace}, {Type: specs.UTSNamespace}, {Type: specs.MountNamespace}, {Type: specs.NetworkNamespace}},
		},
	}
}

// bundle writes the container's bundle and returns its folder.
func (c *hostContainer) bundle(cgroupsPath string) (string, error) {
	dir := filepath.Join(hostBundles, c.name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	raw, err := json.Marshal(c.spec(cgroupsPath))
	if err != nil {
		return "", err
	}
	return dir, os.WriteFile(filepath.Join(dir, "config.json"), raw, 0o644)
}

func runRunc(ctx context.Context, c *hostContainer) error {
	return runOCI(ctx, c, "runc")
}

func runCrun(ctx context.Context, c *hostContainer) error {
	return runOCI(ctx, c, "crun")
}

// runOCI has a runtime run the container by itself. Its output is of no use and would keep a pipe open.
func runOCI(ctx context.Context, c *hostContainer, runtime string) error {
	dir, err := c.bundle("system.slice:" + runtime + ":" + c.name)
	if err != nil {
		return err
	}
	_, err = guest.Command(ctx, "/bin/sh", "-c", fmt.Sprintf("%s --systemd-cgroup run -d --bundle %s %s </dev/null >%s/log 2>&1 || { cat %s/log; exit 1; }", runtime, dir, c.name, dir, dir))
	return err
}

// runContainerd runs it as containerd does for a kubelet: by runc, in the pod's slice.
func runContainerd(ctx context.Context, c *hostContainer) error {
	path := podSlice() + ":cri-containerd:" + c.name
	dir, err := c.bundle(path)
	if err != nil {
		return err
	}
	_, err = guest.Command(ctx, "ctr", "--namespace", "k8s.io", "run", "--detach", "--runc-systemd-cgroup", "--cgroup", path, "--config", filepath.Join(dir, "config.json"), c.name)
	return err
}

func runPodman(ctx context.Context, c *hostContainer) error {
	args := []string{"run", "--detach", "--name", c.name, "--network", "none", "--log-driver", "none", "--memory", fmt.Sprint(hostLimit)}
	for k, v := range c.annotations() {
		args = append(args, "--annotation", k+"="+v)
	}
	args = append(append(args, "--rootfs", hostRoot), c.command()...)
	out, err := guest.Command(ctx, "podman", args...)
	if err != nil {
		return err
	}
	lines := strings.Fields(out)
	id := lines[len(lines)-1]
	c.cgroup, c.label = "/machine.slice/libpod-"+id+".scope"+crunPayload, "podman/"+id[:12]
	return nil
}
