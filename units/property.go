package units

import (
	"fmt"
	"math"
	"strconv"

	"github.com/memagent/memagent/memcg"
)

// properties are the units' names for knobs (systemd.resource-control(5)).
var properties = map[memcg.Knob]string{
	memcg.KnobHigh: "MemoryHigh", memcg.KnobSwapMax: "MemorySwapMax", memcg.KnobMems: "AllowedMemoryNodes",
}

// infinity is no limit, as a property.
const infinity = math.MaxUint64

// toProperty turns a knob's value into a property's: bytes for a limit, a bit for
// each node, lowest first, for nodes.
func toProperty(k memcg.Knob, value string) (any, error) {
	if k == memcg.KnobMems {
		nodes, err := memcg.ParseNodeMask(value)
		if err != nil {
			return nil, fmt.Errorf("%q is no list of nodes: %w", value, memcg.ErrInvalid)
		}
		bits := []byte{}
		for id := range nodes.All {
			for int(id)/8 >= len(bits) {
				bits = append(bits, 0)
			}
			bits[id/8] |= 1 << (id % 8)
		}
		return bits, nil
	}
	if value == "max" {
		return uint64(infinity), nil
	}
	n, err := strconv.ParseUint(value, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("%q is no limit: %w", value, memcg.ErrInvalid)
	}
	return n, nil
}

// fromProperty turns a property into what the knob's file would say.
func fromProperty(k memcg.Knob, value any) (string, error) {
	switch v := value.(type) {
	case uint64:
		if k != memcg.KnobMems {
			return memcg.LimitOf(v).String(), nil
		}
	case []byte:
		if k == memcg.KnobMems {
			var nodes memcg.NodeMask
			for i, b := range v {
				for bit := range 8 {
					if b&(1<<bit) == 0 {
						continue
					}
					id := memcg.NodeID(8*i + bit)
					if id > memcg.MaxNode {
						return "", fmt.Errorf("it names node %d: %w", id, memcg.ErrInvalid)
					}
					nodes.Add(id)
				}
			}
			return nodes.String(), nil
		}
	}
	return "", fmt.Errorf("property %s is a %T: %w", properties[k], value, memcg.ErrInvalid)
}
