package workload

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// readBuffer is the size of one read(2) in bytes.
const readBuffer = 256 << 10

// runFile reads a file from its beginning, in passes.
func runFile(args []string, r *reporter) error {
	fs := flags("file")
	path := fs.String("path", "", "file to read")
	length := size(0)
	fs.Var(&length, "size", "how much of the file a pass reads; 0 is all of it")
	mapped := fs.Bool("mmap", false, "map the file and touch its pages instead of reading it")
	loops := fs.Int("loops", 1, "number of passes; 0 goes on until SIGTERM")
	every := fs.Duration("every", 0, "time from one pass to the next; 0 does not wait")
	rate := size(0)
	fs.Var(&rate, "rate", "how much is read in a second; 0 is as much as can be")
	var at place
	at.flag(fs)
	stick := yardstickFlag(fs)
	linger := fs.Bool("linger", false, "stay after the last pass, until SIGTERM")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if *path == "" {
		return errors.New("--path is missing")
	}
	if err := at.take(); err != nil {
		return err
	}
	f, err := os.Open(*path)
	if err != nil {
		return err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return err
	}
	n := fi.Size()
	if length > 0 {
		if int64(length) > n {
			return fmt.Errorf("%s has %d bytes, fewer than the --size %s", *path, n, length.String())
		}
		n = int64(length)
	}
	pass := func() error { return readFrom(f, 0, n, int64(rate)) }
	if *mapped {
		if rate > 0 {
			return errors.New("--rate is for files that are read, not mapped")
		}
		mem, err := unix.Mmap(int(f.Fd()), 0, int(n), unix.PROT_READ, unix.MAP_SHARED)
		if err != nil {
			return fmt.Errorf("mapping %s: %w", *path, err)
		}
		pass = func() error { keep(touch(mem)); return nil }
	}
	if err := r.measureWith(*stick); err != nil {
		return err
	}
	r.ready(n)
	for i := 0; *loops == 0 || i < *loops; i++ {
		start := time.Now()
		if err := pass(); err != nil {
			return err
		}
		r.pass(time.Since(start), n)
		if r.err != nil {
			return r.err
		}
		if *loops == 0 || i+1 < *loops {
			pace(start, *every)
		}
	}
	if *linger {
		select {}
	}
	return nil
}

// readFrom reads n bytes from an offset on, at most rate of them a second unless rate is 0.
func readFrom(f *os.File, offset, n, rate int64) error {
	buf := make([]byte, readBuffer)
	start := time.Now()
	for done := int64(0); done < n; {
		got, err := f.ReadAt(buf[:min(readBuffer, n-done)], offset+done)
		done += int64(got)
		if err != nil && !(errors.Is(err, io.EOF) && done >= n) {
			return fmt.Errorf("reading %s at %d: %w", f.Name(), offset+done, err)
		}
		if rate > 0 {
			pace(start, time.Duration(float64(done)/float64(rate)*float64(time.Second)))
		}
	}
	return nil
}
