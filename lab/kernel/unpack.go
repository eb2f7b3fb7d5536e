package kernel

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/ulikunitz/xz"
)

// fetch downloads and unpacks a release. The result appears under its final name only when it
// is complete, so that a broken download is never taken for a cached kernel.
func (s Store) fetch(ctx context.Context, st aptState, release string, packages []string) (Kernel, error) {
	parent := filepath.Join(s.Dir, "kernels")
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return Kernel{}, fmt.Errorf("making the kernel cache: %w", err)
	}
	tmp, err := os.MkdirTemp(parent, ".fetch-*")
	if err != nil {
		return Kernel{}, fmt.Errorf("making the kernel cache: %w", err)
	}
	defer os.RemoveAll(tmp)
	// apt drops its rights to a user of its own while downloading, who must reach the folder.
	if err := os.Chmod(tmp, 0o755); err != nil {
		return Kernel{}, fmt.Errorf("making the kernel cache: %w", err)
	}
	debs, tree, out := filepath.Join(tmp, "debs"), filepath.Join(tmp, "tree"), filepath.Join(tmp, "out")
	for _, d := range []string{debs, tree, filepath.Join(out, "modules")} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return Kernel{}, fmt.Errorf("making the kernel cache: %w", err)
		}
	}
	s.Say("downloading kernel %s (%s)", release, strings.Join(packages, ", "))
	if err := st.download(ctx, debs, packages); err != nil {
		return Kernel{}, err
	}
	files, err := filepath.Glob(filepath.Join(debs, "*.deb"))
	if err != nil || len(files) != len(packages) {
		return Kernel{}, fmt.Errorf("downloading kernel %s: %d of %d packages arrived", release, len(files), len(packages))
	}
	k := Kernel{Release: release, Considered: Modules}
	for _, f := range files {
		cmd := exec.CommandContext(ctx, "dpkg-deb", "-x", f, tree)
		if msg, err := cmd.CombinedOutput(); err != nil {
			return Kernel{}, fmt.Errorf("unpacking %s: %w: %s", filepath.Base(f), err, lastLines(string(msg), 2))
		}
		k.Packages = append(k.Packages, filepath.Base(f))
	}
	if err := k.collect(tree, out); err != nil {
		return Kernel{}, err
	}
	raw, err := json.MarshalIndent(k, "", "  ")
	if err != nil {
		return Kernel{}, err
	}
	if err := os.WriteFile(filepath.Join(out, "kernel.json"), raw, 0o644); err != nil {
		return Kernel{}, fmt.Errorf("keeping kernel %s: %w", release, err)
	}
	final := filepath.Join(parent, release)
	if err := os.RemoveAll(final); err != nil {
		return Kernel{}, fmt.Errorf("keeping kernel %s: %w", release, err)
	}
	if err := os.Rename(out, final); err != nil {
		return Kernel{}, fmt.Errorf("keeping kernel %s: %w", release, err)
	}
	return s.load(release)
}

// collect copies the image and the wanted modules, uncompressed, from an unpacked tree to out.
func (k *Kernel) collect(tree, out string) error {
	image := ""
	for _, p := range []string{"boot/vmlinuz-" + k.Release, "usr/lib/modules/" + k.Release + "/vmlinuz", "lib/modules/" + k.Release + "/vmlinuz"} {
		if fi, err := os.Stat(filepath.Join(tree, p)); err == nil && fi.Mode().IsRegular() {
			image = filepath.Join(tree, p)
			break
		}
	}
	if image == "" {
		return fmt.Errorf("no vmlinuz in the packages of kernel %s (%s)", k.Release, strings.Join(k.Packages, ", "))
	}
	if err := os.Rename(image, filepath.Join(out, "vmlinuz")); err != nil {
		return fmt.Errorf("keeping kernel %s: %w", k.Release, err)
	}
	found := map[string]string{}
	err := filepath.WalkDir(tree, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && strings.Contains(path, "/modules/"+k.Release+"/kernel/") {
			if name, _, ok := strings.Cut(d.Name(), ".ko"); ok {
				found[name] = path
			}
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("looking for modules of kernel %s: %w", k.Release, err)
	}
	content, depends := map[string][]byte{}, map[string][]string{}
	todo := append([]string(nil), Modules...)
	for len(todo) > 0 {
		m := todo[0]
		todo = todo[1:]
		path, ok := found[m]
		if _, done := content[m]; done || !ok {
			continue
		}
		if content[m], err = readModule(path); err != nil {
			return err
		}
		if depends[m], err = dependencies(content[m]); err != nil {
			return fmt.Errorf("module %s: %w", m, err)
		}
		todo = append(todo, depends[m]...)
	}
	k.Present = loadOrder(Modules, depends)
	for _, m := range k.Present {
		if err := os.WriteFile(filepath.Join(out, "modules", m+".ko"), content[m], 0o644); err != nil {
			return fmt.Errorf("keeping module %s: %w", m, err)
		}
	}
	return nil
}

// readModule reads a module file, uncompressing it: an init_module(2) of a compressed one fails
// with "Invalid ELF header".
func readModule(path string) ([]byte, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading a module: %w", err)
	}
	switch filepath.Ext(path) {
	case ".ko":
	case ".xz":
		r, err := xz.NewReader(bytes.NewReader(raw))
		if err != nil {
			return nil, fmt.Errorf("uncompressing %s: %w", filepath.Base(path), err)
		}
		if raw, err = io.ReadAll(r); err != nil {
			return nil, fmt.Errorf("uncompressing %s: %w", filepath.Base(path), err)
		}
	default:
		return nil, fmt.Errorf("module %s is compressed in a way that is not understood", filepath.Base(path))
	}
	if !bytes.HasPrefix(raw, []byte("\x7fELF")) {
		return nil, fmt.Errorf("module %s is not an ELF file", filepath.Base(path))
	}
	return raw, nil
}
