package cgroupfs

import (
	"errors"

	"github.com/memagent/memagent/memcg"
)

// probeReclaimNodes answers which actuator a request for nodes would be
// carried out with now, and what is against the better one.
func probeReclaimNodes(p *prober) finding {
	if numa := probeNUMA(p); numa.state == CapNo {
		return no("nothing to choose from: " + numa.detail)
	}
	lists := probeLRUGen(p)
	if lists.state == CapYes {
		return yes("through lru_gen, exact: " + lists.detail)
	}
	against := "not through lru_gen (" + lists.detail + ")"
	err := p.damonUsable()
	switch {
	case err == nil && p.fs.damon.allowed:
		return yes("through DAMON, what was not used since the request before, without a balance of anon and file; " + against)
	case err == nil:
		against += "; DAMON could do it, and the configuration does not allow that"
	default:
		against += "; nor through DAMON (" + err.Error() + ")"
	}
	if lists.state == CapUnknown {
		return unknown(against, errors.Join(lists.err, err))
	}
	return no(against)
}

// damonUsable returns nil where a monitor for the nodes' memory could be made
// now. It writes nothing.
func (p *prober) damonUsable() error {
	if err := p.fs.damonFree(); err != nil {
		return err
	}
	if p.fs.layout.Namespaced {
		return &opError{Op: "use", File: p.at(damonAdmin), Kind: memcg.ErrUnsupported, Hint: "only a part of the hierarchy is visible"}
	}
	online, err := p.fs.nodeList("online")
	if err == nil {
		_, err = p.fs.physicalMemory(online)
	}
	return err
}
