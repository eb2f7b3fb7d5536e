package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// isTerminal says whether a file is a terminal.
func isTerminal(f *os.File) bool {
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}

// saveTerminal returns a function that puts a terminal back to how it is now. QEMU changes it,
// and cannot put it back when it is killed.
func saveTerminal(f *os.File) func() {
	t, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	if err != nil {
		return func() {}
	}
	return func() {
		// There is nobody to tell when this fails.
		_ = unix.IoctlSetTermios(int(f.Fd()), unix.TCSETS, t)
	}
}
