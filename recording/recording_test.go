package recording

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/memagent/memagent/memcg"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// memory is a file in memory.
type memory struct{ bytes.Buffer }

func (m *memory) Close() error { return nil }

// record returns the bytes of a recording of events.
func record(t testing.TB, events ...*Event) []byte {
	t.Helper()
	var out memory
	w := NewWriter(&out, NewHeader("memagent test", "a test", noon), 0)
	for _, e := range events {
		w.Write(e)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func read(t testing.TB, data []byte) *Reader {
	t.Helper()
	r, err := NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// drain reads to the end and returns how many events there were.
func drain(r *Reader) (n int, err error) {
	var e Event
	for {
		if err := r.Next(&e); err != nil {
			return n, err
		}
		n++
	}
}

func day(steps int) (events []*Event) {
	events = append(events, full(Configured, 0))
	for i := range steps {
		for _, k := range []Kind{Tracked, HostSeen, Looked, Stepped} {
			e := full(k, uint64(i))
			e.At = time.Duration(i) * 5 * time.Second
			events = append(events, e)
		}
	}
	return events
}

func TestARecordingThatWasClosedEndsWithNothingMissing(t *testing.T) {
	r := read(t, record(t, day(3)...))
	if n, err := drain(r); n != 13 || err != io.EOF {
		t.Errorf("%d events, %v", n, err)
	}
	if _, err := drain(r); err != io.EOF {
		t.Errorf("again: %v", err)
	}
	if h := r.Header; h.Program != "memagent test" || !h.Time().Equal(noon) {
		t.Errorf("header %+v", h)
	}
}

func TestARecordingThatIsCutOffAnywhereIsReadAsFarAsItGoes(t *testing.T) {
	data := record(t, day(4)...)
	const whole = 17
	most := 0
	for n := 0; n < len(data); n += 1 + len(data)/150 {
		r, err := NewReader(bytes.NewReader(data[:n]))
		if err != nil {
			if !errors.Is(err, ErrNotRecording) {
				t.Fatalf("%d bytes: %v", n, err)
			}
			continue
		}
		got, err := drain(r)
		if !errors.Is(err, ErrCut) && !(err == io.EOF && got == whole) { // only gzip's own trailer is missing
			t.Fatalf("%d bytes: %d events, %v", n, got, err)
		}
		if got < most {
			t.Fatalf("%d bytes give %d events, fewer gave %d", n, got, most)
		}
		most = got
	}
	if most != whole {
		t.Errorf("at most %d events", most)
	}
}

func TestWhatADiskHasChangedIsNotTakenForSamples(t *testing.T) {
	events := day(2)
	plain := unzip(t, record(t, events...))
	at := bytes.IndexByte(plain, '\n') + 1
	for i := at; i < len(plain); i += 1 + len(plain)/100 {
		broken := bytes.Clone(plain)
		broken[i] ^= 0x10
		r := read(t, zip(broken))
		var e Event
		steps := 0
		for {
			err := r.Next(&e)
			if err == io.EOF {
				t.Fatalf("byte %d: read to the end", i)
			}
			if err != nil {
				break
			}
			if e.Kind == Stepped {
				steps++
			}
		}
		if steps == 2 && i < len(plain)-40 { // the end mark, with its checksum
			t.Fatalf("byte %d of %d: both steps were taken", i, len(plain))
		}
	}
}

func unzip(t testing.TB, data []byte) []byte {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return plain
}

func zip(plain []byte) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	z.Write(plain)
	z.Close()
	return b.Bytes()
}

func TestWhatIsNoRecordingAndWhatIsOfAnotherVersionAreSaid(t *testing.T) {
	good := unzip(t, record(t))
	for _, c := range []struct {
		name string
		data []byte
		want error
		text string
	}{
		{"nothing", nil, ErrNotRecording, ""},
		{"a text", []byte("policies:\n"), ErrNotRecording, ""},
		{"another gzip file", zip([]byte("hello\n")), ErrNotRecording, "header"},
		{"JSON of something else", zip([]byte("{\"format\":\"x\"}\n")), ErrNotRecording, ""},
		{"a first line without end", zip(bytes.Repeat([]byte("x"), mostLine+1)), ErrNotRecording, "too long"},
		{"a later version", zip(bytes.Replace(good, []byte(`"version":2,"program":"memagent test"`), []byte(`"version":9,"program":"memagent 7.0"`), 1)), ErrVersion, "written by memagent 7.0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := NewReader(bytes.NewReader(c.data)); !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
				t.Errorf("got %v, want %v with %q", err, c.want, c.text)
			}
		})
	}
}

func TestAKindThatIsNotKnownIsSkippedAndCounted(t *testing.T) {
	var out memory
	w := NewWriter(&out, NewHeader("p", "h", noon), 0)
	w.Write(full(Configured, 0))
	w.mu.Lock()
	w.frame(23, 5, []byte("of a later version"))
	w.mu.Unlock()
	w.Write(full(Stepped, 0))
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	r := read(t, out.Bytes())
	if n, err := drain(r); n != 2 || err != io.EOF || r.Skipped != 1 {
		t.Errorf("%d events, %v, %d skipped", n, err, r.Skipped)
	}
}

func TestKeysThatOnlyOneSideKnowsAreLeftOut(t *testing.T) {
	h := NewHeader("p", "h", noon)
	h.Stats[1], h.Stats[2] = h.Stats[2], "of_a_later_kernel"
	var out memory
	w := NewWriter(&out, h, 0)
	w.codec.stats[2] = memcg.StatKernel // a figure that the reader does not know
	e := full(Looked, 0)
	w.Write(e)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	var got Event
	if err := read(t, out.Bytes()).Next(&got); err != nil {
		t.Fatal(err)
	}
	for k, want := range map[memcg.Stat]memcg.Field{
		memcg.StatAnon: e.Sample.Stat.Get(memcg.StatAnon), memcg.StatKernel: e.Sample.Stat.Get(memcg.StatKernel), memcg.StatFile: {},
	} {
		if f := got.Sample.Stat.Get(k); f != want {
			t.Errorf("%v is %v, want %v", k, f, want)
		}
	}
}

func TestAFileIsNeverOverwrittenAndIsItsOwnersAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "day")
	w, err := Create(path, NewHeader("p", "h", noon), 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if _, err := Create(path, NewHeader("p", "h", noon), 0); !errors.Is(err, os.ErrExist) || !strings.Contains(err.Error(), "name another file") {
		t.Errorf("a second time: %v", err)
	}
	r, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := drain(r); err != io.EOF {
		t.Error(err)
	}
}

// patience bounds the wait for the goroutine of a writer.
const patience = 20 * time.Second

func eventually(t *testing.T, w *Writer, e *Event, want error) {
	t.Helper()
	for start := time.Now(); w.Err() == nil; {
		w.Write(e)
		if time.Since(start) > patience {
			t.Fatalf("it never became %v", want)
		}
	}
	if err := w.Err(); !errors.Is(err, want) {
		t.Errorf("got %v, want %v", err, want)
	}
}

func TestAFullRecordingEndsWithItsMark(t *testing.T) {
	var out memory
	w := NewWriter(&out, NewHeader("p", "h", noon), 10_000)
	e := full(Stepped, 0)
	for i := uint64(0); w.Err() == nil; i++ {
		e := full(Stepped, i)
		e.At = time.Duration(i) * time.Minute
		w.Write(e)
	}
	if err := w.Close(); !errors.Is(err, ErrFull) {
		t.Errorf("closed with %v", err)
	}
	w.Write(e) // goes nowhere
	n, err := drain(read(t, out.Bytes()))
	if err != io.EOF || n == 0 {
		t.Errorf("%d events, %v", n, err)
	}
}

// stuck is a disk that never answers until it is let go.
type stuck struct{ let chan struct{} }

func (s *stuck) Write(p []byte) (int, error) { <-s.let; return len(p), nil }
func (s *stuck) Close() error                { return nil }

func TestADiskThatIsStuckEndsTheRecordingAndNotTheLoop(t *testing.T) {
	disk := &stuck{make(chan struct{})}
	w := NewWriter(disk, NewHeader("p", "h", noon), 0)
	e := full(Configured, 0)
	e.Config.Text = strings.Repeat("x", 1<<20)
	for i := 0; w.Err() == nil; i++ {
		e.Config.Text = fmt.Sprint(i, e.Config.Text[:1<<20])
		w.Write(e)
		if i > 100 {
			t.Fatal("what waits for the disk has no bound")
		}
	}
	if !errors.Is(w.Err(), ErrBehind) {
		t.Errorf("got %v", w.Err())
	}
	close(disk.let)
	if err := w.Close(); !errors.Is(err, ErrBehind) {
		t.Errorf("closed with %v", err)
	}
}

// broken is a disk that is full.
type broken struct{}

var errNoSpace = errors.New("no space left")

func (broken) Write([]byte) (int, error) { return 0, errNoSpace }
func (broken) Close() error              { return nil }

func TestAnErrorOfTheDiskEndsTheRecordingAndIsTold(t *testing.T) {
	w := NewWriter(broken{}, NewHeader("p", "h", noon), 0)
	eventually(t, w, full(Configured, 0), errNoSpace)
	if err := w.Close(); !errors.Is(err, errNoSpace) {
		t.Errorf("closed with %v", err)
	}
}

func TestWhatIsRememberedIsBoundedHoweverManyCgroupsComeAndGo(t *testing.T) {
	var out memory
	w := NewWriter(&out, NewHeader("p", "h", noon), 0)
	var e Event
	e.Kind, e.Glance = Looked, memcg.Value(1)
	const n = 2 * mostSlots
	for i := range n {
		e.Cgroup = memcg.ID{Path: fmt.Sprint("/", i), Inode: uint64(i)}
		w.Write(&e)
		if len(w.last)+len(w.texts) > mostSlots+2 {
			t.Fatalf("%d slots and %d texts", len(w.last), len(w.texts))
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	r := read(t, out.Bytes())
	for i := range n {
		if err := r.Next(&e); err != nil || e.Cgroup.Inode != uint64(i) || e.Cgroup.Path != fmt.Sprint("/", i) {
			t.Fatalf("event %d: %v, %v", i, e.Cgroup, err)
		}
	}
}

func TestRecordingASampleAllocatesNothing(t *testing.T) {
	var out memory
	w := NewWriter(&out, NewHeader("p", "h", noon), 0)
	e := full(Looked, 0)
	w.mu.Lock() // the disk gets nothing meanwhile
	w.add(e)
	kept := len(w.pending)
	got := testing.AllocsPerRun(1000, func() {
		w.pending = w.pending[:kept]
		e.Sample.Current = memcg.Value(w.begun)
		w.add(e)
	})
	t.Logf("a sample in which one figure moves takes %d bytes before gzip", len(w.pending)-kept)
	w.pending = w.pending[:0]
	w.mu.Unlock()
	if got != 0 {
		t.Errorf("%v allocations", got)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
}

func FuzzReader(f *testing.F) {
	for _, events := range [][]*Event{nil, day(1), day(3)} {
		plain := unzip(f, record(f, events...))
		f.Add(plain[bytes.IndexByte(plain, '\n')+1:])
	}
	f.Add(binary.AppendUvarint([]byte{byte(Looked)}, 40))
	head := unzip(f, record(f))
	head = head[:bytes.IndexByte(head, '\n')+1]
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := newReader(bytes.NewReader(append(bytes.Clone(head), data...)))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := drain(r); err != io.EOF && !errors.Is(err, ErrCut) {
			t.Errorf("ended with %v", err)
		}
	})
}

// A file that was written with another layout must not be read with this one:
// its figures would pass for others.
func TestTheLayoutIsThatOfItsVersion(t *testing.T) {
	if Version != 2 {
		t.Fatal("pin the layout of the new version here")
	}
	h := NewHeader("p", "h", noon)
	for kind, want := range map[Kind]int{
		Configured: 7, Tracked: 9, HostSeen: 60, Looked: 147, Stepped: 205, CameBack: 200, Heard: 5, Described: 45, Rested: 8,
	} {
		texts := map[string]uint64{}
		c := codec{stats: h.keys()[:3], perNode: 2, number: func(s string) uint64 { texts[s] = uint64(len(texts)); return texts[s] }}
		c.event(full(kind, 0))
		if len(c.v) != want {
			t.Errorf("an event of kind %d has %d figures, want %d: a changed layout is another Version", kind, len(c.v), want)
		}
	}
}
