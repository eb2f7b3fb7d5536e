package lab

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// queue is who holds a lock and who waits for it, by process ids.
type queue struct {
	holders []int
	waiters []int // in the order the kernel lists them
}

// parseQueue finds the locks that flock(2) made on one file in the text of /proc/locks: lines such
// as "1: FLOCK  ADVISORY  WRITE 20727 fe:00:9977959 0 EOF", and with "->" after the number for
// whoever waits. The device is given in hexadecimal. A process of another namespace has the id 0 or
// -1 there and is left out.
func parseQueue(locks string, major, minor uint32, inode uint64) queue {
	var q queue
	file := fmt.Sprintf("%02x:%02x:%d", major, minor, inode)
	for line := range strings.Lines(locks) {
		f := strings.Fields(line)
		if len(f) < 2 {
			continue
		}
		waits := f[1] == "->"
		if f = f[1:]; waits {
			f = f[1:]
		}
		if len(f) < 5 || f[0] != "FLOCK" || f[4] != file {
			continue
		}
		pid, err := strconv.Atoi(f[3])
		switch {
		case err != nil || pid <= 0:
		case waits:
			q.waiters = append(q.waiters, pid)
		default:
			q.holders = append(q.holders, pid)
		}
	}
	return q
}

// waitingFor says for whom this process waits, as far as the kernel tells.
func waitingFor(path string, self int) string {
	var q queue
	var st unix.Stat_t
	locks, err := os.ReadFile("/proc/locks")
	if err == nil && unix.Stat(path, &st) == nil {
		q = parseQueue(string(locks), unix.Major(st.Dev), unix.Minor(st.Dev), st.Ino)
	}
	return q.describe(path, self, commandLine)
}

// describe puts the queue into words, as seen by the process self.
func (q queue) describe(path string, self int, name func(pid int) string) string {
	who := "another process"
	if len(q.holders) > 0 {
		who = name(q.holders[0])
	}
	text := fmt.Sprintf("%s waits for the guest of %s to end (lock %s)", name(self), who, path)
	others := slices.DeleteFunc(slices.Clone(q.waiters), func(pid int) bool { return pid == self })
	if len(others) > 0 {
		names := make([]string, len(others))
		for i, pid := range others {
			names[i] = name(pid)
		}
		text += "; so do " + strings.Join(names, ", ")
	}
	return text
}

// commandLine names a process by what it was started as, without folders.
func commandLine(pid int) string {
	const long = 6 // words
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	words := strings.Split(strings.TrimRight(string(raw), "\x00"), "\x00")
	if err != nil || words[0] == "" {
		return fmt.Sprintf("process %d", pid)
	}
	words[0] = filepath.Base(words[0])
	if len(words) > long {
		words = append(words[:long:long], "...")
	}
	return fmt.Sprintf("%q (process %d)", strings.Join(words, " "), pid)
}
