package machine

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Usage is how a QEMU was served by the host's scheduler.
type Usage struct {
	// Ran is the time its threads were on a CPU, Waited the time they were ready and had to wait
	// for one. A guest that waited much is slow for a reason of the host's.
	Ran, Waited time.Duration
}

// Usage is the process's usage so far. Where the kernel does not tell, it is zero.
func (p *Process) Usage() Usage {
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", p.cmd.Process.Pid))
	if err != nil {
		return Usage{}
	}
	var sum Usage
	for _, f := range files {
		raw, err := os.ReadFile(f)
		if err != nil {
			continue // the thread has ended
		}
		u, ok := parseSchedstat(string(raw))
		if ok {
			sum.Ran += u.Ran
			sum.Waited += u.Waited
		}
	}
	return sum
}

// parseSchedstat reads a thread's schedstat: nanoseconds run, nanoseconds waited, and a count.
func parseSchedstat(text string) (Usage, bool) {
	f := strings.Fields(text)
	if len(f) < 2 {
		return Usage{}, false
	}
	ran, err1 := strconv.ParseInt(f[0], 10, 64)
	waited, err2 := strconv.ParseInt(f[1], 10, 64)
	if err1 != nil || err2 != nil {
		return Usage{}, false
	}
	return Usage{Ran: time.Duration(ran), Waited: time.Duration(waited)}, true
}
