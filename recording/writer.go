package recording

import (
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"sync"
	"time"

	"github.com/memagent/memagent/memcg"
)

const (
	// DefaultMost is how large a recording may become where nothing else is
	// asked for: a day of some hundred cgroups at 5 s.
	DefaultMost = 256 << 20
	// flushEvery is how much of a recording is lost at most when it is cut off.
	flushEvery = time.Second
	// eager is how many bytes of frames are handed to the disk before that.
	eager = 256 << 10
	// behind is how many bytes of frames may wait for the disk.
	behind = 16 << 20
	// mostSlots bounds what is remembered of cgroups and texts: with more, all
	// is forgotten and begins anew.
	mostSlots = 1 << 16
)

// Writer writes a recording. Write is for one goroutine; the other methods may
// be called from any.
type Writer struct {
	codec codec
	slots map[slotted]uint64
	last  [][]uint64 // the numbers before, by slot
	texts map[string]uint64
	crc   uint32
	begun uint64        // events
	kick  time.Duration // when the disk was last given work

	mu      sync.Mutex
	work    sync.Cond
	pending []byte // frames for the disk
	closing bool
	err     error // why the recording has ended; nil: it goes on
	done    chan struct{}
}

// Create begins a recording in a new file, readable for its owner alone: paths
// of cgroups tell what runs on a host. An existing file is never overwritten.
// most bounds its size in bytes, about; 0 is DefaultMost.
func Create(path string, h Header, most int64) (*Writer, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, os.ErrExist) {
		return nil, fmt.Errorf("recording to %s: %w; name another file or remove it", path, os.ErrExist)
	}
	if err != nil {
		return nil, fmt.Errorf("recording: %w", err)
	}
	return NewWriter(f, h, most), nil
}

// NewWriter begins a recording. Close closes out.
func NewWriter(out io.WriteCloser, h Header, most int64) *Writer {
	if most == 0 {
		most = DefaultMost
	}
	w := &Writer{slots: map[slotted]uint64{}, texts: map[string]uint64{}, done: make(chan struct{})}
	w.work.L = &w.mu
	w.codec = codec{stats: h.keys(), perNode: h.NodeStats}
	w.codec.number = w.numberOf
	w.last = make([][]uint64, firstSlot)
	line, err := json.Marshal(h)
	if err != nil {
		panic(err) // texts and numbers
	}
	w.pending = append(append(w.pending, line...), '\n')
	go w.toDisk(out, most)
	return w
}

// Each kind has a slot; those of cgroups follow.
const firstSlot = 32

// Write takes an event in. It does not keep it, and never waits: what goes wrong
// ends the recording, and Err tells.
func (w *Writer) Write(e *Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil || w.closing {
		return
	}
	w.add(e)
	switch {
	case len(w.pending) > behind:
		w.err = ErrBehind
		w.work.Signal()
	case len(w.pending) > eager, e.Kind == Stepped && e.At-w.kick >= flushEvery, e.Kind == Configured:
		w.kick = e.At
		w.work.Signal()
	}
}

// add appends the frames of an event to what is pending.
func (w *Writer) add(e *Event) {
	if len(w.last)+len(w.texts) > mostSlots {
		w.frame(reset, 0, nil)
		clear(w.slots)
		clear(w.texts)
		w.last = append(w.last[:0], make([][]uint64, firstSlot)...)
	}
	w.begun++
	w.codec.v = w.codec.v[:0]
	w.codec.event(e)
	slot := uint64(e.Kind)
	if e.Kind == Looked || e.Kind == Described {
		slot = w.slotOf(slotted{e.Kind, e.Cgroup})
	}
	before := len(w.pending)
	w.pending = binary.AppendUvarint(append(w.pending, byte(e.Kind)), slot)
	at := len(w.pending)
	w.pending = append(w.pending, 0, 0, 0, 0) // the length, once it is known
	w.pending = appendChanges(w.pending, w.last[slot], w.codec.v)
	w.last[slot] = append(w.last[slot][:0], w.codec.v...)
	binary.LittleEndian.PutUint32(w.pending[at:], uint32(len(w.pending)-at-4))
	w.crc = crc32.Update(w.crc, crc32.IEEETable, w.pending[before:])
	if e.Kind == Stepped || e.Kind == ended {
		w.pending = binary.LittleEndian.AppendUint32(w.pending, w.crc)
		w.crc = 0
	}
}

// frame appends a frame that is no event.
func (w *Writer) frame(k Kind, slot uint64, payload []byte) {
	before := len(w.pending)
	w.pending = binary.AppendUvarint(append(w.pending, byte(k)), slot)
	w.pending = binary.LittleEndian.AppendUint32(w.pending, uint32(len(payload)))
	w.pending = append(w.pending, payload...)
	w.crc = crc32.Update(w.crc, crc32.IEEETable, w.pending[before:])
}

// slotted is what has a slot of its own.
type slotted struct {
	kind Kind
	id   memcg.ID
}

func (w *Writer) slotOf(s slotted) uint64 {
	slot, ok := w.slots[s]
	if !ok {
		slot = uint64(len(w.last))
		w.slots[s] = slot
		w.last = append(w.last, nil)
	}
	return slot
}

// numberOf returns the number of a text, from 1, and introduces it where it is
// new.
func (w *Writer) numberOf(s string) uint64 {
	n, ok := w.texts[s]
	if !ok {
		n = uint64(len(w.texts)) + 1
		w.texts[s] = n
		w.frame(text, n, []byte(s))
	}
	return n
}

// appendChanges appends how v differs from last: how many numbers there are,
// and for each that differs how many are skipped before it, and by how much.
func appendChanges(b []byte, last, v []uint64) []byte {
	b = binary.AppendUvarint(b, uint64(len(v)))
	skipped := uint64(0)
	for i, x := range v {
		was := uint64(0)
		if i < len(last) {
			was = last[i]
		}
		if x == was {
			skipped++
			continue
		}
		b = binary.AppendUvarint(b, skipped)
		b = binary.AppendVarint(b, int64(x-was))
		skipped = 0
	}
	return b
}

// toDisk compresses and writes what is pending, until the end.
func (w *Writer) toDisk(out io.WriteCloser, most int64) {
	defer close(w.done)
	size := &counter{w: out}
	zip := gzip.NewWriter(size)
	var frames []byte
	for {
		w.mu.Lock()
		for len(w.pending) == 0 && !w.closing && w.err == nil {
			w.work.Wait()
		}
		last := w.closing || w.err != nil
		frames, w.pending = w.pending, frames[:0]
		w.mu.Unlock()
		_, err := zip.Write(frames)
		if err == nil && !last {
			err = zip.Flush()
		}
		if err == nil && size.n > most && !last {
			w.mu.Lock()
			frames = w.mark(frames[:0])
			w.err = ErrFull
			w.mu.Unlock()
			_, err = zip.Write(frames)
			last = true
		}
		if err == nil && !last {
			continue
		}
		w.fail("writing", err)
		w.fail("ending", errors.Join(zip.Close(), out.Close()))
		return
	}
}

// mark appends what is pending and the end mark to frames.
func (w *Writer) mark(frames []byte) []byte {
	w.add(&Event{Kind: ended, Recorded: w.begun})
	frames, w.pending = append(frames, w.pending...), nil
	return frames
}

// fail keeps the first error.
func (w *Writer) fail(doing string, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil && err != nil {
		w.err = fmt.Errorf("%s the recording: %w", doing, err)
	}
}

// Err returns why the recording has ended early, nil if it has not. It Is
// ErrFull, ErrBehind or an error of the file.
func (w *Writer) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// Done is closed once nothing is written any more, for whatever reason.
func (w *Writer) Done() <-chan struct{} { return w.done }

// Close ends the recording with a mark that nothing is missing, waits for the
// disk and returns Err.
func (w *Writer) Close() error {
	w.mu.Lock()
	if !w.closing && w.err == nil {
		w.add(&Event{Kind: ended, Recorded: w.begun})
	}
	w.closing = true
	w.work.Signal()
	w.mu.Unlock()
	<-w.done
	return w.Err()
}

// counter counts what passes through.
type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}
