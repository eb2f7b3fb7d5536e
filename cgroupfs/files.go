package cgroupfs

// file is one file that every sample reads.
type file uint8

const (
	memoryCurrent file = iota
	memoryStat
	memoryNumaStat
	memoryPressure
	memoryEvents
	memoryEventsLocal
	memoryMin
	memoryLow
	memoryHigh
	memoryMax
	swapCurrent
	swapMax
	swapEvents
	cgroupEvents
	cpusetMems
	cpusetMemsEffective

	numFiles
)

var fileNames = [numFiles]string{
	memoryCurrent:       "memory.current",
	memoryStat:          "memory.stat",
	memoryNumaStat:      "memory.numa_stat",
	memoryPressure:      "memory.pressure",
	memoryEvents:        "memory.events",
	memoryEventsLocal:   "memory.events.local",
	memoryMin:           "memory.min",
	memoryLow:           "memory.low",
	memoryHigh:          "memory.high",
	memoryMax:           "memory.max",
	swapCurrent:         "memory.swap.current",
	swapMax:             "memory.swap.max",
	swapEvents:          "memory.swap.events",
	cgroupEvents:        "cgroup.events",
	cpusetMems:          "cpuset.mems",
	cpusetMemsEffective: "cpuset.mems.effective",
}

// vital reports whether a sample is worth nothing without the file.
func (f file) vital() bool { return f == memoryCurrent || f == memoryStat }
