package journal

import (
	"encoding/json"
	"fmt"
	"path"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/memagent/memagent/memcg"
)

// Bounds of what one journal holds, so that it stays small and quick to
// replace: it is written before every new value of a knob.
const (
	// MaxEntries is three knobs on more cgroups than are ever lent to or
	// guarded at the same time.
	MaxEntries = 4096
	// MaxCooldowns bounds what is remembered of cgroups.
	MaxCooldowns = 4096
	// MaxWhy bounds a reason, in bytes; what is longer is cut.
	MaxWhy = 160
	// MaxVia bounds Entry.Via, in bytes.
	MaxVia = 256
)

// Key names one knob of one cgroup.
type Key struct {
	ID   memcg.ID
	Knob memcg.Knob
}

// String returns the cgroup's path and the file, in one word for people.
func (k Key) String() string {
	file := path.Join(k.ID.Path, string(k.Knob))
	if !utf8.ValidString(file) || strings.ContainsFunc(file, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		return fmt.Sprintf("%q", file)
	}
	return file
}

// Entry is one knob that was written here and is to be put back.
type Entry struct {
	Key
	Boot   string // boot id of the host when it was written
	Before string // the operator's value, what is put back
	Wrote  string // ours, on disk BEFORE it is written to the knob
	// Earlier is the value of ours that Wrote replaces, "" when there was none
	// or when cpuset.mems was empty, which no value of ours is: until the knob
	// is written it still holds this one.
	Earlier string
	At      time.Time // when Wrote was decided
	Why     string    // in a few words
	// Via is how it is set and put back beside its file, in the words of Managed;
	// "" is by its file alone.
	Via string

	// Challenges is how often somebody else's value was found in the knob, and
	// Challenged when last; see Rules.
	Challenges int
	Challenged time.Time
	// Yielded: the knob was left to somebody else. There is nothing to undo,
	// and it is not written again.
	Yielded bool
}

// Cooldown is a cgroup that something is not to be tried on for some time, since it
// was in vain. It outlives a restart, or trying would begin anew with each, and ends
// with the host's boot.
type Cooldown struct {
	Cgroup memcg.ID      // or Host
	Until  time.Time     // wall clock
	Length time.Duration // of this cool-down; the next one may be longer
	Why    string        // what is not to be tried
}

// Host stands for the whole host where a Cooldown is not of one cgroup. The kernel
// calls the root of the tree by that path and inode, which nothing is ever tried on.
var Host = memcg.ID{Path: "/", Inode: 1}

// rawPath is a path in JSON. Names of cgroups are bytes (case c19): what is not
// UTF-8 is written as {"bytes": base64} instead of losing it.
type rawPath string

type pathBytes struct {
	Bytes []byte `json:"bytes"`
}

func (p rawPath) MarshalJSON() ([]byte, error) {
	if utf8.ValidString(string(p)) {
		return json.Marshal(string(p))
	}
	return json.Marshal(pathBytes{[]byte(p)})
}

func (p *rawPath) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '"' {
		return json.Unmarshal(b, (*string)(p))
	}
	var raw pathBytes
	if err := json.Unmarshal(b, &raw); err != nil {
		return err
	}
	*p = rawPath(raw.Bytes)
	return nil
}

// check says what is wrong with an entry that was read.
func (e *Entry) check() error {
	switch {
	case !e.Knob.Known():
		return fmt.Errorf("%q is no knob", e.Knob)
	case e.Boot == "":
		return fmt.Errorf("%v has no boot id", e.Key)
	case !Valid(e.Knob, e.Before):
		return fmt.Errorf("%v: %q is no value of it", e.Key, e.Before)
	case !Valid(e.Knob, e.Wrote):
		return fmt.Errorf("%v: %q is no value of it", e.Key, e.Wrote)
	case e.Earlier != "" && !Valid(e.Knob, e.Earlier):
		return fmt.Errorf("%v: %q is no value of it", e.Key, e.Earlier)
	case len(e.Via) > MaxVia:
		return fmt.Errorf("%v was set by way of %d bytes of words", e.Key, len(e.Via))
	case e.Challenges < 0:
		return fmt.Errorf("%v was challenged %d times", e.Key, e.Challenges)
	}
	return checkID(e.ID)
}

func checkID(id memcg.ID) error {
	if id.Path == "" || id.Path[0] != '/' || id.Path == "/" || path.Clean(id.Path) != id.Path || strings.ContainsRune(id.Path, 0) {
		return fmt.Errorf("%q is not the path of a cgroup", id.Path)
	}
	if id.Inode == 0 {
		return fmt.Errorf("%s has no inode", id.Path)
	}
	return nil
}

// short cuts a reason to MaxWhy bytes, between two characters.
func short(why string) string {
	if why = strings.ToValidUTF8(why, "?"); len(why) <= MaxWhy {
		return why
	}
	return strings.ToValidUTF8(why[:MaxWhy], "")
}
