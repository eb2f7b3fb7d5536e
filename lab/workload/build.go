package workload

import (
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// runBuild works as make does: a number of short processes at a time, one for each unit, spread
// over the nodes in turn. A pass is one unit.
func runBuild(args []string, r *reporter) error {
	fs := flags("build")
	tools := fs.String("tools", "", "file that every unit maps and uses all of, as a compiler's own pages")
	sources := fs.String("sources", "", "file the units read, each the common part at its beginning and a part of its own")
	common, own := size(16<<20), size(8<<20)
	fs.Var(&common, "common", "size of the common part")
	fs.Var(&own, "own", "size of a unit's own part")
	least, most := size(20<<20), size(60<<20)
	fs.Var(&least, "least", "the least memory a unit allocates")
	fs.Var(&most, "most", "the most memory a unit allocates")
	units := fs.Int("units", 0, "number of units")
	jobs := fs.Int("jobs", 1, "units at a time")
	nodes := fs.String("nodes", "", "nodes whose memory the units use in turn, as in 0,1,2,3; empty leaves it to the kernel")
	linger := fs.Bool("linger", false, "stay after the last unit, until SIGTERM")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if *sources == "" || *units < 1 || *jobs < 1 || most < least {
		return errors.New("--sources is missing, --units or --jobs is less than 1, or --most is less than --least")
	}
	turn, err := parseNodes(*nodes)
	if err != nil {
		return err
	}
	r.ready(int64(common) + int64(own)*int64(*units))
	type end struct {
		took time.Duration
		err  error
	}
	ends := make(chan end)
	for started, ended := 0, 0; ended < *units; {
		if started < *units && started-ended < *jobs {
			cmd := unit(started, *units, least, most, turn)
			cmd.Args = append(cmd.Args, "--tools", *tools, "--sources", *sources, "--common", bytesOf(common),
				"--own", bytesOf(own), "--skip", bytesOf(common+size(started)*own))
			started++
			go func() {
				begun := time.Now()
				out, err := cmd.CombinedOutput()
				if err != nil {
					err = fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), err, out)
				}
				ends <- end{time.Since(begun), err}
			}()
			continue
		}
		e := <-ends
		ended++
		if e.err != nil {
			return e.err
		}
		r.pass(e.took, int64(common+own))
		if r.err != nil {
			return r.err
		}
	}
	if *linger {
		select {}
	}
	return nil
}

// unit is the process for the n-th of all units. How much they allocate goes up and down between
// least and most, the same in every run.
func unit(n, all int, least, most size, turn []int) *exec.Cmd {
	const stride = 7 // coprime to most numbers of units, so that neighbours differ
	alloc := least + (most-least)*size(n*stride%all)/size(max(all-1, 1))
	cmd := exec.Command("/proc/self/exe", "workload", "compile", "--alloc", bytesOf(alloc))
	if len(turn) > 0 {
		cmd.Args = append(cmd.Args, "--node", strconv.Itoa(turn[n%len(turn)]))
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd
}

func bytesOf(s size) string { return strconv.FormatInt(int64(s), 10) }

// parseNodes reads node ids with commas between them.
func parseNodes(text string) ([]int, error) {
	if text == "" {
		return nil, nil
	}
	var out []int
	for _, f := range strings.Split(text, ",") {
		n, err := strconv.Atoi(f)
		if err != nil || n < 0 {
			return nil, fmt.Errorf("--nodes %q: %q is no node id", text, f)
		}
		out = append(out, n)
	}
	return out, nil
}
