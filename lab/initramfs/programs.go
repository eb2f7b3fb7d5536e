package initramfs

import (
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// libraryDirs are where the dynamic linker of a 64-bit Debian looks without being told to.
var libraryDirs = []string{"/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib64", "/lib", "/usr/lib"}

// Programs returns the files that make programs of the host, named as on a command line, run in
// a guest: each under /bin by its last name, and the shared libraries they need. A program that the host does not
// have is left out when it is in optional, else it is an error.
func Programs(required, optional []string) ([]File, error) {
	p := packer{seen: map[string]bool{}}
	for _, name := range required {
		file, err := exec.LookPath(name)
		if err != nil {
			return nil, fmt.Errorf("the guest needs %s, which is not on this machine: %w", name, err)
		}
		if err := p.program(file, "/bin/"+filepath.Base(name)); err != nil {
			return nil, err
		}
	}
	for _, name := range optional {
		file, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		if err := p.program(file, "/bin/"+filepath.Base(name)); err != nil {
			return nil, err
		}
	}
	return p.files, nil
}

// packer collects files, each once.
type packer struct {
	seen  map[string]bool
	files []File
}

func (p *packer) add(source, target string) {
	if !p.seen[target] {
		p.seen[target] = true
		p.files = append(p.files, File{Path: target, Source: source, Mode: 0o755})
	}
}

// program adds an executable and what it is linked with.
func (p *packer) program(source, target string) error {
	real, err := filepath.EvalSymlinks(source)
	if err != nil {
		return fmt.Errorf("following %s: %w", source, err)
	}
	p.add(real, target)
	return p.libraries(real)
}

// libraries adds the dynamic linker and the libraries of an ELF file, and theirs.
func (p *packer) libraries(file string) error {
	f, err := elf.Open(file)
	if err != nil {
		var format *elf.FormatError
		if errors.As(err, &format) {
			return nil // a script: nothing is linked
		}
		return fmt.Errorf("reading %s: %w", file, err)
	}
	defer f.Close()
	for _, seg := range f.Progs {
		if seg.Type != elf.PT_INTERP {
			continue
		}
		raw := make([]byte, seg.Filesz)
		if _, err := seg.ReadAt(raw, 0); err != nil {
			return fmt.Errorf("reading the dynamic linker's name in %s: %w", file, err)
		}
		linker := string(raw[:len(raw)-1]) // ends with a zero byte
		p.add(linker, linker)
	}
	libs, err := f.ImportedLibraries()
	if err != nil {
		return fmt.Errorf("reading the libraries of %s: %w", file, err)
	}
	for _, lib := range libs {
		path, err := findLibrary(lib)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		target := libraryDirs[0] + "/" + lib
		if p.seen[target] {
			continue
		}
		p.add(path, target)
		if err := p.libraries(path); err != nil {
			return err
		}
	}
	return nil
}

func findLibrary(name string) (string, error) {
	for _, d := range libraryDirs {
		path := filepath.Join(d, name)
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("shared library %s is in none of %v", name, libraryDirs)
}
