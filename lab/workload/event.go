// Package workload holds the small programs a guest puts under pressure: each does one thing to
// memory and reports it as JSON lines, so that scenarios compose them.
//
//	memlab workload anon  --size 64MiB --every 200ms    memory that is re-read all the time
//	memlab workload file  --path /data/x --loops 3      a file that is read
//	memlab workload churn --parent /sys/fs/cgroup/x     cgroups that come and go
//	memlab workload build --sources /data/src --units 9 short processes that read and allocate
//
// A workload runs until it is done or is sent SIGTERM.
package workload

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"time"

	"github.com/docker/go-units"
)

// Kinds of event.
const (
	// Ready: everything is allocated and touched once.
	Ready = "ready"
	// Pass: one pass over the memory or the file is over.
	Pass = "pass"
)

// Event is one line of a workload's output.
type Event struct {
	Event string `json:"event"`
	// N counts passes from 1.
	N int `json:"n,omitempty"`
	// MS is how long the pass took, in milliseconds.
	MS float64 `json:"ms,omitempty"`
	// YardstickMS is how long the same work took right after the pass, whatever memory is short: how
	// fast the machine was. 0 where the workload was not asked for it.
	YardstickMS float64 `json:"yardstick_ms,omitempty"`
	// Bytes is the memory or file size the event is about.
	Bytes int64 `json:"bytes,omitempty"`
}

// reporter writes events; the first failure is kept.
type reporter struct {
	enc       *json.Encoder
	n         int
	yardstick *yardstick // nil: not asked for
	err       error
}

func newReporter(w io.Writer) *reporter { return &reporter{enc: json.NewEncoder(w)} }

func (r *reporter) ready(bytes int64) { r.send(Event{Event: Ready, Bytes: bytes}) }

func (r *reporter) pass(took time.Duration, bytes int64) {
	r.n++
	e := Event{Event: Pass, N: r.n, MS: float64(took.Microseconds()) / 1e3, Bytes: bytes}
	if r.yardstick != nil {
		start := time.Now()
		if err := r.yardstick.measure(); err != nil && r.err == nil {
			r.err = err
		}
		e.YardstickMS = float64(time.Since(start).Microseconds()) / 1e3
	}
	r.send(e)
}

func (r *reporter) send(e Event) {
	if err := r.enc.Encode(e); err != nil && r.err == nil {
		r.err = fmt.Errorf("reporting: %w", err)
	}
}

// kind is one workload: its flags, filled in by parse, then run.
type kind struct {
	about string
	run   func(args []string, r *reporter) error
}

var kinds = map[string]kind{
	"anon":    {"anonymous memory, cold or re-touched", runAnon},
	"file":    {"a file, read or mapped, in passes", runFile},
	"hotcold": {"a hot set that is abandoned for another, beside cold memory", runHotCold},
	"zipf":    {"memory that is read at random, some of it far more often", runZipf},
	"churn":   {"cgroups that come and go", runChurn},
	"build":   {"many short processes that read sources, some of them all the same ones", runBuild},
	"compile": {"one such process", runCompile},
}

// ErrUsage is returned for arguments that make no sense.
var ErrUsage = errors.New("usage: workload anon|file|hotcold|zipf|churn|build|compile [flags]")

// Run runs the workload that args name, reporting to w.
func Run(args []string, w io.Writer) error {
	if len(args) == 0 {
		return ErrUsage
	}
	k, ok := kinds[args[0]]
	if !ok {
		return fmt.Errorf("%w: no workload %q", ErrUsage, args[0])
	}
	r := newReporter(w)
	if err := k.run(args[1:], r); err != nil {
		return fmt.Errorf("workload %s: %w", args[0], err)
	}
	return r.err
}

// size is a flag such as 64MiB, in bytes.
type size int64

func (s *size) String() string { return units.BytesSize(float64(*s)) }

// Set implements flag.Value.
func (s *size) Set(text string) error {
	n, err := units.RAMInBytes(text)
	if err != nil {
		return err
	}
	if n < 0 {
		return fmt.Errorf("%q is negative", text)
	}
	*s = size(n)
	return nil
}

func flags(name string) *flag.FlagSet { return flag.NewFlagSet(name, flag.ContinueOnError) }

// pace waits until a pass that began at start may be followed by the next.
func pace(start time.Time, every time.Duration) {
	if left := every - time.Since(start); left > 0 {
		time.Sleep(left)
	}
}
