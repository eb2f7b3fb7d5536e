package container

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/memagent/memagent/memcg"
)

const (
	// MaxTries is how often a container is looked up whose spec is not there or
	// cannot be read: a runtime may just be writing it. A round is made when
	// cgroups come or go, and every 30 s.
	MaxTries = 5
	// MaxKnown bounds how many cgroups are remembered, of about 1 KiB each. A
	// host has some hundred containers, the largest some thousand.
	MaxKnown = 16384
)

// Catalog knows the containers of a host. It is for one goroutine at a time.
type Catalog struct {
	root *root

	system []folder
	users  map[string][]folder // by uid, of this round
	known  map[memcg.ID]*entry
	own    map[string]*entry // by the path of a container's own cgroup
	pods   map[string]Pod    // by uid
	full   bool              // MaxKnown was told of
	// missing has the prefixes for which it was told that no folder has such a
	// container: their runtime keeps its state elsewhere, which is said once.
	missing map[string]bool
}

// entry is what one cgroup came to.
type entry struct {
	d       Description
	tries   int
	settled bool
}

// Open returns a catalog of the host whose "/" is seen at path, as cgroupfs.Open
// takes it.
func Open(path string) (*Catalog, error) {
	r, err := openRoot(path)
	if err != nil {
		return nil, err
	}
	c := &Catalog{
		root: r, known: make(map[memcg.ID]*entry), own: make(map[string]*entry), pods: make(map[string]Pod), missing: make(map[string]bool),
	}
	c.Round(nil, false)
	return c, nil
}

// Close closes the host's root. The catalog must not be used afterwards.
func (c *Catalog) Close() { c.root.close() }

// Round begins a round of questions: it looks which runtimes there are and, where
// all is every cgroup of the host, forgets the others.
func (c *Catalog) Round(all []memcg.ID, complete bool) {
	c.system, c.users = c.root.systemFolders(), make(map[string][]folder)
	if !complete || len(c.known) == 0 {
		return
	}
	here := make(map[memcg.ID]bool, len(all))
	for _, id := range all {
		here[id] = true
	}
	pods := make(map[string]Pod, len(c.pods))
	for id, e := range c.known {
		if !here[id] {
			delete(c.known, id)
			if c.own[id.Path] == e {
				delete(c.own, id.Path)
			}
			continue
		}
		if uid := e.d.Pod.UID; uid != "" && c.pods[uid] != (Pod{}) {
			pods[uid] = c.pods[uid]
		}
	}
	c.pods, c.full = pods, false
}

// Describe returns what is known of the container of a cgroup. settled tells
// that no more will be: else it is worth asking again in the next round, at most
// MaxTries times. Why it is not known better is among the Faults then. Parents are to be asked about before their children. What is
// settled costs no look at a file.
func (c *Catalog) Describe(id memcg.ID) (d Description, settled bool) {
	if e := c.known[id]; e != nil && e.settled {
		return e.d, true
	}
	uid, pod := podOf(id.Path)
	candidates := Candidates(id.Path)
	if uid == "" && len(candidates) == 0 {
		return Description{}, true
	}
	folders := c.foldersFor(userOf(id.Path))
	if uid == "" && len(folders) == 0 && !candidates[0].Certain {
		return Description{}, true // no runtime is here, and nothing says that it should be
	}
	e := c.known[id]
	if e == nil {
		if len(c.known) >= MaxKnown {
			return c.overflow(), true
		}
		e = &entry{}
		c.known[id] = e
	}
	e.tries++
	if id.Path == pod {
		c.describePod(e, uid)
	} else {
		c.describe(e, uid, candidates, folders)
	}
	return e.d, e.settled
}

// overflow describes a cgroup beyond MaxKnown: nothing is known, which the first
// such description says.
func (c *Catalog) overflow() (d Description) {
	if !c.full {
		c.full = true
		d.Faults = []error{fmt.Errorf("more than %d cgroups of containers: this one and others stay unnamed, and nothing of their specs is heeded", MaxKnown)}
	}
	return d
}

// describePod names a pod after its containers, which come after it.
func (c *Catalog) describePod(e *entry, uid string) {
	e.d.Pod = Pod{UID: uid}
	if pod, ok := c.pods[uid]; ok {
		e.d.Pod = pod
	}
	e.settled = e.d.Pod.Name != "" || e.tries >= MaxTries
}

func (c *Catalog) describe(e *entry, uid string, candidates []Candidate, folders []folder) {
	var trouble error
	for _, cand := range candidates {
		if outer := c.own[cand.Path]; cand.Inner != "" && outer != nil && outer.settled && outer.d.ID == cand.ID {
			e.d, e.settled = outer.d, true // it is inside of one that is known
			if e.d.Inner = cand.Inner; cand.Inner != Payload {
				e.d.Faults = nil // told of the container itself
			}
			return
		}
		spec, runtime, err := c.find(cand, folders)
		if err != nil {
			trouble = errors.Join(trouble, err)
			continue
		}
		if spec == nil {
			continue
		}
		e.d = Description{ID: cand.ID, Runtime: runtime, Inner: cand.Inner, Pod: Pod{UID: uid}}
		e.d.take(spec)
		if e.d.Pod.Name != "" {
			c.pods[uid] = e.d.Pod
		}
		c.settle(e, cand)
		return
	}
	e.d = byPath(uid, candidates)
	if e.tries < MaxTries {
		return
	}
	e.settled = true
	if e.d.ID == "" {
		return // it was never certain to be one
	}
	c.settle(e, candidates[0])
	if prefix := candidates[0].Prefix; trouble == nil && !c.missing[prefix] {
		c.missing[prefix] = true
		trouble = fmt.Errorf("none of the state folders of the runtimes that were found has container %s, and the same may hold for others of its kind: %w", e.d.ID, fs.ErrNotExist)
	}
	if trouble != nil {
		e.d.Faults = append(e.d.Faults, fmt.Errorf("looked up %d times: %w", e.tries, trouble))
	}
}

func (c *Catalog) settle(e *entry, cand Candidate) {
	e.settled = true
	if cand.Inner == "" && e.d.ID != "" {
		c.own[cand.Path] = e
	}
}

// byPath describes a container by the path of its cgroup alone.
func byPath(uid string, candidates []Candidate) Description {
	d := Description{Pod: Pod{UID: uid}}
	if len(candidates) > 0 && candidates[0].Certain {
		d.ID, d.Runtime, d.Inner = candidates[0].ID, byPrefix[candidates[0].Prefix], candidates[0].Inner
	}
	return d
}

// find looks a container up in all folders. The spec is nil where none has one
// of a container whose cgroup this is; an error means that one may.
func (c *Catalog) find(cand Candidate, folders []folder) (*Spec, string, error) {
	var trouble error
	owner := userOf(cand.Path)
	for _, f := range folders {
		spec, err := c.root.spec(f, cand.ID, owner)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			trouble = errors.Join(trouble, err)
		case spec.Owns(cand):
			return spec, runtimeOf(f, cand), nil
		case cand.Certain:
			trouble = errors.Join(trouble, fmt.Errorf("%s/%s: its linux.cgroupsPath %q is another cgroup: %w", f.path, cand.ID, spec.CgroupsPath, memcg.ErrInvalid))
		}
	}
	return nil, "", trouble
}

func runtimeOf(f folder, cand Candidate) string {
	if f.runtime != "" {
		return f.runtime
	}
	if r := byPrefix[cand.Prefix]; r == CRIO {
		return r
	}
	return Podman
}

// foldersFor returns the folders that may speak for a user's cgroups, or, where
// uid is "", for the system's.
func (c *Catalog) foldersFor(uid string) []folder {
	if uid == "" {
		return c.system
	}
	list, ok := c.users[uid]
	if !ok {
		list = c.root.userFolders(uid)
		c.users[uid] = list
	}
	return list
}

// at says which file an error is about.
func at(file string, err error) error { return fmt.Errorf("%s: %w", file, err) }
