package cgroupfs

import (
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/memagent/memagent/memcg"
)

func probeHostPressure(p *prober) finding {
	const file = "proc/pressure/memory"
	b, err := p.fs.readHostFile(file)
	where := p.at(file)
	switch {
	case err == nil:
		return yes(where + ": " + oneLine(b))
	case errors.Is(err, unix.EOPNOTSUPP):
		return no(where + " cannot be read: pressure is compiled in and off")
	case errors.Is(err, memcg.ErrUnsupported):
		return no("no " + where)
	}
	return unknown(where, err)
}

func probeSwap(p *prober) finding {
	areas, err := p.fs.swapAreas()
	where := p.at("proc/swaps")
	switch {
	case errors.Is(err, memcg.ErrUnsupported):
		return no("no " + where + ": the kernel is built without swap")
	case err != nil:
		return unknown(where, err)
	case len(areas) == 0:
		return no(where + " lists none")
	}
	class, err := p.fs.swapClassOf(areas)
	detail := fmt.Sprintf("%s is used first, class %s", areas[0].name, class)
	if err != nil {
		// That there is swap is certain; only its class is not.
		detail += ": " + err.Error()
	}
	return yes(detail)
}

func probeZswap(p *prober) finding {
	return p.onHost(zswapEnabled, func(where string, b []byte) finding {
		if isOn(b) {
			return yes(where + ": " + oneLine(b))
		}
		return no(where + ": " + oneLine(b))
	})
}

// isOn reads a boolean of sysfs, which prints Y, 1 or true by the kind of file.
func isOn(b []byte) bool {
	switch strings.TrimSpace(string(b)) {
	case "Y", "y", "1", "true":
		return true
	}
	return false
}

func probeNUMA(p *prober) finding {
	nodes, err := p.fs.Nodes(nil)
	switch {
	case errors.Is(err, memcg.ErrUnsupported):
		return no("no " + p.at(nodeDir) + ": the kernel is built without NUMA")
	case err != nil:
		return unknown(p.at(nodeDir), err)
	}
	var memoryless, cpuless memcg.NodeMask
	for _, n := range nodes {
		if !n.HasMemory {
			memoryless.Add(n.ID)
		}
		if !n.HasCPU {
			cpuless.Add(n.ID)
		}
	}
	detail := fmt.Sprintf("%d online", len(nodes))
	if !memoryless.Empty() {
		detail += ", without memory: " + memoryless.String()
	}
	if !cpuless.Empty() {
		detail += ", without CPUs: " + cpuless.String()
	}
	if len(nodes)-memoryless.Len() < 2 {
		return no(detail)
	}
	return yes(detail)
}

// demotionEnabled is 'true' or 'false' (demotion_enabled_show of mm/memory-tiers.c).
const demotionEnabled = "sys/kernel/mm/numa/demotion_enabled"

func probeDemotion(p *prober) finding {
	return p.onHost(demotionEnabled, func(where string, b []byte) finding {
		if !isOn(b) {
			return no(where + ": " + oneLine(b))
		}
		return yes(where + ": " + oneLine(b) + "; on hosts with slower memory reclaim moves pages there " +
			"instead of freeing them, on kernels before 7.0 also outside cpuset.mems")
	})
}

func probeNodeReclaim(p *prober) finding {
	online, err := p.fs.nodeList("online")
	switch {
	case errors.Is(err, memcg.ErrUnsupported):
		return no("no " + p.at(nodeDir) + ": the kernel is built without NUMA")
	case err != nil:
		return unknown(p.at(nodeDir), err)
	}
	for id := range online.All {
		file := nodeFile(id, "reclaim")
		found, err := p.fs.hostFileExists(file)
		switch {
		case err != nil:
			return unknown(p.at(file), err)
		case found:
			return yes(p.at(file))
		}
	}
	return no("no reclaim file in " + p.at(nodeDir) + "/node*")
}
