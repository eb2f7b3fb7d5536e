package telemetry

import (
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/memagent/memagent/memcg"
)

func (r *Record) gone() bool { return errors.Is(r.Err, memcg.ErrGone) }

// Name renders a cgroup path for people: as it is where it is plain, quoted
// where it has blanks, control characters or bytes that are not UTF-8, which
// the kernel allows in names.
func Name(path string) string {
	for _, c := range path {
		if c == ' ' || !strconv.IsPrint(c) || c == '\uFFFD' {
			return strconv.Quote(path)
		}
	}
	return path
}

// Terminal prints decisions for a person who watches: a line where something
// was wanted, done or learned, and nothing for a cgroup that goes on as
// before, so that hundreds of cgroups stay readable.
type Terminal struct {
	W io.Writer

	verdicts map[memcg.ID]string
}

// Record prints r when it says something new.
func (t *Terminal) Record(r *Record) {
	if t.verdicts == nil {
		t.verdicts = make(map[memcg.ID]string)
	}
	if r.gone() {
		delete(t.verdicts, r.Cgroup)
	}
	news := r.Err != nil || r.Want > 0 || r.Done != nil || len(r.Settings) > 0 || t.verdicts[r.Cgroup] != r.Verdict
	if !news {
		return
	}
	if r.Err == nil {
		t.verdicts[r.Cgroup] = r.Verdict
	}
	fmt.Fprintf(t.W, "%s %s  %s\n", r.Time.Format("15:04:05"), r.Label(), r.Describe())
}
