package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

const (
	ending = ".yaml"
	// maxDropIns bounds what one config is made of. A host has a drop-in for
	// each of its services at most.
	maxDropIns = 256
)

// DropInDir returns the folder in which the drop-ins of a config file are: its
// name with .d in place of .yaml, /etc/memagent/memagent.d for
// /etc/memagent/memagent.yaml. It need not exist.
func DropInDir(path string) string { return strings.TrimSuffix(path, ending) + ".d" }

// readAll reads a config file and its drop-ins: these first, as what they say of
// a cgroup counts before the main file.
func readAll(path string) ([]source, error) {
	main, err := readFile(path)
	if err != nil {
		return nil, err
	}
	names, err := dropIns(DropInDir(path))
	if err != nil {
		return nil, err
	}
	var files []source
	for _, name := range names {
		data, err := readFile(name)
		if errors.Is(err, ErrNoConfig) { // a link to nothing, or removed just now
			return nil, unreadable(name, errors.New("it links to nothing"), "remove it, or put back what it links to")
		}
		if err != nil {
			return nil, err
		}
		files = append(files, source{name, data})
	}
	return append(files, source{path, main}), nil
}

// dropIns lists a folder in the order of the names. Names that start with a dot
// or end in something else are what editors and package managers leave behind;
// .yml, though, is meant.
func dropIns(dir string) (names []string, err error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, unreadable(dir, cause(err), "it is where drop-ins are looked for: make it a folder that can be read, or remove it")
	}
	for _, e := range entries {
		name := e.Name()
		switch {
		case strings.HasPrefix(name, "."):
		case strings.HasSuffix(name, ".yml"):
			return nil, unreadable(filepath.Join(dir, name), errors.New("drop-ins end in .yaml"), "rename it, or remove it")
		case strings.HasSuffix(name, ending):
			names = append(names, filepath.Join(dir, name))
		}
	}
	if len(names) > maxDropIns {
		return nil, unreadable(dir, fmt.Errorf("it has %d drop-ins, more than %d", len(names), maxDropIns), "put policies together in fewer files")
	}
	return names, nil
}
