// Package config reads the YAML file that tells memagent what it may do: the
// schema, its defaults, its checks, and which policy a cgroup falls under. It
// knows no kernel file and starts nothing.
//
// # Strictness
//
// A file is either taken whole or refused whole. Unknown keys, keys given
// twice, values of the wrong kind, without a unit, out of range or in conflict
// with each other are all errors, and all errors of a file are reported in one
// go, each with file, line and column, what was found and what was wanted. The
// one exception is a file that is not YAML: behind the first syntax error
// nothing can be said of the rest.
//
// No file at all ([ErrNoConfig]), a file that cannot be read
// ([ErrUnreadable]) and a bad file ([ErrBadConfig]) are three different errors.
//
// Of YAML, a subset is taken: one document of mappings, lists and one-line
// scalars. Anchors, aliases, merge keys, tags, directives, block text, complex
// keys and tab characters are refused: each of them lets a file mean something
// else than what it shows.
//
// # Units
//
// Sizes are 0 or a number with B, KiB, MiB, GiB or TiB; rates are sizes with
// /s; shares are percentages with the sign; durations are Go's (5s, 1m30s).
// Suffixes that some programs read as powers of ten and some as powers of two
// (M, MB) are refused. Only 0 needs no unit.
//
// # Paths
//
// A policy names cgroups by globs on their path below the cgroup2 mount. A glob
// starts with / and is matched component by component:
//
//   - `*` matches any run of characters within one component, also none;
//   - `?` matches one character;
//   - `[abc]`, `[a-z]`, `[!a-z]` match one character of, or not of, a set; a `]`
//     directly behind the opening is a member;
//   - `**`, which must fill its component, matches any number of components,
//     also none; at the end of the glob, one or more. So `/a/**` is everything
//     below /a but not /a itself, and `/**` is every cgroup but the root, which
//     no glob ever matches.
//
// There is no escape character. A backslash stands for itself, because the
// names that systemd gives to units are full of them: `\x2d` in a glob matches
// the four bytes `\x2d` that the kernel has in the name. In YAML, write such a
// glob in single quotes or without quotes ('/machine.slice/machine-qemu\x2d1*.scope');
// in double quotes YAML itself would turn `\x2d` into a dash, so a backslash
// there is refused. To match one of `*`, `?` or `[` itself, put it in a set: `[*]`.
//
// # Swappiness
//
// cgroup v2 has no swappiness file. What a policy asks for is carried out as an
// argument of the reclaim requests that memagent makes, where the kernel takes
// one; reclaim that the kernel starts by itself keeps using vm.swappiness, which
// memagent never touches. An unset swappiness (`kernel`: pass nothing) and 0
// (never swap) are different policies.
package config
