// Package disk makes the data disks of guests: a raw ext4 image with files of given sizes, built
// once without root and kept in the cache.
package disk

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"
)

// ErrNoMke2fs is returned when the tool that makes the file system is not installed.
var ErrNoMke2fs = errors.New("mke2fs is not installed: run `memlab setup`, or apt-get install e2fsprogs")

// room is what an image is larger than its files, in bytes: metadata, and room to write.
const room = 64 << 20

// File is a file on the disk, filled with bytes that do not compress.
type File struct {
	Name string
	Size int64 // bytes
}

// Image returns the path of an image holding files, building it in dir when it is not there yet.
func Image(ctx context.Context, dir string, files []File) (string, error) {
	final := filepath.Join(dir, "disks", name(files)+".img")
	if _, err := os.Stat(final); err == nil {
		return final, nil
	}
	if _, err := findMke2fs(); err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(final), 0o755); err != nil {
		return "", fmt.Errorf("making a data disk: %w", err)
	}
	tmp, err := os.MkdirTemp(filepath.Dir(final), ".new-*")
	if err != nil {
		return "", fmt.Errorf("making a data disk: %w", err)
	}
	defer os.RemoveAll(tmp)
	tree := filepath.Join(tmp, "tree")
	if err := os.Mkdir(tree, 0o755); err != nil {
		return "", fmt.Errorf("making a data disk: %w", err)
	}
	size := int64(room)
	for _, f := range files {
		if err := Fill(filepath.Join(tree, f.Name), f.Size); err != nil {
			return "", fmt.Errorf("making a data disk: %w", err)
		}
		size += f.Size + f.Size/50
	}
	img := filepath.Join(tmp, "img")
	if err := MakeExt4(ctx, img, tree, size); err != nil {
		return "", fmt.Errorf("making a data disk: %w", err)
	}
	if err := os.Rename(img, final); err != nil {
		return "", fmt.Errorf("keeping a data disk: %w", err)
	}
	return final, nil
}

// MakeExt4 makes a file of size bytes that is an ext4 file system holding a tree. It has no journal,
// whose threads and writes would only add noise.
func MakeExt4(ctx context.Context, img, tree string, size int64) error {
	mke2fs, err := findMke2fs()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, mke2fs, "-q", "-F", "-t", "ext4", "-O", "^has_journal", "-m", "0",
		"-E", "lazy_itable_init=0", "-d", tree, img, fmt.Sprintf("%dk", size>>10))
	var msg bytes.Buffer
	cmd.Stdout, cmd.Stderr = &msg, &msg
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("making a file system of %d MiB with %s: %w: %s", size>>20, mke2fs, err, strings.TrimSpace(msg.String()))
	}
	return nil
}

// name tells images with different files apart.
func name(files []File) string {
	parts := make([]string, 0, len(files))
	for _, f := range files {
		parts = append(parts, fmt.Sprintf("%s-%dM", f.Name, f.Size>>20))
	}
	sort.Strings(parts)
	return "ext4_" + strings.Join(parts, "_")
}

// findMke2fs looks in the folders of the administrator too, which are not on everyone's PATH.
func findMke2fs() (string, error) {
	for _, p := range []string{"mke2fs", "/usr/sbin/mke2fs", "/sbin/mke2fs"} {
		if path, err := exec.LookPath(p); err == nil {
			return path, nil
		}
	}
	return "", ErrNoMke2fs
}

// Fill makes a file of so many bytes that do not compress, the same each time.
func Fill(path string, size int64) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = io.CopyN(f, rand.NewChaCha8([32]byte{1}), size)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}
