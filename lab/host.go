package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/memagent/memagent/lab/guest"
	"github.com/memagent/memagent/lab/rootfs"
)

// ErrNoPackage is returned when memagent's .deb was not built.
var ErrNoPackage = errors.New("memagent's .deb is not there: build it with `make packages`, or name it with --package")

// ContainerHost makes a guest a container host that has memagent's package beside it, not installed,
// and the same in a later version. done removes what was made for it.
func (l *Lab) ContainerHost(ctx context.Context, g *Guest) (done func(), err error) {
	deb, err := l.packageFile()
	if err != nil {
		return nil, err
	}
	g.System, err = rootfs.Host(ctx, l.Cache, l.Kernels().SourcesList, l.Say)
	if err != nil {
		return nil, err
	}
	tmp, err := os.MkdirTemp("", "memlab-")
	if err != nil {
		return nil, fmt.Errorf("making a folder for packages: %w", err)
	}
	done = func() { os.RemoveAll(tmp) }
	first, second := filepath.Join(tmp, guest.PackageFile), filepath.Join(tmp, guest.NewerPackageFile)
	if err = os.Symlink(deb, first); err == nil {
		err = later(ctx, deb, second, tmp)
	}
	if err != nil {
		done()
		return nil, err
	}
	g.Carried = append(g.Carried, first, second)
	return done, nil
}

// packageFile finds memagent's .deb.
func (l *Lab) packageFile() (string, error) {
	if l.Package != "" {
		if _, err := os.Stat(l.Package); err != nil {
			return "", fmt.Errorf("memagent's .deb: %w", err)
		}
		return filepath.Abs(l.Package)
	}
	list, err := filepath.Glob(filepath.Join(filepath.Dir(l.Self), "..", "dist", "memagent_*_amd64.deb"))
	if err != nil {
		return "", err
	}
	newest, at := "", int64(0)
	for _, f := range list {
		if fi, err := os.Stat(f); err == nil && fi.ModTime().UnixNano() > at {
			newest, at = f, fi.ModTime().UnixNano()
		}
	}
	if newest == "" {
		return "", ErrNoPackage
	}
	return filepath.Abs(newest)
}

var versionLine = regexp.MustCompile(`(?m)^Version: .*$`)

// later writes a copy of a package that is of a later version and nothing else. dpkg sorts a version
// with something behind it after the one without.
func later(ctx context.Context, deb, to, tmp string) error {
	tree := filepath.Join(tmp, "later")
	if err := dpkgDeb(ctx, "--raw-extract", deb, tree); err != nil {
		return err
	}
	defer os.RemoveAll(tree)
	control := filepath.Join(tree, "DEBIAN", "control")
	raw, err := os.ReadFile(control)
	if err != nil {
		return fmt.Errorf("reading a package: %w", err)
	}
	if err := os.WriteFile(control, versionLine.ReplaceAll(raw, []byte("$0+later")), 0o644); err != nil {
		return fmt.Errorf("making a later package: %w", err)
	}
	// Quickly: nobody keeps it.
	return dpkgDeb(ctx, "--root-owner-group", "-Zgzip", "-z1", "--build", tree, to)
}

func dpkgDeb(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, "dpkg-deb", args...)
	var msg bytes.Buffer
	cmd.Stdout, cmd.Stderr = &msg, &msg
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("dpkg-deb %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(msg.String()))
	}
	return nil
}
