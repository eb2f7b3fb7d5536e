package recording

import (
	"bufio"
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
)

const (
	mostLine    = 1 << 20 // bytes of the header
	mostPayload = 1 << 24 // bytes of a frame: the list of all cgroups of a host
	mostNumbers = 1 << 18 // numbers of a frame: that list has two for each
	mostKept    = 4 * mostSlots
	mostHeld    = 1 << 25 // numbers of all slots, 256 MiB
)

// Reader reads a recording.
type Reader struct {
	Header Header
	// Skipped counts frames of kinds that this program does not know.
	Skipped uint64

	in     *bufio.Reader
	codec  codec
	last   map[uint64][]uint64
	texts  map[uint64]string
	held   int // numbers in last
	frame  []byte
	crc    uint32
	events uint64
	end    error // returned from now on
	close  func() error
}

// Open reads the header of a recording in a file. Errors are ErrNotRecording,
// ErrVersion and those of the file.
func Open(path string) (*Reader, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("reading a recording: %w", err)
	}
	r, err := NewReader(f)
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	r.close = f.Close
	return r, nil
}

// NewReader reads the header of a recording.
func NewReader(in io.Reader) (*Reader, error) {
	zip, err := gzip.NewReader(in)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotRecording, err)
	}
	return newReader(zip)
}

// newReader reads the header of what is unzipped.
func newReader(plain io.Reader) (*Reader, error) {
	r := &Reader{in: bufio.NewReaderSize(plain, 64<<10), close: func() error { return nil }}
	line, err := r.line()
	if err == nil {
		err = json.Unmarshal(line, &r.Header)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: its first line is no header: %w", ErrNotRecording, err)
	}
	if err := r.Header.check(); err != nil {
		return nil, err
	}
	r.codec = codec{reading: true, stats: r.Header.keys(), perNode: r.Header.NodeStats}
	r.codec.word = func(n uint64) (string, bool) { s, ok := r.texts[n]; return s, ok }
	r.forget()
	return r, nil
}

func (r *Reader) line() (line []byte, err error) {
	for len(line) < mostLine {
		c, err := r.in.ReadByte()
		if err != nil || c == '\n' {
			return line, err
		}
		line = append(line, c)
	}
	return nil, errors.New("it is too long")
}

// Close closes the file.
func (r *Reader) Close() error { return r.close() }

// Events returns how many events were read.
func (r *Reader) Events() uint64 { return r.events }

func (r *Reader) forget() { r.held, r.last, r.texts = 0, map[uint64][]uint64{}, map[uint64]string{} }

// Next reads one event into e, whose memory is used again. io.EOF: the recording
// is over and nothing is missing. ErrCut: it ends here and should not.
func (r *Reader) Next(e *Event) error {
	if r.end == nil {
		r.end = r.read(e)
	}
	return r.end
}

func (r *Reader) read(e *Event) error {
	for {
		kind, slot, err := r.next()
		if err != nil {
			return cut(r.events, err)
		}
		switch {
		case kind == text && len(r.texts) < mostKept:
			r.texts[slot] = string(r.frame)
			continue
		case kind == reset:
			r.forget()
			continue
		case kind == 0 || kind > ended:
			r.Skipped++
			continue
		}
		if len(r.last)+len(r.texts) > mostKept {
			return cut(r.events, errors.New("more texts and cgroups than a recording keeps at once"))
		}
		if err := r.event(kind, slot, e); err != nil {
			return cut(r.events, err)
		}
		if kind == ended {
			if e.Recorded != r.events {
				return cut(r.events, fmt.Errorf("%d were written", e.Recorded))
			}
			return io.EOF
		}
		r.events++
		return nil
	}
}

// next reads a frame.
func (r *Reader) next() (kind Kind, slot uint64, err error) {
	k, err := r.in.ReadByte()
	if err != nil {
		return 0, 0, ends(err)
	}
	if slot, err = binary.ReadUvarint(r.in); err != nil {
		return 0, 0, ends(err)
	}
	var length [4]byte
	if _, err := io.ReadFull(r.in, length[:]); err != nil {
		return 0, 0, ends(err)
	}
	n := binary.LittleEndian.Uint32(length[:])
	if n > mostPayload {
		return 0, 0, fmt.Errorf("a frame of %d bytes", n)
	}
	if cap(r.frame) < int(n) {
		r.frame = make([]byte, n)
	}
	r.frame = r.frame[:n]
	if _, err := io.ReadFull(r.in, r.frame); err != nil {
		return 0, 0, ends(err)
	}
	r.crc = crc32.Update(r.crc, crc32.IEEETable, binary.AppendUvarint([]byte{k}, slot))
	r.crc = crc32.Update(r.crc, crc32.IEEETable, length[:])
	r.crc = crc32.Update(r.crc, crc32.IEEETable, r.frame)
	return Kind(k), slot, nil
}

// ends gives the end of the stream where a frame should be its name.
func ends(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// event turns the frame into an event.
func (r *Reader) event(kind Kind, slot uint64, e *Event) error {
	if kind == Stepped || kind == ended {
		var sum [4]byte
		if _, err := io.ReadFull(r.in, sum[:]); err != nil {
			return ends(err)
		}
		if binary.LittleEndian.Uint32(sum[:]) != r.crc {
			return errors.New("a checksum does not fit")
		}
		r.crc = 0
	}
	// Numbers that do not change take no room, but not as many as this.
	if n, _ := binary.Uvarint(r.frame); n > uint64(len(r.last[slot])+1024+64*len(r.frame)) {
		return fmt.Errorf("a frame of %d bytes for %d numbers", len(r.frame), n)
	}
	v, err := changed(r.last[slot], r.frame)
	if err != nil {
		return err
	}
	if r.held += len(v) - len(r.last[slot]); r.held > mostHeld {
		return errors.New("more figures than a recording keeps at once")
	}
	r.last[slot] = v
	r.codec.v, r.codec.at, r.codec.err = v, 0, nil
	e.Kind = kind
	r.codec.event(e)
	return r.codec.err
}

// changed applies what appendChanges has written.
func changed(v []uint64, b []byte) ([]uint64, error) {
	n, size := binary.Uvarint(b)
	if size <= 0 || n > mostNumbers {
		return nil, fmt.Errorf("a frame of %d numbers", n)
	}
	b = b[size:]
	for uint64(len(v)) < n {
		v = append(v, 0)
	}
	v = v[:n]
	for at := uint64(0); len(b) > 0; at++ {
		skip, s1 := binary.Uvarint(b)
		if s1 <= 0 {
			return nil, errors.New("a frame ends within a number")
		}
		delta, s2 := binary.Varint(b[s1:])
		if s2 <= 0 {
			return nil, errors.New("a frame ends within a number")
		}
		b = b[s1+s2:]
		if skip >= n || at+skip >= n {
			return nil, errors.New("a frame goes past its end")
		}
		at += skip
		v[at] += uint64(delta)
	}
	return v, nil
}
