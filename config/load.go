package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// MaxSize is the largest config file that is read, in bytes. Thousands of
// policies fit; what is larger is some other file.
const MaxSize = 1 << 20

// source is one file of a config.
type source struct {
	name string
	data []byte
}

// Load reads and parses a config: the file at path, and in front of its
// policies those of its drop-ins, which are the *.yaml files in the folder that
// DropInDir names, in the order of their names. Symbolic links are followed.
// Anything but a regular file is refused without being read, so a FIFO cannot
// hold Load up. Errors wrap ErrNoConfig, ErrUnreadable or ErrBadConfig.
func Load(path string) (*Config, error) {
	files, err := readAll(path)
	if err != nil {
		return nil, err
	}
	return parseFiles(files)
}

func readFile(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &Error{File: path, Err: fmt.Errorf("%w: %w", ErrNoConfig, cause(err)),
			Fix: "create it or name another one with -c"}
	}
	if err != nil {
		return nil, unreadable(path, cause(err), "check its owner and mode")
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, unreadable(path, cause(err), "")
	}
	if !info.Mode().IsRegular() {
		return nil, unreadable(path, fmt.Errorf("it is a %s", kindOf(info.Mode())), "name a regular file")
	}
	data, err := io.ReadAll(io.LimitReader(f, MaxSize+1))
	if err != nil {
		return nil, unreadable(path, cause(err), "")
	}
	if len(data) > MaxSize {
		return nil, tooLarge(path)
	}
	return data, nil
}

func tooLarge(path string) *Error {
	return unreadable(path, fmt.Errorf("it is larger than %v", Bytes(MaxSize)), "is this the right file?")
}

func unreadable(path string, err error, fix string) *Error {
	return &Error{File: path, Err: fmt.Errorf("%w: %w", ErrUnreadable, err), Fix: fix}
}

// cause leaves out the path that os puts into its errors: Error has it.
func cause(err error) error {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return fmt.Errorf("%s: %w", pe.Op, pe.Err)
	}
	return err
}

func kindOf(m fs.FileMode) string {
	switch {
	case m.IsDir():
		return "directory"
	case m&fs.ModeNamedPipe != 0:
		return "FIFO"
	case m&fs.ModeSocket != 0:
		return "socket"
	}
	return "device"
}
