package rootfs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/memagent/memagent/lab/disk"
)

// ErrNoMmdebstrap is returned when the tool that installs Debian into a folder is not there.
var ErrNoMmdebstrap = errors.New("mmdebstrap is not installed: apt-get install mmdebstrap")

// size of the file system in bytes: it holds some 400 MB, and the rest is room for containers. The
// image is sparse.
const size = 1500 << 20

// Sources writes the text of a sources.list with suites of Debian.
type Sources func(suites []string) (string, error)

// Host returns the path of the image of a container host, building it below dir when it is not there
// yet, which takes minutes, root, and the archive. say is told so.
func Host(ctx context.Context, dir string, sources Sources, say func(format string, args ...any)) (string, error) {
	final := filepath.Join(dir, "hosts", host.name()+".img")
	if _, err := os.Stat(final); err == nil {
		return final, nil
	}
	say("building the image of a container host, which takes some minutes and is done once")
	if err := host.build(ctx, final, sources); err != nil {
		return "", fmt.Errorf("building the image of a container host: %w", err)
	}
	return final, nil
}

// build makes an image. It appears under its name when it is complete.
func (r recipe) build(ctx context.Context, final string, sources Sources) error {
	mmdebstrap, err := exec.LookPath("mmdebstrap")
	if err != nil {
		return ErrNoMmdebstrap
	}
	if os.Getuid() != 0 {
		return errors.New("it takes root, since its files are root's: run it once as root")
	}
	if err := os.MkdirAll(filepath.Dir(final), 0o755); err != nil {
		return err
	}
	tmp, err := os.MkdirTemp(filepath.Dir(final), ".new-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	// apt drops its rights to a user of its own while downloading, who must reach the folder.
	if err := os.Chmod(tmp, 0o755); err != nil {
		return err
	}
	list, err := sources(r.suites())
	if err != nil {
		return err
	}
	text := filepath.Join(tmp, "sources.list")
	if err := os.WriteFile(text, []byte(list), 0o644); err != nil {
		return err
	}
	tree, img := filepath.Join(tmp, "tree"), filepath.Join(tmp, "img")
	if err := run(ctx, mmdebstrap, r.arguments(tree, text)...); err != nil {
		return err
	}
	if err := r.finish(tree); err != nil {
		return err
	}
	if err := disk.MakeExt4(ctx, img, tree, size); err != nil {
		return err
	}
	return os.Rename(img, final)
}

// finish writes the recipe's files into a tree, and takes out of it where its packages came from: a
// guest has no network.
func (r recipe) finish(tree string) error {
	list, err := filepath.Glob(filepath.Join(tree, "etc/apt/sources.list.d/*"))
	if err != nil {
		return err
	}
	for _, path := range append(list, filepath.Join(tree, "etc/resolv.conf")) {
		if err := os.RemoveAll(path); err != nil {
			return err
		}
	}
	for _, f := range r.files {
		path := filepath.Join(tree, f.path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		// Not through a symlink, which would lead out of the tree.
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err := os.WriteFile(path, []byte(f.text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// run runs a program; what it had to say is in the error.
func run(ctx context.Context, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), "LC_ALL=C", "DEBIAN_FRONTEND=noninteractive")
	var msg bytes.Buffer
	cmd.Stdout, cmd.Stderr = &msg, &msg
	err := cmd.Run()
	if err == nil || ctx.Err() != nil {
		return ctx.Err()
	}
	lines := strings.Split(strings.TrimSpace(msg.String()), "\n")
	return fmt.Errorf("%s: %w: %s", filepath.Base(name), err, strings.Join(lines[max(0, len(lines)-5):], "; "))
}
