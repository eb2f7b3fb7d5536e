package container

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/memagent/memagent/memcg"
)

// Spec is what a config.json of the OCI runtime spec says that matters here.
type Spec struct {
	// CgroupsPath is linux.cgroupsPath, as it stands there.
	CgroupsPath string
	Annotations map[string]string
	// Swappiness is linux.resources.memory.swappiness: by the runtime spec 0..100,
	// but any number is kept. Runtimes do nothing with it on cgroup v2: runc
	// passes it over, crun refuses to start such a container.
	Swappiness memcg.Field
	// Limit and Reservation are linux.resources.memory.limit and .reservation in
	// bytes; -1 is no limit, and 0 and none given are missing.
	Limit, Reservation memcg.Limit
	// Mems is linux.resources.cpu.mems, empty where it is not given.
	Mems memcg.NodeMask
	// Faults are values that could not be taken, each with its reason. They are
	// left out above.
	Faults []error
}

// document is the part of a config.json that is read. The rest, seccomp filters
// above all, is most of the file and would only cost memory. Numbers are read one
// by one: encoding/json makes 0 of a number that does not fit, and a swappiness
// of 0 is quite another thing than none.
type document struct {
	Annotations map[string]json.RawMessage `json:"annotations"`
	Linux       struct {
		CgroupsPath string `json:"cgroupsPath"`
		Resources   struct {
			Memory struct {
				Swappiness  json.RawMessage `json:"swappiness"`
				Limit       json.RawMessage `json:"limit"`
				Reservation json.RawMessage `json:"reservation"`
			} `json:"memory"`
			CPU struct {
				Mems string `json:"mems"`
			} `json:"cpu"`
		} `json:"resources"`
	} `json:"linux"`
}

// ParseSpec reads a config.json. The error, which is memcg.ErrInvalid, means
// that it is no JSON object, as while it is being written; a value of the wrong
// kind in it is one of Faults.
func ParseSpec(data []byte) (*Spec, error) {
	var d document
	var s Spec
	if err := json.Unmarshal(data, &d); err != nil {
		wrong, ok := errors.AsType[*json.UnmarshalTypeError](err)
		if !ok || wrong.Field == "" {
			return nil, fmt.Errorf("not the JSON of a container's spec (%w): %w", err, memcg.ErrInvalid)
		}
		s.Faults = append(s.Faults, fmt.Errorf("%s is a %s: %w", wrong.Field, wrong.Value, memcg.ErrInvalid))
	}
	s.CgroupsPath = d.Linux.CgroupsPath
	for _, key := range slices.Sorted(maps.Keys(d.Annotations)) {
		s.annotate(key, d.Annotations[key])
	}
	memory := &d.Linux.Resources.Memory
	if v, ok := number[uint64](&s, "memory.swappiness", memory.Swappiness, &s.Swappiness); ok {
		s.Swappiness = memcg.Value(v)
	}
	s.Limit, s.Reservation = s.limit("memory.limit", memory.Limit), s.limit("memory.reservation", memory.Reservation)
	mems, err := memcg.ParseNodeMask(d.Linux.Resources.CPU.Mems)
	if err != nil {
		s.Faults = append(s.Faults, fmt.Errorf("linux.resources.cpu.mems: %w: %w", err, memcg.ErrInvalid))
	}
	s.Mems = mems
	return &s, nil
}

func (s *Spec) annotate(key string, raw json.RawMessage) {
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		if strings.HasPrefix(key, AnnotationPrefix) {
			s.Faults = append(s.Faults, fmt.Errorf("annotation %s is no text: %w", key, memcg.ErrInvalid))
		}
		return
	}
	if s.Annotations == nil {
		s.Annotations = make(map[string]string)
	}
	s.Annotations[key] = text
}

// number reads a number of linux.resources. Where there is none, or null, ok is
// false; where it is not one that fits, it is a fault and why is set to say so.
func number[T int64 | uint64](s *Spec, name string, raw json.RawMessage, why *memcg.Field) (v T, ok bool) {
	if len(raw) == 0 || string(raw) == "null" {
		return 0, false
	}
	if err := json.Unmarshal(raw, &v); err != nil {
		const most = 32 // bytes of what stands there
		s.Faults = append(s.Faults, fmt.Errorf("linux.resources.%s is %.*q: %w", name, most, raw, memcg.ErrInvalid))
		*why = memcg.Absent(memcg.Invalid)
		return 0, false
	}
	return v, true
}

func (s *Spec) limit(name string, raw json.RawMessage) memcg.Limit {
	var why memcg.Field
	switch v, ok := number[int64](s, name, raw, &why); {
	case !ok:
		return memcg.NoLimitFile(why.State())
	case v == 0:
		return memcg.Limit{}
	case v == -1:
		return memcg.Unlimited()
	case v < 0:
		s.Faults = append(s.Faults, fmt.Errorf("linux.resources.%s is %d: %w", name, v, memcg.ErrInvalid))
		return memcg.NoLimitFile(memcg.Invalid)
	default:
		return memcg.LimitOf(uint64(v))
	}
}

// bundleOf reads the state.json of runc, which has the bundle's path among the
// labels; "" where it has none.
func bundleOf(data []byte) (string, error) {
	var state struct {
		Config struct {
			Labels []string `json:"labels"`
		} `json:"config"`
	}
	if err := json.Unmarshal(data, &state); err != nil {
		return "", fmt.Errorf("not the state of runc (%w): %w", err, memcg.ErrInvalid)
	}
	for _, l := range state.Config.Labels {
		if bundle, ok := strings.CutPrefix(l, "bundle="); ok {
			return bundle, nil
		}
	}
	return "", nil
}
