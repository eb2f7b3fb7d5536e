package telemetry

import "time"

// ConfigState is how the config of a running agent stands.
type ConfigState struct {
	Name     string // of the file, or what stands for it
	Sum      string // of what is in force, "" where there is no file
	Policies int
	Since    time.Time // when what is in force was taken
	// Err is why what the file says now is not in force; nil: it is.
	Err            error
	Taken, Refused uint64 // times that something new was read
}
