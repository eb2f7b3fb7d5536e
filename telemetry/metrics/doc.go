// Package metrics shows a running memagent to Prometheus.
//
// # Names and units
//
// Names begin with memagent_ and end with their unit: _bytes, _seconds,
// _ratio (0..1), _total for what only grows. Whatever is about one cgroup
// begins with memagent_cgroup_ and has the label cgroup, its path below the
// cgroup2 mount.
//
// # Absent is not zero
//
// A figure that could not be read has no series in that scrape. A gauge of 0
// was read as 0.
//
// # Bounds
//
// No label takes values without an end. Series of a cgroup exist while a
// policy matches it and are gone with it; beyond MaxCgroups the rest has no
// series of its own, is counted in the sums over policies all the same, and
// memagent_cgroups_without_series says how many they are. Policies, verdicts,
// rules and bounds come from the config and the program; each label is
// nevertheless held to a number, and what is beyond shows as "other".
//
// # Cost
//
// A record adds to plain numbers and allocates nothing for a cgroup that is
// known. What a scrape needs is made by the scrape, outside the lock that the
// loop takes.
package metrics
