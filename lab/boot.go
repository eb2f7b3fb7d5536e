package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/memagent/memagent/lab/disk"
	"github.com/memagent/memagent/lab/guest"
	"github.com/memagent/memagent/lab/initramfs"
	"github.com/memagent/memagent/lab/kernel"
	"github.com/memagent/memagent/lab/machine"
	"github.com/memagent/memagent/lab/protocol"
	"github.com/memagent/memagent/lab/topology"
)

const (
	// bootWithin is how long a guest may take to its hello. It takes 6 s on an idle machine
	// without KVM; a busy one is several times slower.
	bootWithin = 90 * time.Second
	// bootRetries is how often a guest that died before its hello is started again: emulated
	// CPUs now and then trip over a kernel that patches its own code.
	bootRetries = 1
	// swapSize is the guests' swap in bytes.
	swapSize = 1 << 30
	// consoleLines is how much of the console an error shows.
	consoleLines = 30
)

// Guest is what to boot.
type Guest struct {
	Kernel   kernel.Kernel
	Topology topology.Topology
	// Spec is what it does there. Modules, disk and swap are filled in.
	Spec protocol.Spec
	// Files are on its data disk, which is limited to BytesPerSecond and IOPS unless they are 0.
	Files                []disk.File
	BytesPerSecond, IOPS int64
	// System is the image of a whole system, which the guest becomes; empty for none. Such a guest gets
	// no memagent and no data disk. Carried are files of this machine that it finds in guest.LabDir.
	System  string
	Carried []string
	// Agent is the memagent it gets; empty is the lab's.
	Agent string
	// Programs are added to its /bin.
	Programs []initramfs.File
	// Counted has it count instructions for a clock.
	Counted bool
	// Within is how long it may take from its hello to its end; 0 is without end.
	Within time.Duration
	// Terminal connects its console to this process's terminal.
	Terminal bool
	// OnMessage is called with every message but the last.
	OnMessage func(protocol.Message)
}

// Outcome is how a guest's life went.
type Outcome struct {
	Hello   protocol.Hello
	Done    protocol.Done
	Retries int           // boots that died before their hello
	Boot    time.Duration // from QEMU's start to hello
	Total   time.Duration // from QEMU's start to its end
	Usage   machine.Usage // how the host served it
}

// errDied marks a guest that ended before its init came up.
var errDied = errors.New("the guest died before its init came up")

// Boot runs one guest to its end.
func (l *Lab) Boot(ctx context.Context, g Guest) (Outcome, error) {
	release, err := l.lock(ctx)
	if err != nil {
		return Outcome{}, err
	}
	defer release()
	tmp, err := os.MkdirTemp("", "memlab-")
	if err != nil {
		return Outcome{}, fmt.Errorf("making a folder for the guest: %w", err)
	}
	defer os.RemoveAll(tmp)
	devices, err := l.devices(ctx, &g, tmp)
	if err != nil {
		return Outcome{}, err
	}
	for retries := 0; ; retries++ {
		out, err := l.bootOnce(ctx, g, devices, tmp)
		out.Retries = retries
		if errors.Is(err, errDied) && retries < bootRetries && ctx.Err() == nil {
			l.Say("%v\nstarting it again", err)
			continue
		}
		return out, err
	}
}

// devices puts the machine together, with its files in tmp.
func (l *Lab) devices(ctx context.Context, g *Guest, tmp string) ([]machine.Device, error) {
	ird := filepath.Join(tmp, "initramfs")
	console := machine.Console{Log: filepath.Join(tmp, "console")}
	if g.Terminal {
		console.Log = ""
	}
	devices := []machine.Device{
		machine.Base{Accel: l.Accel(g.Counted)},
		machine.NUMA{Topology: g.Topology},
		machine.Boot{Image: g.Kernel.Image(), Initramfs: ird, GuestEnv: protocol.GuestEnv},
		console,
		machine.Results{Path: "/dev/fd/3"},
	}
	if g.System != "" {
		devices = append(devices, machine.Disk{Image: g.System}, machine.System{})
	} else if len(g.Files) > 0 {
		img, err := disk.Image(ctx, l.Cache, g.Files)
		if err != nil {
			return nil, err
		}
		devices = append(devices, machine.Disk{Image: img, BytesPerSecond: g.BytesPerSecond, IOPS: g.IOPS})
	}
	g.Spec.System = g.System != ""
	g.Spec.Disk = len(g.Files) > 0 && !g.Spec.System
	g.Spec.Modules = g.Kernel.Present
	g.Spec.Swap = swapSize
	return devices, l.writeInitramfs(ird, *g)
}

func (l *Lab) writeInitramfs(path string, g Guest) error {
	spec, err := json.Marshal(g.Spec)
	if err != nil {
		return fmt.Errorf("encoding the guest's spec: %w", err)
	}
	if err := checkStatic(l.Self); err != nil {
		return err
	}
	files := []initramfs.File{
		{Path: "/init", Source: l.Self, Mode: 0o755},
		{Path: protocol.SpecPath, Content: spec, Mode: 0o644},
	}
	agent := g.Agent
	if agent == "" {
		agent = l.Agent
	}
	if agent != "" && !g.Spec.System {
		if err := checkStatic(agent); err != nil {
			return err
		}
		files = append(files, initramfs.File{Path: guest.AgentPath, Source: agent, Mode: 0o755})
	}
	for _, m := range g.Kernel.Present {
		files = append(files, initramfs.File{Path: guest.ModulePath(m), Source: g.Kernel.ModulePath(m), Mode: 0o644})
	}
	for _, path := range g.Carried {
		files = append(files, initramfs.File{Path: filepath.Join(guest.CarryDir, filepath.Base(path)), Source: path, Mode: 0o644})
	}
	files = append(files, g.Programs...)
	f, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("writing the initramfs: %w", err)
	}
	err = initramfs.Write(f, files)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}

// bootOnce starts QEMU and follows the guest until its last message.
func (l *Lab) bootOnce(ctx context.Context, g Guest, devices []machine.Device, tmp string) (Outcome, error) {
	var out Outcome
	r, w, err := os.Pipe()
	if err != nil {
		return out, fmt.Errorf("making a pipe to the guest: %w", err)
	}
	defer r.Close()
	start := time.Now()
	qemu, err := machine.Start(ctx, machine.Args(devices), tmp, w, g.Terminal)
	w.Close() // QEMU has it
	if err != nil {
		return out, err
	}
	messages := make(chan protocol.Message)
	readErr := make(chan error, 1)
	quit := make(chan struct{})
	go func() {
		defer close(messages)
		readErr <- protocol.Read(r, func(m protocol.Message) error {
			select {
			case messages <- m:
				return nil
			case <-quit:
				return errors.New("not listening any more")
			}
		})
	}()
	defer func() {
		close(quit)
		qemu.Stop() // its end closes the pipe, which ends the reader
		for range messages {
		}
	}()

	deadline := time.NewTimer(bootWithin)
	defer deadline.Stop()
	hello, said := false, false
	for !said {
		select {
		case <-ctx.Done():
			return out, ctx.Err()
		case <-deadline.C:
			return out, l.late(g, qemu, hello, tmp)
		case m, ok := <-messages:
			switch {
			case !ok:
				<-qemu.Done()
				out.Total = time.Since(start)
				return out, l.ended(ctx, qemu, <-readErr, hello, tmp)
			case m.Hello != nil:
				hello = true
				out.Hello, out.Boot = *m.Hello, time.Since(start)
				deadline.Stop()
				if g.Within > 0 {
					deadline = time.NewTimer(g.Within)
				}
			case m.Done != nil:
				out.Done, said = *m.Done, true
			}
			if m.Done == nil && g.OnMessage != nil {
				g.OnMessage(m)
			}
		}
	}
	out.Usage = qemu.Usage()
	qemu.Stop()
	out.Total = time.Since(start)
	if out.Done.Error != "" {
		return out, errors.New("in the guest: " + out.Done.Error)
	}
	return out, nil
}

// late is the error for a guest that took too long. QEMU is ended.
func (l *Lab) late(g Guest, qemu *machine.Process, hello bool, tmp string) error {
	qemu.Stop()
	if !hello {
		return fmt.Errorf("%w: no sign of life within %s%s", errDied, bootWithin, console(g.Terminal, tmp))
	}
	return fmt.Errorf("the guest did not finish within %s and was ended%s", g.Within, console(g.Terminal, tmp))
}

// ended is the error for a guest whose QEMU ended before the last message.
func (l *Lab) ended(ctx context.Context, qemu *machine.Process, readErr error, hello bool, tmp string) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	why := ""
	if c := qemu.Complaint(); c != "" {
		why = ": QEMU says: " + c
	}
	if readErr != nil {
		why += ": " + readErr.Error()
	}
	if !hello {
		return fmt.Errorf("%w%s%s", errDied, why, console(false, tmp))
	}
	return fmt.Errorf("the guest died at work, most likely of a kernel panic%s%s", why, console(false, tmp))
}

// console is the end of a guest's console, for an error message.
func console(terminal bool, tmp string) string {
	if terminal {
		return ""
	}
	lines := machine.TailFile(filepath.Join(tmp, "console"), consoleLines)
	if len(lines) == 0 {
		return "\nits console is empty"
	}
	return "\nthe end of its console:\n  " + strings.Join(lines, "\n  ")
}
