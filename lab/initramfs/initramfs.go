// Package initramfs builds the root file system a guest starts with: a cpio archive in memory
// order, uncompressed, because an emulated CPU unpacks slower than QEMU loads.
package initramfs

import (
	"fmt"
	"io"
	"os"
	"path"
	"sort"
	"strings"

	"github.com/cavaliergopher/cpio"
)

// File is one file of the archive. Exactly one of Source and Content is used.
type File struct {
	// Path is absolute, as the guest sees it.
	Path string
	// Source is a file of the host to copy.
	Source string
	// Content is what the file holds when Source is empty.
	Content []byte
	// Mode are the permission bits.
	Mode os.FileMode
}

// Dirs are there in every archive, empty, for the guest to mount on.
var Dirs = []string{"/data", "/dev", "/etc", "/proc", "/root", "/run", "/sys", "/tmp", "/var"}

// Write writes an archive with Dirs, the files, and every directory the files need. The same
// files give the same bytes.
func Write(w io.Writer, files []File) error {
	cw := cpio.NewWriter(w)
	for _, d := range directories(files) {
		// Names in an initramfs are relative to its root.
		h := &cpio.Header{Name: strings.TrimPrefix(d, "/"), Mode: cpio.TypeDir | 0o755, Links: 2}
		if err := cw.WriteHeader(h); err != nil {
			return fmt.Errorf("adding %s to the initramfs: %w", d, err)
		}
	}
	seen := map[string]bool{}
	for _, f := range files {
		if !strings.HasPrefix(f.Path, "/") || path.Clean(f.Path) != f.Path {
			return fmt.Errorf("adding %s to the initramfs: the path must be absolute and clean", f.Path)
		}
		if seen[f.Path] {
			return fmt.Errorf("adding %s to the initramfs: it is there already", f.Path)
		}
		seen[f.Path] = true
		if err := f.write(cw); err != nil {
			return fmt.Errorf("adding %s to the initramfs: %w", f.Path, err)
		}
	}
	if err := cw.Close(); err != nil {
		return fmt.Errorf("ending the initramfs: %w", err)
	}
	return nil
}

func (f File) write(cw *cpio.Writer) error {
	size := int64(len(f.Content))
	var body io.Reader = strings.NewReader(string(f.Content))
	if f.Source != "" {
		src, err := os.Open(f.Source)
		if err != nil {
			return err
		}
		defer src.Close()
		fi, err := src.Stat()
		if err != nil {
			return err
		}
		size, body = fi.Size(), src
	}
	h := &cpio.Header{
		Name: strings.TrimPrefix(f.Path, "/"),
		Mode: cpio.TypeReg | cpio.FileMode(f.Mode.Perm()),
		Size: size,
	}
	if err := cw.WriteHeader(h); err != nil {
		return err
	}
	_, err := io.Copy(cw, body)
	return err
}

// directories are Dirs and the parents of all files, parents first.
func directories(files []File) []string {
	set := map[string]bool{}
	add := func(d string) {
		for ; d != "/" && d != "."; d = path.Dir(d) {
			set[d] = true
		}
	}
	for _, d := range Dirs {
		add(d)
	}
	for _, f := range files {
		add(path.Dir(f.Path))
	}
	out := make([]string, 0, len(set))
	for d := range set {
		out = append(out, d)
	}
	sort.Strings(out) // a parent sorts before what is in it
	return out
}
