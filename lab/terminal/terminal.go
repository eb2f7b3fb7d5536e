// Package terminal tells terminals from files and puts them back the way they were.
package terminal

import (
	"os"

	"golang.org/x/sys/unix"
)

// Is says whether a file is a terminal.
func Is(f *os.File) bool {
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}

// Save returns a function that puts a terminal back to how it is now. QEMU changes it, and cannot
// put it back when it is killed.
func Save(f *os.File) func() {
	t, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	if err != nil {
		return func() {}
	}
	return func() {
		// There is nobody to tell when this fails.
		_ = unix.IoctlSetTermios(int(f.Fd()), unix.TCSETS, t)
	}
}
