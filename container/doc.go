// Package container finds out which container a cgroup belongs to: its id and
// runtime, the names that Kubernetes has for it, and what its OCI spec says of
// memory. It reads the state folders of container runtimes and asks no runtime
// anything: their sockets need rights, their clients need libraries, and a
// runtime that hangs must not take memagent with it.
//
// # From a cgroup to a spec
//
// The path of a cgroup names the container: cri-containerd-ID.scope,
// crio-ID.scope, libpod-ID.scope and docker-ID.scope where systemd makes the
// cgroups, and plain ids or other names where the runtime does (Candidates). A
// runtime keeps the container's bundle, a folder with config.json of the OCI
// runtime spec, in a folder of its own by that id:
//
//	containerd, Docker   /run/containerd/io.containerd.runtime.v2.task/NAMESPACE/ID/config.json
//	CRI-O, podman        /run/containers/storage/overlay-containers/ID/userdata/config.json,
//	                     and the same below /var/lib/containers/storage
//	crun                 /run/crun/ID/config.json, a copy of the bundle's
//	runc                 /run/runc/ID/state.json, which names the bundle
//
// and the same in other places for k3s, k0s, microk8s, and for users below
// /run/user/UID and their homes. Where none of these folders exists there is
// nothing to do, and nothing is done.
//
// # Whom to believe
//
// A name alone proves nothing: whoever may make cgroups may name one after
// somebody else's container. So the spec must say that the cgroup is its own
// (linux.cgroupsPath, see Spec.Owns). Below /user.slice/user-UID.slice only
// folders of that user are looked at, and only files that user owns; everywhere
// else only folders of root. A user can thus speak for the user's own cgroups
// and for no others. Names of Kubernetes are taken only in cgroups of pods, and
// where the spec has the pod's uid it must be the one in the path.
//
// Files are opened inside the root that the host is seen under, whatever
// symlinks say, never waited for, and read up to MaxSpec bytes.
//
// # What goes wrong
//
// A runtime may be about to write: what is not there, cut short or unreadable is
// tried again in later rounds, MaxTries times in all. Nonsense in a spec, such as
// a negative swappiness, costs that value alone. Both are told with the
// description (Faults), so that they are told once. The number of containers that are known at
// a time is bounded by MaxKnown.
package container
