package journal

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/memagent/memagent/memcg"
)

// The first line of a journal is "memagent-journal VERSION LENGTH SHA256", the
// rest are LENGTH bytes of JSON with that sum. The first two words keep their
// meaning in every version to come.
const (
	magic   = "memagent-journal"
	version = 1
	// maxFile bounds what is read, in bytes: every bound of this package at the
	// same time, with paths of usual length, is 4 MiB.
	maxFile = 16 << 20
)

// contents is what one journal holds.
type contents struct {
	entries map[Key]Entry
	rests   []Cooldown
	boot    string // of the host when it was written
}

// Forms in the file. Names are a promise: a later version must read them.
type fileForm struct {
	Boot      string         `json:"boot"`
	Entries   []entryForm    `json:"entries"`
	Cooldowns []cooldownForm `json:"cooldowns,omitempty"`
}

type entryForm struct {
	Boot       string     `json:"boot"`
	Cgroup     rawPath    `json:"cgroup"`
	Inode      uint64     `json:"inode"`
	Knob       memcg.Knob `json:"knob"`
	Before     string     `json:"before"`
	Wrote      string     `json:"wrote"`
	Earlier    string     `json:"earlier,omitempty"`
	At         time.Time  `json:"at"`
	Why        string     `json:"why,omitempty"`
	Via        string     `json:"via,omitempty"`
	Challenges int        `json:"challenges,omitempty"`
	Challenged time.Time  `json:"challenged,omitzero"`
	Yielded    bool       `json:"yielded,omitempty"`
}

// latest returns the last moment that is spoken of.
func (f *fileForm) latest() (t time.Time) {
	later := func(u time.Time) {
		if u.After(t) {
			t = u
		}
	}
	for _, e := range f.Entries {
		later(e.At)
		later(e.Challenged)
	}
	for _, c := range f.Cooldowns {
		later(c.Until)
	}
	return t
}

type cooldownForm struct {
	Cgroup rawPath   `json:"cgroup"`
	Inode  uint64    `json:"inode"`
	Until  time.Time `json:"until"`
	Length int64     `json:"length_ms"`
	Why    string    `json:"why,omitempty"`
}

// encode returns the file for some contents. Equal contents give equal bytes.
func encode(c contents) ([]byte, error) {
	if n := len(c.entries); n > MaxEntries {
		return nil, fmt.Errorf("%d entries: %w", n, ErrTooMuch)
	}
	if n := len(c.rests); n > MaxCooldowns {
		return nil, fmt.Errorf("%d cool-downs: %w", n, ErrTooMuch)
	}
	f := fileForm{Boot: c.boot, Entries: []entryForm{}}
	for _, e := range sorted(c.entries) {
		f.Entries = append(f.Entries, entryForm{
			Boot: e.Boot, Cgroup: rawPath(e.ID.Path), Inode: e.ID.Inode, Knob: e.Knob,
			Before: e.Before, Wrote: e.Wrote, Earlier: e.Earlier, At: e.At.UTC(), Why: short(e.Why), Via: e.Via,
			Challenges: e.Challenges, Challenged: e.Challenged.UTC(), Yielded: e.Yielded,
		})
	}
	for _, d := range c.rests {
		f.Cooldowns = append(f.Cooldowns, cooldownForm{
			rawPath(d.Cgroup.Path), d.Cgroup.Inode, d.Until.UTC(), d.Length.Milliseconds(), short(d.Why),
		})
	}
	body, err := json.MarshalIndent(f, "", " ")
	if err != nil {
		return nil, err
	}
	file := seal(append(body, '\n'))
	if len(file) > maxFile {
		return nil, fmt.Errorf("%d bytes: %w", len(file), ErrTooMuch)
	}
	return file, nil
}

// seal puts the first line before some content.
func seal(body []byte) []byte {
	return append(fmt.Appendf(nil, "%s %d %d %x\n", magic, version, len(body), sha256.Sum256(body)), body...)
}

// decode reads a file. Errors are ErrNewer, ErrTruncated or ErrCorrupt.
func decode(file []byte) (contents, error) {
	none := contents{entries: map[Key]Entry{}}
	head, body, whole := bytes.Cut(file, []byte{'\n'})
	words := strings.Split(string(head), " ")
	if !whole && len(head) < len(magic)+len(" 1 ") && strings.HasPrefix(magic+" 1 ", string(head)) {
		return none, fmt.Errorf("%w: it ends after %d bytes", ErrTruncated, len(file))
	}
	if len(words) < 2 || words[0] != magic {
		return none, fmt.Errorf("%w: it does not begin with %s and a version", ErrCorrupt, magic)
	}
	var v, length int
	if !number(words[1], &v) || v < 1 {
		return none, fmt.Errorf("%w: %q is no version", ErrCorrupt, words[1])
	}
	if v > version {
		return none, fmt.Errorf("%w: version %d, this one reads up to %d", ErrNewer, v, version)
	}
	if !whole {
		return none, fmt.Errorf("%w: it ends in its first line", ErrTruncated)
	}
	if len(words) != 4 || !number(words[2], &length) {
		return none, fmt.Errorf("%w: its first line is %q", ErrCorrupt, head)
	}
	if len(body) < length {
		return none, fmt.Errorf("%w: %d of %d bytes are there", ErrTruncated, len(body), length)
	}
	if sum := sha256.Sum256(body); len(body) > length || words[3] != hex.EncodeToString(sum[:]) {
		return none, fmt.Errorf("%w: its content does not match its sum", ErrCorrupt)
	}
	c, err := decodeBody(body)
	if err != nil {
		return none, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return c, nil
}

func decodeBody(body []byte) (contents, error) {
	var f fileForm
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(&f); err != nil {
		return contents{}, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return contents{}, errors.New("something follows its content")
	}
	if len(f.Entries) > MaxEntries || len(f.Cooldowns) > MaxCooldowns {
		return contents{}, errors.New("it holds more than it may")
	}
	c := contents{entries: map[Key]Entry{}, boot: f.Boot}
	if t := f.latest(); t.UTC().Year() > 9999 {
		return contents{}, fmt.Errorf("it speaks of %v", t)
	}
	for _, e := range f.Entries {
		key := Key{memcg.ID{Path: string(e.Cgroup), Inode: e.Inode}, e.Knob}
		entry := Entry{
			Key: key, Boot: e.Boot, Before: e.Before, Wrote: e.Wrote, Earlier: e.Earlier, At: e.At, Why: e.Why, Via: e.Via,
			Challenges: e.Challenges, Challenged: e.Challenged, Yielded: e.Yielded,
		}
		if err := entry.check(); err != nil {
			return contents{}, err
		}
		if _, twice := c.entries[key]; twice {
			return contents{}, fmt.Errorf("%v is there twice", key)
		}
		c.entries[key] = entry
	}
	for _, k := range f.Cooldowns {
		id := memcg.ID{Path: string(k.Cgroup), Inode: k.Inode}
		length := time.Duration(min(max(k.Length, -1), maxCooldown.Milliseconds()+1)) * time.Millisecond
		c.rests = append(c.rests, Cooldown{id, k.Until, length, k.Why})
	}
	if err := checkRests(c.rests); err != nil {
		return contents{}, err
	}
	return c, nil
}

// number reads a decimal number as it is written here: no sign, no leading
// zero.
func number(s string, n *int) bool {
	_, err := fmt.Sscanf(s, "%d", n)
	return err == nil && fmt.Sprint(*n) == s && *n >= 0
}

// sorted returns entries in the order of their keys.
func sorted(entries map[Key]Entry) []Entry {
	list := make([]Entry, 0, len(entries))
	for _, e := range entries {
		list = append(list, e)
	}
	slices.SortFunc(list, func(a, b Entry) int {
		if c := strings.Compare(a.ID.Path, b.ID.Path); c != 0 {
			return c
		}
		if a.ID.Inode != b.ID.Inode {
			if a.ID.Inode < b.ID.Inode {
				return -1
			}
			return 1
		}
		return strings.Compare(string(a.Knob), string(b.Knob))
	})
	return list
}
