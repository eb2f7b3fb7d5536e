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

// borrower makes the cgroup, without a process in it.
func borrower() (guest.Cgroup, error) {
	c, err := guest.NewCgroup(loanCgroup)
	if err != nil {
		return c, err
	}
	return c, c.Set("memory.high", fmt.Sprint(loanHigh))
}

// borrow starts what needs more memory than the cgroup has.
func borrow(c guest.Cgroup) (*guest.Proc, error) {
	if err := guest.DropCaches(); err != nil {
		return nil, err
	}
	return c.Settle(setUpWithin, "file", "--path", guest.DataDir+"/file", "--loops", "0", "--every", loanEvery)
}
