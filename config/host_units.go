package config

// HostUnits is how limits of cgroups that are units of systemd are set.
type HostUnits uint8

// Ways to set them.
const (
	// UnitsByFile writes the cgroup's file, as of every other cgroup. systemd
	// writes its own value over it when it is reloaded.
	UnitsByFile HostUnits = iota
	// UnitsByProperty sets the property of the unit until the next boot, which a
	// reload keeps. Where systemd does not answer, nothing is set.
	UnitsByProperty
)

var hostUnitsNames = []string{"file", "property"}

// String returns the way as the file has it.
func (u HostUnits) String() string { return word(hostUnitsNames, int(u)) }
