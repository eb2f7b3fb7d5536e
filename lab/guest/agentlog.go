package guest

import (
	"encoding/json"
	"time"
)

// Decision is what the agent says about one cgroup in one tick. Only what the lab shows is read;
// anything else in the line is left alone.
type Decision struct {
	// Heard is when the lab read the line, a moment after the agent decided.
	Heard   time.Time `json:"-"`
	Tick    int64     `json:"tick"`
	Cgroup  string    `json:"cgroup"`
	Policy  string    `json:"policy"`
	Mode    string    `json:"mode"`
	Law     string    `json:"law"`
	Verdict string    `json:"verdict"`
	Rule    string    `json:"rule"`
	// Want is what the agent asked for, in bytes, with Swappiness; Held says why it did not ask.
	Want       uint64 `json:"want"`
	Swappiness string `json:"swappiness"`
	Held       string `json:"held"`
	Acted      bool   `json:"acted"`
	Text       string `json:"text"`
	// Outcome is what came of an earlier request, when it came in this tick.
	Outcome *struct {
		// Reclaimed is in bytes; nil when it could not be measured.
		Reclaimed *uint64 `json:"reclaimed"`
		// Demoted is the part of it that was only moved to slower nodes; nil when that is not known.
		Demoted *uint64 `json:"demoted"`
		// SwapOut is the part of it that went to swap, in bytes; nil likewise.
		SwapOut *uint64 `json:"swapout"`
		// TookUS is how long the request took, in microseconds.
		TookUS int64 `json:"took_us"`
	} `json:"outcome,omitempty"`
}

// Summary is the last thing the agent says of itself.
type Summary struct {
	CPUMS          int64 `json:"cpu_ms"`  // milliseconds
	RSSKiB         int64 `json:"rss_kib"` // KiB
	Decisions      int64 `json:"decisions"`
	Actions        int64 `json:"actions"`
	ReclaimedBytes int64 `json:"reclaimed_bytes"`
	Writes         int64 `json:"writes"`
}

// ParseAgentLine reads one line of the agent's output: a decision, a summary, or neither.
func ParseAgentLine(line []byte) (*Decision, *Summary) {
	var kind struct {
		Message string `json:"message"`
	}
	if json.Unmarshal(line, &kind) != nil {
		return nil, nil
	}
	switch kind.Message {
	case "decision":
		var d Decision
		if json.Unmarshal(line, &d) == nil {
			return &d, nil
		}
	case "summary":
		var s Summary
		if json.Unmarshal(line, &s) == nil {
			return nil, &s
		}
	}
	return nil, nil
}
