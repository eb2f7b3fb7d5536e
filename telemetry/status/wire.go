package status

import (
	"encoding/json"
	"time"

	"github.com/memagent/memagent/memcg"
	"github.com/memagent/memagent/telemetry"
)

// Version is the version of the answers, part of their path and of each one.
const Version = 1

// Status is the answer to /v1/status.
type Status struct {
	Version int      `json:"version"`
	Agent   Agent    `json:"agent"`
	Host    Host     `json:"host"`
	Cgroups []Cgroup `json:"cgroups"` // by path
	// Predicted is what policies that only observe would do, by their names; absent
	// where everything is acted on.
	Predicted []telemetry.Prediction `json:"predicted,omitempty"`
	Now       time.Time              `json:"now"` // of the answer
}

// Agent is what is known of the running agent.
type Agent struct {
	Version string    `json:"version"`
	PID     int       `json:"pid"`
	Mode    string    `json:"mode"`
	Config  Config    `json:"config"`
	Started time.Time `json:"started"`
	// IntervalMS is the time between two ticks, in milliseconds.
	IntervalMS int64  `json:"interval_ms"`
	Ticks      uint64 `json:"ticks"` // regular ones
	// LastTick is when the last regular tick began; null before the first.
	LastTick   *time.Time `json:"last_tick"`
	LastTickUS int64      `json:"last_tick_us"` // how long it took
	// Trouble is why the last tick decided nothing, "" if it did.
	Trouble   string `json:"trouble,omitempty"`
	InFlight  int    `json:"in_flight"` // requests to the kernel
	Requests  uint64 `json:"requests"`  // handed to the kernel since the start
	Reclaimed uint64 `json:"reclaimed"` // bytes, by counters
	CPUMS     int64  `json:"cpu_ms"`    // used by the agent itself
	PeakRSS   uint64 `json:"peak_rss"`  // bytes
}

// Config is how the config stands.
type Config struct {
	Name     string    `json:"name"` // of the file, or what stands for it
	Sum      string    `json:"sum,omitempty"`
	Policies int       `json:"policies"`
	Since    time.Time `json:"since"` // when what is in force was taken
	// Refused is why what the file says now is not in force, "" if it is.
	Refused string `json:"refused,omitempty"`
}

// Host is what the host has, in bytes; null where it is not known.
type Host struct {
	MemTotal     *uint64 `json:"mem_total"`
	MemAvailable *uint64 `json:"mem_available"`
	SwapTotal    *uint64 `json:"swap_total"`
	SwapFree     *uint64 `json:"swap_free"`
	Nodes        []Node  `json:"nodes,omitempty"`
}

// Node is one node with memory of the host, in bytes.
type Node struct {
	Node     int     `json:"node"`
	MemTotal *uint64 `json:"mem_total"`
	MemFree  *uint64 `json:"mem_free"`
}

// Cgroup is one row: a watched cgroup as it was last seen.
type Cgroup struct {
	Path    string    `json:"path"`
	Name    string    `json:"name"` // its container's name where one is known, else the path; quoted where it is not plain text
	Inode   uint64    `json:"inode"`
	Policy  string    `json:"policy"`
	Mode    string    `json:"mode"`
	Seen    time.Time `json:"seen"` // when it was last looked at
	Verdict string    `json:"verdict"`
	Rule    string    `json:"rule"`
	Error   string    `json:"error,omitempty"` // why it could not be read

	// Bytes.
	Current *uint64 `json:"current"`
	Anon    *uint64 `json:"anon"`
	File    *uint64 `json:"file"`
	Swap    *uint64 `json:"swap"`
	Lent    *uint64 `json:"lent"`
	// Refaults is pages a second that came back after they had been evicted.
	Refaults *float64 `json:"refaults_per_s"`
	// Cost and Pressure are shares of time, 0..1: spent on bringing pages
	// back, and stalled on memory (PSI some).
	Cost     *float64 `json:"refault_cost"`
	Pressure *float64 `json:"pressure"`
	// Absent says of each of the figures above that is null why: missing,
	// unsupported or invalid.
	Absent map[string]string `json:"absent,omitempty"`

	Nodes []NodeUse `json:"nodes,omitempty"`
	Last  *Action   `json:"last_action,omitempty"`
}

// NodeUse is what a cgroup has on one node, in bytes.
type NodeUse struct {
	Node int     `json:"node"`
	Anon *uint64 `json:"anon"`
	File *uint64 `json:"file"`
}

// Action is the last thing that was asked of the kernel, or would have been.
type Action struct {
	Time time.Time `json:"time"`
	Text string    `json:"text"`
	// Want is what was wanted and Took what was taken, in bytes; Took is null
	// where it is not known (yet). Held is why it was not asked of the kernel,
	// "" where it was.
	Want uint64  `json:"want"`
	Took *uint64 `json:"took"`
	Held string  `json:"held,omitempty"`
}

// Detail is the answer to /v1/cgroups/PATH.
type Detail struct {
	Version int       `json:"version"`
	Now     time.Time `json:"now"`
	Cgroup  Cgroup    `json:"cgroup"`
	// Gone is when the cgroup was found to be gone; null while it is there.
	Gone *time.Time `json:"gone"`
	// Explained tells the latest decision in full, a sentence or two each.
	Explained []string `json:"explained"`
	Tick      uint64   `json:"tick"` // of that decision
	// Past is what was decided, oldest first, the latest included.
	Past []Past `json:"past"`
}

// Past is one decision, or a run of decisions that say the same.
type Past struct {
	Since time.Time `json:"since"` // the first of the run
	Until time.Time `json:"until"` // the last
	Times uint64    `json:"times"`
	Text  string    `json:"text"`
	// Record is the last of the run, with the fields of the decision log.
	Record json.RawMessage `json:"record"`
}

// Failure is the body of an answer that is not 200.
type Failure struct {
	Error string   `json:"error"`
	Near  []string `json:"near,omitempty"` // cgroups that may have been meant
}

// number returns the value of a field for JSON, nil where it has none.
func number(f memcg.Field) *uint64 {
	if v, ok := f.Get(); ok {
		return &v
	}
	return nil
}
