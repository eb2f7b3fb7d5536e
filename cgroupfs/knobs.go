package cgroupfs

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/memagent/memagent/memcg"
)

// Bounds of the nodes' list that is read: 1,024 ids of four digits and a comma.
const maxKnob = 8 << 10

// ReadKnob returns what a knob of a cgroup holds, as the kernel prints it,
// without the newline: bytes or "max", or for cpuset.mems the list of nodes
// that was asked for, "" where the parent's are inherited. memcg.ErrGone: the
// cgroup is no longer at its path. memcg.ErrUnsupported: it lives and has no
// such file, as the root. memcg.ErrInvalid: the file holds no value of its
// kind, or the knob is none.
func (fs *FS) ReadKnob(id memcg.ID, k memcg.Knob) (string, error) {
	value, err := fs.readKnob(id, k)
	if err != nil {
		return "", fmt.Errorf("%s of %s: %w", k, quoteName(id.Path), err)
	}
	return value, nil
}

func (fs *FS) readKnob(id memcg.ID, k memcg.Knob) (string, error) {
	if !k.Known() {
		return "", &opError{Op: "read", File: fs.file(id.Path, string(k)), Kind: memcg.ErrInvalid, Hint: "not one of the files that are written"}
	}
	dir, err := fs.open(id)
	if err != nil {
		return "", err
	}
	defer fs.k.close(dir)
	b, err := fs.readLine(dir, id.Path, string(k))
	if err != nil {
		if errors.Is(err, unix.ENOENT) && fs.lives(id) {
			return "", &opError{Op: "open", File: fs.file(id.Path, string(k)), Kind: memcg.ErrUnsupported, Errno: unix.ENOENT,
				Hint: noKnob[k]}
		}
		return "", err
	}
	if k == memcg.KnobMems {
		_, ok := parseNodesFile(b)
		return string(b), fs.oddUnless(ok, id, k, b)
	}
	l := parseLimitFile(b)
	if l.State() != memcg.Present {
		return "", fs.oddUnless(false, id, k, b)
	}
	return l.String(), nil
}

// noKnob says why a living cgroup may lack a file.
var noKnob = map[memcg.Knob]string{
	memcg.KnobHigh:    "the memory controller is not enabled for this cgroup",
	memcg.KnobSwapMax: "the memory controller is not enabled for this cgroup, or the kernel does not account swap",
	memcg.KnobMems:    "the cpuset controller is not enabled for this cgroup",
}

func (fs *FS) oddUnless(ok bool, id memcg.ID, k memcg.Knob, b []byte) error {
	if ok {
		return nil
	}
	return &opError{Op: "read", File: fs.file(id.Path, string(k)), Kind: memcg.ErrInvalid, Hint: fmt.Sprintf("it holds %q", b)}
}

// readLine returns the content of a short file below an open directory,
// without its newline.
func (fs *FS) readLine(dir int, cgroup, name string) ([]byte, error) {
	fd, err := fs.k.open(dir, name, unix.O_RDONLY, beneath)
	if err != nil {
		return nil, newError("open", fs.file(cgroup, name), err)
	}
	defer fs.k.close(fd)
	b, _, err := readAll(fs.k, fd, nil)
	if err == nil && len(b) > maxKnob {
		err = errTooLong
	}
	if err != nil {
		return nil, newError("read", fs.file(cgroup, name), err)
	}
	return trimLine(b), nil
}

// WriteKnob writes one knob of a cgroup, with one write(2). It takes what
// ReadKnob returns: bytes, which are rounded down to whole pages as the kernel
// does, or "max", which is what any number from 2^63-4096 on is written as; for
// cpuset.mems a list of nodes or "" to inherit.
//
// It may block, whatever becomes of ctx: memory.high below what is used is
// reclaimed down to before the write returns (kernels before 6.16; from then on
// O_NONBLOCK, which it is opened with, leaves that to the workload), and
// cpuset.mems moves the memory of every process. The value holds from the
// beginning of the write on. Call it from a worker.
//
// Errors: memcg.ErrInvalid for a value or knob that is none, where nothing is
// written, and for nodes that this host does not have; with ENOSPC where
// cpuset.mems cannot be emptied because processes are there (before 7.2);
// memcg.ErrDenied for the root, the agent's own cgroup and those above it;
// memcg.ErrReadOnly, memcg.ErrGone and memcg.ErrUnsupported as elsewhere;
// memcg.ErrPartial when ctx was over before the write.
func (fs *FS) WriteKnob(ctx context.Context, id memcg.ID, k memcg.Knob, value string) error {
	if err := fs.writeKnob(ctx, id, k, value); err != nil {
		return fmt.Errorf("%s of %s to %q: %w", k, quoteName(id.Path), value, err)
	}
	return nil
}

func (fs *FS) writeKnob(ctx context.Context, id memcg.ID, k memcg.Knob, value string) error {
	payload, err := fs.knobPayload(id, k, value)
	if err != nil {
		return err
	}
	t, err := fs.target(id)
	if err != nil {
		return err
	}
	defer t.close()
	if ctx.Err() != nil {
		return fmt.Errorf("%w: %w", memcg.ErrPartial, context.Cause(ctx))
	}
	flags := 0
	if k == memcg.KnobHigh {
		flags = unix.O_NONBLOCK // kernels that do not know it here ignore it
	}
	fd, err := t.openWriteAs(string(k), flags)
	if err != nil {
		if e, ok := errors.AsType[*opError](err); ok && e.Kind == memcg.ErrUnsupported {
			e.Hint = noKnob[k]
		}
		return err
	}
	defer fs.k.close(fd)
	err = t.write(fd, string(k), payload)
	if e, ok := errors.AsType[*opError](err); ok && k == memcg.KnobMems {
		e.Hint = memsHint(e.Errno)
	}
	return err
}

// knobPayload returns what is written for a value. Never is it empty, and for a
// limit never a bare newline, which the kernel reads as 0 (page_counter_memparse).
func (fs *FS) knobPayload(id memcg.ID, k memcg.Knob, value string) ([]byte, error) {
	bad := func(hint string) error {
		return &opError{Op: "write", File: fs.file(id.Path, string(k)), Kind: memcg.ErrInvalid, Hint: hint}
	}
	switch k {
	case memcg.KnobMems:
		nodes, err := memcg.ParseNodeMask(value)
		if err != nil || strings.ContainsRune(value, '\n') {
			return nil, bad("not a list of nodes")
		}
		return []byte(nodes.String() + "\n"), nil
	case memcg.KnobHigh, memcg.KnobSwapMax:
		l := parseLimitFile([]byte(value))
		if l.State() != memcg.Present || strings.ContainsRune(value, '\n') {
			return nil, bad(`neither a number of bytes nor "max"`)
		}
		if b, finite := l.Bytes(); finite {
			return strconv.AppendUint(nil, b/fs.pageSize*fs.pageSize, 10), nil
		}
		return l.AppendKernel(nil), nil
	}
	return nil, bad("not one of the files that are written")
}

// memsHint says what a refusal of cpuset.mems means.
func memsHint(errno syscall.Errno) string {
	switch errno {
	case unix.ENOSPC:
		return "processes are in the cgroup or below it, and this kernel (before 7.2) lets nobody take their nodes away: write the parent's cpuset.mems.effective instead"
	case unix.EINVAL, unix.ERANGE:
		return "a node in the list has no memory or does not exist on this host"
	}
	return ""
}

// EffectiveMems returns the nodes that a cgroup and its parent may really use
// (cpuset.mems.effective): what a cgroup asked for in cpuset.mems is granted
// within its parent's, or not at all (case c48). Errors as for ReadKnob; the
// root, which has no parent, is memcg.ErrUnsupported.
func (fs *FS) EffectiveMems(id memcg.ID) (own, parent memcg.NodeMask, err error) {
	own, parent, err = fs.effectiveMems(id)
	if err != nil {
		err = fmt.Errorf("cpuset.mems.effective of %s: %w", quoteName(id.Path), err)
	}
	return own, parent, err
}

func (fs *FS) effectiveMems(id memcg.ID) (own, parent memcg.NodeMask, err error) {
	file := fileNames[cpusetMemsEffective]
	if id.Path == "/" {
		return own, parent, &opError{Op: "read", File: fs.file(id.Path, file), Kind: memcg.ErrUnsupported, Hint: "the root has no parent"}
	}
	up, _, err := fs.openDir(path.Dir(id.Path))
	if err != nil {
		return own, parent, err
	}
	defer fs.k.close(up)
	dir, err := fs.open(id)
	if err != nil {
		return own, parent, err
	}
	defer fs.k.close(dir)
	if own, err = fs.readNodes(dir, id.Path, file); err == nil {
		parent, err = fs.readNodes(up, path.Dir(id.Path), file)
	}
	if errors.Is(err, unix.ENOENT) && fs.lives(id) {
		err = &opError{Op: "open", File: fs.file(id.Path, file), Kind: memcg.ErrUnsupported, Errno: unix.ENOENT, Hint: noKnob[memcg.KnobMems]}
	}
	return own, parent, err
}

func (fs *FS) readNodes(dir int, cgroup, file string) (memcg.NodeMask, error) {
	b, err := fs.readLine(dir, cgroup, file)
	if err != nil {
		return memcg.NodeMask{}, err
	}
	nodes, ok := parseNodesFile(b)
	if !ok {
		return nodes, &opError{Op: "read", File: fs.file(cgroup, file), Kind: memcg.ErrInvalid, Hint: fmt.Sprintf("it holds %q", b)}
	}
	return nodes, nil
}

// BootID returns the id of the host's present boot, a new one each time: what
// was written to cgroups does not outlive it.
func (fs *FS) BootID() (string, error) {
	const file = "proc/sys/kernel/random/boot_id"
	b, _, err := readFileAt(fs.k, fs.rootDir, file, nil)
	if err != nil {
		return "", fmt.Errorf("boot id of the host: %w", err)
	}
	id := string(trimLine(b))
	if id == "" || len(id) > 64 || strings.ContainsFunc(id, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", &opError{Op: "read", File: path.Join(fs.root, file), Kind: memcg.ErrInvalid, Hint: fmt.Sprintf("it holds %q", b)}
	}
	return id, nil
}
