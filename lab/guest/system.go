package guest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/memagent/memagent/lab/protocol"
)

// A guest that is a whole system: init loads modules, turns swap on, mounts the system's disk, and
// becomes that system's own init. The job is done by a service. All that the lab brings is in a folder
// below /run, which is in memory, so that nothing of it is on the system's disk.
const (
	// CarryDir is where the initramfs keeps what goes with the guest into the system, and LabDir where
	// that is then, and this program with it.
	CarryDir = "/carry"
	LabDir   = "/run/memlab"
	Program  = LabDir + "/memlab"
	// PackageFile and NewerPackageFile are memagent's package there, and the same in a later version.
	PackageFile      = "memagent.deb"
	NewerPackageFile = "memagent-later.deb"

	systemDisk  = "/dev/vda"
	systemRoot  = "/sysroot"
	systemInit  = "/sbin/init"
	specFile    = LabDir + "/spec.json"
	serviceMark = "service" // value of the environment variable by which the program knows what it is
)

// unit is the service that does the job. It has no limits of its own.
const unit = `[Unit]
Description=The lab's part in this guest
After=basic.target dbus.service

[Service]
ExecStart=` + Program + `
Environment=` + protocol.GuestEnv + `=` + serviceMark + ` HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
StandardOutput=tty
StandardError=tty
TTYPath=/dev/ttyS0
`

// unitDir is where units live that do not survive the guest.
const unitDir = "/run/systemd/system"

// startSystem mounts the system's disk and becomes its init. It returns only an error.
func (g *Guest) startSystem() error {
	if err := carry(CarryDir, LabDir); err != nil {
		return err
	}
	if err := copyFile(self, Program, 0o755); err != nil {
		return err
	}
	spec, err := json.Marshal(g.Spec)
	if err != nil {
		return err
	}
	wants := filepath.Join(unitDir, "multi-user.target.wants")
	if err := os.MkdirAll(wants, 0o755); err != nil {
		return fmt.Errorf("making the lab's unit: %w", err)
	}
	for path, text := range map[string][]byte{specFile: spec, filepath.Join(unitDir, "memlab.service"): []byte(unit)} {
		if err := os.WriteFile(path, text, 0o644); err != nil {
			return fmt.Errorf("making the lab's unit: %w", err)
		}
	}
	if err := os.Symlink("../memlab.service", filepath.Join(wants, "memlab.service")); err != nil {
		return fmt.Errorf("making the lab's unit: %w", err)
	}
	disk := mount{source: systemDisk, target: systemRoot, fstype: "ext4"}
	if err := disk.do(); err != nil {
		return err
	}
	for _, m := range systemMounts {
		if err := unix.Mount(m.target, systemRoot+m.target, "", unix.MS_MOVE, ""); err != nil {
			return fmt.Errorf("moving %s into the system: %w", m.target, err)
		}
	}
	// As switch_root(8) does: the initramfs stays below, out of reach.
	if err := os.Chdir(systemRoot); err != nil {
		return err
	}
	if err := unix.Mount(".", "/", "", unix.MS_MOVE, ""); err != nil {
		return fmt.Errorf("moving the system to the root: %w", err)
	}
	if err := unix.Chroot("."); err != nil {
		return fmt.Errorf("changing to the system's root: %w", err)
	}
	if err := os.Chdir("/"); err != nil {
		return err
	}
	err = unix.Exec(systemInit, []string{systemInit}, []string{"TERM=dumb"})
	return fmt.Errorf("becoming %s: %w", systemInit, err)
}

// carry copies the files of a folder into another. A folder that is not there holds none.
func carry(from, to string) error {
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	list, err := os.ReadDir(from)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	for _, e := range list {
		if err := copyFile(filepath.Join(from, e.Name()), filepath.Join(to, e.Name()), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func copyFile(from, to string, mode os.FileMode) error {
	src, err := os.Open(from)
	if err != nil {
		return fmt.Errorf("bringing a file along: %w", err)
	}
	defer src.Close()
	dst, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
	if err != nil {
		return fmt.Errorf("bringing a file along: %w", err)
	}
	_, err = io.Copy(dst, src)
	if cerr := dst.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return fmt.Errorf("bringing %s along: %w", from, err)
	}
	return nil
}

// IsService says whether this process is the service of a guest that is a whole system.
func IsService() bool { return os.Getenv(protocol.GuestEnv) == serviceMark }

// Serve does the guest's job as a service of the system. The host ends the guest then.
func Serve(jobs map[string]Job) error {
	// What the job starts is no such service; this very program is among it.
	if err := os.Unsetenv(protocol.GuestEnv); err != nil {
		return err
	}
	port, err := openPort(protocol.ResultPort)
	if err != nil {
		return err
	}
	g := &Guest{to: port}
	raw, err := os.ReadFile(specFile)
	if err == nil {
		err = json.Unmarshal(raw, &g.Spec)
	}
	if err != nil {
		g.Send(protocol.Message{Done: &protocol.Done{Error: fmt.Sprintf("reading the spec in %s: %v", specFile, err)}})
		return err
	}
	g.work(context.Background(), jobs)
	return nil
}
