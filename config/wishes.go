package config

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/memagent/memagent/memcg"
)

// Annotations by which a container asks for itself. Of these, AnnotationPolicy
// is for match alone: it names a policy by what its selectors say.
const (
	AnnotationPolicy     = AnnotationPrefix + "policy"
	AnnotationObserve    = AnnotationPrefix + "observe"    // "true": write nothing for it
	AnnotationSqueeze    = AnnotationPrefix + "squeeze"    // "off": take nothing that is only idle
	AnnotationLend       = AnnotationPrefix + "lend"       // "false": never raise its memory.high
	AnnotationSwappiness = AnnotationPrefix + "swappiness" // "0".."200"
)

// MaxWish is the highest swappiness that a container can ask for: anon first.
// That anon alone goes is the operator's to say.
const MaxWish = memcg.SwappinessMax - 1

// Wishes is what a container asks for itself. The zero Wishes is nothing.
type Wishes struct {
	Observe, NoSqueeze, NoLend bool
	// Swappiness is what its annotation asks for and SpecSwappiness what its
	// spec has, each 0..MaxWish, or missing.
	Swappiness, SpecSwappiness memcg.Field
}

// Wishes reads what a container asks for from its annotations, of which those
// without AnnotationPrefix are passed over, and from the swappiness of its
// spec. What cannot be taken is left out, with an error each that says why,
// sorted by key; the rest holds all the same.
func (c *Config) Wishes(annotations map[string]string, spec memcg.Field) (w Wishes, faults []error) {
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		if !strings.HasPrefix(key, AnnotationPrefix) {
			continue
		}
		if err := w.take(key, annotations[key]); err != nil && !(errors.Is(err, ErrUnknownKey) && c.selectsBy(key)) {
			faults = append(faults, err)
		}
	}
	if policy, ok := annotations[AnnotationPolicy]; ok && !c.selects(AnnotationPolicy, policy) {
		faults = append(faults, fmt.Errorf("annotation %s: %w", AnnotationPolicy, faultf(ErrValue, "no policy is matched by %s", quote(policy))))
	}
	switch v, ok := spec.Get(); {
	case !ok:
	case v > MaxWish:
		faults = append(faults, fmt.Errorf("linux.resources.memory.swappiness: %w", faultf(ErrValue, "%d is above %d", v, MaxWish)))
	default:
		w.SpecSwappiness = spec
	}
	return w, faults
}

func (w *Wishes) take(key, text string) error {
	one := func(want string, v *bool) error {
		if text != want {
			return fmt.Errorf("annotation %s: %w", key, faultf(ErrValue, "%s is not %s, the only thing to ask for", quote(text), quote(want)))
		}
		*v = true
		return nil
	}
	switch key {
	case AnnotationPolicy:
		return nil
	case AnnotationObserve:
		return one("true", &w.Observe)
	case AnnotationSqueeze:
		return one("off", &w.NoSqueeze)
	case AnnotationLend:
		return one("false", &w.NoLend)
	case AnnotationSwappiness:
		v, err := strconv.ParseUint(text, 10, 64)
		if err != nil || v > MaxWish || strconv.FormatUint(v, 10) != text {
			return fmt.Errorf("annotation %s: %w", key, faultf(ErrValue, "%s is not a whole number of 0..%d", quote(text), MaxWish))
		}
		w.Swappiness = memcg.Value(v)
		return nil
	}
	fix := ""
	if near := nearest(key, []string{AnnotationPolicy, AnnotationObserve, AnnotationSqueeze, AnnotationLend, AnnotationSwappiness}); near != "" {
		fix = "; did you mean " + near + "?"
	}
	return fmt.Errorf("annotation %w%s", faultf(ErrUnknownKey, "%s is not known", quote(key)), fix)
}

// selectsBy reports whether a selector looks at an annotation.
func (c *Config) selectsBy(key string) bool {
	return c.anySelector(func(a Annotation) bool { return a.Key == key })
}

// selects reports whether a selector wants an annotation to be so.
func (c *Config) selects(key, value string) bool {
	return c.anySelector(func(a Annotation) bool { return a.Key == key && a.Value == value })
}

func (c *Config) anySelector(ok func(Annotation) bool) bool {
	for i := range c.Policies {
		for j := range c.Policies[i].Match {
			if slices.ContainsFunc(c.Policies[i].Match[j].Annotations, ok) {
				return true
			}
		}
	}
	return false
}

// Grant returns the policy for one container: p with those wishes that p lets it
// have, p itself where that changes nothing. A wish can only take away from what
// memagent may do, or choose a swappiness within bounds; what p forbids, no wish
// allows. denied says of each wish that is not granted, or not in full, why.
func (p *Policy) Grant(w Wishes) (granted *Policy, denied []string) {
	out, changed := *p, false
	if p.Containers.Annotations {
		changed = out.refrain(w)
	} else if w.Observe || w.NoSqueeze || w.NoLend || w.Swappiness.Known() {
		denied = append(denied, "policy "+p.Name+" heeds no annotations")
	}
	switch {
	case w.Swappiness.Known() && p.Containers.Annotations:
		changed = out.choose(w.Swappiness, &denied) || changed
	case !w.SpecSwappiness.Known():
	case !p.Containers.Swappiness:
		denied = append(denied, "policy "+p.Name+" heeds no swappiness of a spec")
	default:
		changed = out.choose(w.SpecSwappiness, &denied) || changed
	}
	if !changed {
		return p, denied
	}
	return &out, denied
}

// refrain takes away what a container does not want done.
func (p *Policy) refrain(w Wishes) (changed bool) {
	if w.Observe && !p.Observe {
		p.Observe, changed = true, true
	}
	if w.NoSqueeze && !p.Squeeze.Off {
		p.Squeeze.Off, changed = true, true
	}
	if w.NoLend && p.High.Lend {
		p.High, changed = High{}, true
	}
	return changed
}

// choose sets the swappiness that is asked for, within the policy's bounds.
func (p *Policy) choose(wish memcg.Field, denied *[]string) (changed bool) {
	v, _ := wish.Get()
	asked := int(min(v, MaxWish))
	got := asked
	switch p.Swappiness.Kind {
	case SwappinessFixed:
		if p.Swappiness.Value != asked {
			*denied = append(*denied, fmt.Sprintf("swappiness %d: policy %s has it fixed at %v", asked, p.Name, p.Swappiness))
		}
		return false
	case SwappinessAuto:
		got = max(p.Swappiness.Min, min(asked, p.Swappiness.Max))
	}
	if got != asked {
		*denied = append(*denied, fmt.Sprintf("swappiness %d: policy %s allows %d..%d, so it is %d", asked, p.Name, p.Swappiness.Min, p.Swappiness.Max, got))
	}
	p.Swappiness = FixedSwappiness(got)
	return true
}

// String returns what is asked for in words for people, "" for nothing.
func (w Wishes) String() string {
	var out []string
	if w.Observe {
		out = append(out, "being observed only")
	}
	if w.NoSqueeze {
		out = append(out, "no squeeze")
	}
	if w.NoLend {
		out = append(out, "no lending")
	}
	switch a, s := w.Swappiness, w.SpecSwappiness; {
	case a.Known():
		out = append(out, "swappiness "+a.String())
	case s.Known():
		out = append(out, "swappiness "+s.String())
	}
	return strings.Join(out, ", ")
}
