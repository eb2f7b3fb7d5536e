package units

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/memagent/memagent/memcg"
)

// dropInDirs are where systemd keeps what is set at run time, below the host's
// root: of units that have a file, and of transient ones (unit_drop_in_dir).
var dropInDirs = [...]string{"run/systemd/system.control", "run/systemd/transient"}

// maxDropIn bounds what is read of one, in bytes: it is four short lines.
const maxDropIn = 64 << 10

// dropIns returns the names that the drop-in of a property may have.
func (k *Knobs) dropIns(u unit, property string) (files [len(dropInDirs)]string) {
	for i, dir := range dropInDirs {
		files[i] = filepath.Join(k.root, dir, u.name+".d", "50-"+property+".conf")
	}
	return files
}

// noted returns what the drop-in of a property says, as the knob's file would;
// ok is false where there is none. "?" stands for what is not a value in bytes, such
// as a percentage, which is never ours.
func (k *Knobs) noted(u unit, knob memcg.Knob) (value string, ok bool, err error) {
	property := properties[knob]
	for _, file := range k.dropIns(u, property) {
		f, err := os.Open(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return "", false, fmt.Errorf("what systemd keeps of %s: %w", u.name, err)
		}
		b, err := io.ReadAll(io.LimitReader(f, maxDropIn))
		f.Close()
		if err != nil {
			return "", false, fmt.Errorf("what systemd keeps of %s: %w", u.name, err)
		}
		return said(string(b), property, knob), true, nil
	}
	return "", false, nil
}

// said returns the last value of a property in a drop-in.
func said(text, property string, knob memcg.Knob) string {
	value := "?"
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(line), property+"="); ok {
			value = rest
		}
	}
	if knob == memcg.KnobMems {
		if nodes, err := memcg.ParseNodeMask(strings.ReplaceAll(value, " ", ",")); err == nil {
			return nodes.String()
		}
		return "?"
	}
	if value == "infinity" {
		return "max"
	}
	if n, err := strconv.ParseUint(value, 10, 64); err == nil {
		return memcg.LimitOf(n).String()
	}
	return "?"
}

// remove removes the drop-in of a property, and its folder where that is empty then.
func (k *Knobs) remove(u unit, property string) error {
	for _, file := range k.dropIns(u, property) {
		err := os.Remove(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("%w; it holds the operator's value, and outranks what is in /etc until the next boot: remove it", denied(err))
		}
		_ = os.Remove(filepath.Dir(file)) // others may have theirs there
	}
	return nil
}

// removable says why a drop-in could not be removed again.
func (k *Knobs) removable() error {
	for _, dir := range dropInDirs {
		at := filepath.Join(k.root, dir)
		err := syscall.Access(at, writable)
		if errors.Is(err, fs.ErrNotExist) {
			at = filepath.Dir(at)
			err = syscall.Access(at, writable)
		}
		if err != nil {
			return fmt.Errorf("%s: %w; what systemd keeps there could not be removed again: let memagent write it (ReadWritePaths=/run/systemd)", at, denied(err))
		}
	}
	return nil
}

const writable = 2 // W_OK of access(2)

// denied gives an error of a file its kind.
func denied(err error) error {
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
		return fmt.Errorf("%w: %w", memcg.ErrDenied, err)
	}
	return err
}
