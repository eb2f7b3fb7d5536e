package config

// HostDAMON says whether memagent may use the kernel's DAMON. A host has one,
// and while memagent has it nobody else can: the zero HostDAMON is never.
type HostDAMON uint8

// What can be said of it.
const (
	DAMONNever HostDAMON = iota
	DAMONAllow
)

var hostDAMONNames = []string{"never", "allow"}

// String returns the word that the file has.
func (d HostDAMON) String() string { return word(hostDAMONNames, int(d)) }
