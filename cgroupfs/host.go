package cgroupfs

import (
	"errors"
	"fmt"
	"path"
	"path/filepath"

	"github.com/prometheus/procfs"

	"github.com/memagent/memagent/memcg"
)

// HostSample reads what the host has into h: /proc/meminfo, /proc/swaps,
// /proc/pressure/memory and the NUMA nodes. What h held is gone afterwards.
//
// A sample may be used exactly if its MemTotal is present. An error tells what
// could not be read; the fields of that part are Missing, those of everything
// else are good. What this host does not have at all (pressure, nodes, swap)
// is Unsupported in its fields, or an empty list, and no error. A MemTotal of
// 0 is memcg.ErrInvalid: no share of it can be taken (case c05).
func (fs *FS) HostSample(h *memcg.HostSample) error {
	*h = memcg.HostSample{PageSize: fs.pageSize, Nodes: h.Nodes[:0]}
	var errs []error
	errs = append(errs, fs.readMeminfo(h))

	// Most hosts without swap need no second look for it.
	if total, ok := h.SwapTotal.Get(); ok && total == 0 {
		h.Swap = memcg.SwapNone
	} else {
		areas, err := fs.swapAreas()
		if err == nil {
			h.Swap, err = fs.swapClassOf(areas)
		}
		errs = append(errs, unlessUnsupported(err))
	}

	var err error
	h.Pressure, err = fs.hostPressure()
	errs = append(errs, err)

	h.Nodes, err = fs.Nodes(h.Nodes)
	errs = append(errs, unlessUnsupported(err))

	h.LRUGen, err = fs.lruGenBits()
	errs = append(errs, unlessUnsupported(err))

	h.Demotion, err = fs.demotion()
	errs = append(errs, unlessUnsupported(err))
	return errors.Join(errs...)
}

// lruGenBits reads which parts of the multi-gen LRU are switched on.
func (fs *FS) lruGenBits() (memcg.Field, error) {
	b, err := fs.readHostFile(lruGenEnabled)
	if errors.Is(err, memcg.ErrUnsupported) {
		return memcg.Absent(memcg.Unsupported), err
	}
	if err != nil {
		return memcg.Field{}, err
	}
	bits, err := parseLRUGenBits(b)
	if err != nil {
		return memcg.Absent(memcg.Invalid), fmt.Errorf("%s: %w", path.Join(fs.root, lruGenEnabled), err)
	}
	return memcg.Value(bits), nil
}

// demotion reads whether the kernel moves pages to slower nodes.
func (fs *FS) demotion() (memcg.Field, error) {
	b, err := fs.readHostFile(demotionEnabled)
	switch {
	case errors.Is(err, memcg.ErrUnsupported):
		return memcg.Absent(memcg.Unsupported), err
	case err != nil:
		return memcg.Field{}, err
	}
	switch string(trimLine(b)) {
	case "true", "1":
		return memcg.Value(1), nil
	case "false", "0":
		return memcg.Value(0), nil
	}
	return memcg.Absent(memcg.Invalid), &opError{Op: "read", File: path.Join(fs.root, demotionEnabled), Kind: memcg.ErrInvalid,
		Hint: fmt.Sprintf("it holds %q, neither true nor false", b)}
}

// unlessUnsupported drops the error of what this host does not have.
func unlessUnsupported(err error) error {
	if errors.Is(err, memcg.ErrUnsupported) {
		return nil
	}
	return err
}

// readMeminfo fills in the sizes of h.
func (fs *FS) readMeminfo(h *memcg.HostSample) error {
	const file = "proc/meminfo"
	proc, err := procfs.NewFS(filepath.Join(fs.root, "proc"))
	if err != nil {
		return fs.hostFileError("open", file, err)
	}
	m, err := proc.Meminfo()
	if err != nil {
		return fs.hostFileError("read", file, err)
	}
	for _, f := range []struct {
		to   *memcg.Field
		from *uint64
	}{
		{&h.MemTotal, m.MemTotalBytes},
		{&h.MemFree, m.MemFreeBytes},
		{&h.MemAvailable, m.MemAvailableBytes},
		{&h.SwapTotal, m.SwapTotalBytes},
		{&h.SwapFree, m.SwapFreeBytes},
	} {
		*f.to = memcg.Absent(memcg.Unsupported)
		if f.from != nil {
			*f.to = memcg.Value(*f.from)
		}
	}
	if total, ok := h.MemTotal.Get(); !ok || total == 0 {
		h.MemTotal = memcg.Absent(memcg.Invalid)
		return fs.hostFileError("read", file, errors.New("MemTotal is 0 or not there: the host's memory is not known"))
	}
	return nil
}

// hostPressure reads the pressure of the whole host. Where PSI is not built
// in, or built in and off, its fields are Unsupported (case c24).
func (fs *FS) hostPressure() (memcg.Pressure, error) {
	b, err := fs.readHostFile("proc/pressure/memory")
	switch {
	case err == nil:
		return parsePSI(b), nil
	case errors.Is(err, memcg.ErrUnsupported):
		return noPressure(memcg.Unsupported), nil
	}
	return noPressure(memcg.Missing), err
}
