package scenario

import (
	"fmt"

	"github.com/memagent/memagent/lab/guest"
)

// What crash and reload-fight have in common: a cgroup that the agent lends memory to within seconds,
// so that memory.high is not what its operator set.
const (
	loanFile   = 64 * mib
	loanHigh   = 24 * mib
	loanEvery  = "1s"
	loanCgroup = "/app"
)

// borrower makes a cgroup, without a process in it.
func borrower(path string) (guest.Cgroup, error) {
	c, err := guest.NewCgroup(path)
	if err != nil {
		return c, err
	}
	return c, c.Set("memory.high", fmt.Sprint(loanHigh))
}

// borrow starts what needs more memory than the cgroup has. Nothing of the file may be in memory,
// or another cgroup pays for it.
func borrow(c guest.Cgroup, file string) (*guest.Proc, error) {
	return c.Settle(setUpWithin, "file", "--path", guest.DataDir+"/"+file, "--loops", "0", "--every", loanEvery)
}
