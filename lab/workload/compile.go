package workload

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// compileSteps is in how many steps a unit reads what all read, and allocates: reading and
// allocating go along with each other.
const compileSteps = 4

// runCompile is one unit of a build: it uses all of its tools, reads the sources, allocates as it
// goes, looks at all it has allocated once more, and ends.
func runCompile(args []string, r *reporter) error {
	fs := flags("compile")
	tools := fs.String("tools", "", "file to map and use all of; empty for none")
	sources := fs.String("sources", "", "file to read")
	common, own, skip, alloc := size(0), size(0), size(0), size(20<<20)
	fs.Var(&common, "common", "size of the part that every unit reads, at the beginning of the sources")
	fs.Var(&own, "own", "size of the part that only this unit reads")
	fs.Var(&skip, "skip", "where that part begins; it is reduced to what the file has")
	fs.Var(&alloc, "alloc", "memory to allocate")
	var at place
	at.flag(fs)
	if err := fs.Parse(args); err != nil {
		return err
	}
	if *sources == "" || alloc < compileSteps*word {
		return errors.New("--sources is missing, or --alloc is too small")
	}
	if err := at.take(); err != nil {
		return err
	}
	f, err := os.Open(*sources)
	if err != nil {
		return err
	}
	defer f.Close()
	begin, err := ownPart(f, int64(common), int64(own), int64(skip))
	if err != nil {
		return err
	}
	var sum uint64
	var heap [][]byte
	for i := range int64(compileSteps) {
		part := int64(common) / compileSteps
		if err := readFrom(f, i*part, part, 0); err != nil {
			return err
		}
		mem, err := allocate(int64(alloc) / compileSteps)
		if err != nil {
			return err
		}
		heap = append(heap, mem)
	}
	if err := readFrom(f, begin, int64(own), 0); err != nil {
		return err
	}
	if *tools != "" {
		n, err := useAll(*tools)
		if err != nil {
			return err
		}
		sum += n
	}
	for _, mem := range heap {
		sum += touch(mem)
	}
	keep(sum)
	r.ready(int64(alloc))
	return nil
}

// ownPart is where a unit's own part of the sources begins: at skip, going round from the end of
// the file to the end of the common part.
func ownPart(f *os.File, common, own, skip int64) (int64, error) {
	fi, err := f.Stat()
	if err != nil {
		return 0, err
	}
	if common+own > fi.Size() {
		return 0, fmt.Errorf("%s has %d bytes, fewer than --common and --own together", f.Name(), fi.Size())
	}
	if own == 0 {
		return common, nil
	}
	parts := (fi.Size() - common) / own
	return common + max(skip-common, 0)/own%parts*own, nil
}

// useAll maps a file and reads all of it.
func useAll(path string) (uint64, error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return 0, err
	}
	mem, err := unix.Mmap(int(f.Fd()), 0, int(fi.Size()), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return 0, fmt.Errorf("mapping %s: %w", path, err)
	}
	return touch(mem), nil
}
