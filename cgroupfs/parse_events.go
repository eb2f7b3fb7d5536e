package cgroupfs

import "github.com/memagent/memagent/memcg"

// parseEvents reads memory.events and memory.events.local: lines "key count".
func parseEvents(b []byte) memcg.Events {
	e := noEvents(memcg.Unsupported)
	for key, value := range keyed(b) {
		switch string(key) {
		case "low":
			e.Low = parseField(value)
		case "high":
			e.High = parseField(value)
		case "max":
			e.Max = parseField(value)
		case "oom":
			e.OOM = parseField(value)
		case "oom_kill":
			e.OOMKill = parseField(value)
		}
	}
	return e
}

func noEvents(why memcg.State) memcg.Events {
	f := memcg.Absent(why)
	return memcg.Events{Low: f, High: f, Max: f, OOM: f, OOMKill: f}
}

// parseSwapEvents reads memory.swap.events: lines "key count".
func parseSwapEvents(b []byte) memcg.SwapEvents {
	e := noSwapEvents(memcg.Unsupported)
	for key, value := range keyed(b) {
		switch string(key) {
		case "high":
			e.High = parseField(value)
		case "max":
			e.Max = parseField(value)
		case "fail":
			e.Fail = parseField(value)
		}
	}
	return e
}

func noSwapEvents(why memcg.State) memcg.SwapEvents {
	f := memcg.Absent(why)
	return memcg.SwapEvents{High: f, Max: f, Fail: f}
}

// parseCgroupEvents reads cgroup.events: lines "populated 0|1" and "frozen
// 0|1", the latter since 5.2.
func parseCgroupEvents(b []byte) (populated, frozen memcg.Field) {
	populated, frozen = memcg.Absent(memcg.Unsupported), memcg.Absent(memcg.Unsupported)
	for key, value := range keyed(b) {
		switch string(key) {
		case "populated":
			populated = parseFlag(value)
		case "frozen":
			frozen = parseFlag(value)
		}
	}
	return populated, frozen
}

func parseFlag(b []byte) memcg.Field {
	f := parseField(b)
	if v, ok := f.Get(); ok && v > 1 {
		return memcg.Absent(memcg.Invalid)
	}
	return f
}
