package workload

import (
	"flag"
	"fmt"
	"os"
)

// A yardstick is work that takes as long as the machine is slow, and no memory beyond a buffer: the
// kernel clears the buffer, the program reads it, as often as makes size bytes. Guests that are
// compared run minutes apart, on a machine that others use too; a pass counted in yardsticks has
// their share of it taken out.
type yardstick struct {
	size int64
	buf  []byte
	zero *os.File
}

// yardstickFlag adds the flag that asks for a yardstick after each pass.
func yardstickFlag(fs *flag.FlagSet) *size {
	bytes := size(0)
	fs.Var(&bytes, "yardstick", "after each pass, time the clearing and reading of this much in a small buffer; 0 does not")
	return &bytes
}

// measureWith has the reporter time a yardstick after each pass.
func (r *reporter) measureWith(bytes size) error {
	if bytes == 0 {
		return nil
	}
	zero, err := os.Open("/dev/zero")
	if err != nil {
		return fmt.Errorf("the yardstick: %w", err)
	}
	r.yardstick = &yardstick{size: int64(bytes), buf: make([]byte, readBuffer), zero: zero}
	return r.yardstick.measure() // the buffer is there before the first pass
}

func (y *yardstick) measure() error {
	for done := int64(0); done < y.size; done += int64(len(y.buf)) {
		if _, err := y.zero.Read(y.buf); err != nil {
			return fmt.Errorf("the yardstick: %w", err)
		}
		keep(touch(y.buf))
	}
	return nil
}
