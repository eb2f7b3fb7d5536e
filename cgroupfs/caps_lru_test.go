package cgroupfs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/memagent/memagent/memcg"
)

func TestLRUGenIsUsableOnlyWhenOnAndReadable(t *testing.T) {
	const list = "memcg     1 /\n node     0\n"
	for _, tt := range []struct {
		name   string
		files  []string
		faults []fault
		state  CapState
		seen   string
		err    error
	}{
		{name: "on and readable", files: []string{lruGenEnabled, "0x0007\n", lruGenFile, list}, state: CapYes, seen: "0x0007"},
		{name: "built in and off, where the file exists all the same",
			files: []string{lruGenEnabled, "0x0000\n", lruGenFile, list}, state: CapNo, seen: "switched off"},
		{name: "only its helpers are on", files: []string{lruGenEnabled, "0x0006\n", lruGenFile, list}, state: CapNo, seen: "switched off"},
		{name: "not built in", state: CapNo, seen: lruGenEnabled},
		{name: "debugfs is not mounted", files: []string{lruGenEnabled, "0x0007\n"}, state: CapNo, seen: "debugfs"},
		{name: "locked down", files: []string{lruGenEnabled, "0x0007\n", lruGenFile, list, lockdownFile, "none [integrity] confidentiality\n"},
			state: CapNo, seen: "lockdown: integrity"},
		{name: "not locked down", files: []string{lruGenEnabled, "0x0007\n", lruGenFile, list, lockdownFile, "[none] integrity confidentiality\n"},
			state: CapYes},
		{name: "not to be read", files: []string{lruGenEnabled, "0x0007\n", lruGenFile, list},
			faults: []fault{{op: "open", path: lruGenFile, errno: unix.EPERM}}, state: CapUnknown, seen: lruGenFile, err: memcg.ErrDenied},
		{name: "garbled", files: []string{lruGenEnabled, "yes\n", lruGenFile, list}, state: CapUnknown, err: memcg.ErrInvalid},
	} {
		t.Run(tt.name, func(t *testing.T) {
			root := fixtureCopy(t, "", append(tt.files, "sys/fs/cgroup/cgroup.controllers", "memory\n")...)
			r := ask(t, openHost(t, root, withKernel(withFaults(t, root, tt.faults))), nil)[CapLRUGen]
			r.want(t, tt.state, tt.seen)
			if !errors.Is(r.Err, tt.err) {
				t.Errorf("err = %v, want %v", r.Err, tt.err)
			}
		})
	}
}

func TestTheIDsOfLRUGenAreTriedAgainstInodes(t *testing.T) {
	for _, tt := range []struct {
		name  string
		list  func(inode uint64) string
		state CapState
		seen  string
	}{
		{"inodes", func(inode uint64) string { return fmt.Sprintf("memcg 1 /\n node 0\nmemcg %d /a b\n", inode) }, CapYes, "1 ids"},
		{"private ids", func(uint64) string { return "memcg     1 /\nmemcg    37 /a b\n" }, CapNo, "lists /a b as 37"},
		{"removed cgroups are passed over", func(inode uint64) string { return fmt.Sprintf("memcg 0 /gone\nmemcg %d /a b\n", inode) }, CapYes, ""},
		{"a root alone says nothing", func(uint64) string { return "memcg     1 /\n node     0\n" }, CapUnknown, ""},
		{"a line that is cut off says nothing", func(inode uint64) string { return fmt.Sprintf("memcg %d /a b", inode) }, CapUnknown, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			root := cgroupTree(t, "a b")
			host := openHost(t, root)
			file := filepath.Join(root, lruGenFile)
			if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(tt.list(matched(t, host, "/a b").Inode)), 0o666); err != nil {
				t.Fatal(err)
			}
			ask(t, host, nil)[CapLRUGenInode].want(t, tt.state, tt.seen)
		})
	}
	ask(t, hostOf(t, ""), nil)[CapLRUGenInode].want(t, CapNo, lruGenFile)
}

func TestDAMONIsToldFromWhatIsThere(t *testing.T) {
	const nr, ops = damonAdmin + "/nr_kdamonds", damonAdmin + "/0/contexts/0/avail_operations"
	for _, tt := range []struct {
		name  string
		files []string
		state CapState
		seen  string
	}{
		{"not built in", nil, CapNo, damonAdmin},
		{"a monitor tells", []string{nr, "1\n", ops, "vaddr\nfvaddr\npaddr\n"}, CapYes, "has paddr"},
		{"a monitor tells that it is not there", []string{nr, "1\n", ops, "vaddr\nfvaddr\n"}, CapNo, "vaddr fvaddr"},
		{"a module that needs it tells", []string{nr, "0\n", "sys/module/damon_reclaim/parameters/enabled", "N\n"}, CapYes, "damon_reclaim"},
		{"nothing tells", []string{nr, "0\n"}, CapNotAsked, ""},
		{"damon_stat is in the way", []string{nr, "0\n", "sys/module/damon_stat/parameters/enabled", "Y\n"}, CapYes, "damon_stat is running"},
	} {
		t.Run(tt.name, func(t *testing.T) { ask(t, hostOf(t, "", tt.files...), nil)[CapDAMON].want(t, tt.state, tt.seen) })
	}
}

func FuzzLRUGenCgroup(f *testing.F) {
	f.Add("memcg     1 /\n")
	f.Add("memcg 4294967297 /system.slice/a b: c\n")
	f.Add(" node     0\n")
	f.Add("memcg 1 \n")
	f.Fuzz(func(t *testing.T, line string) {
		id, cg, ok := parseLRUGenCgroup([]byte(line))
		if !ok {
			return
		}
		again, path, ok := parseLRUGenCgroup(fmt.Appendf(nil, "memcg %5d %s\n", id, cg))
		if !ok || again != id || path != cg {
			t.Errorf("%q reads as %d %q, printed again as %d %q, %v", line, id, cg, again, path, ok)
		}
	})
}
