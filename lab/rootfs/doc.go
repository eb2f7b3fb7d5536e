// Package rootfs makes the disk of a guest that is a whole container host: Debian 12 with systemd as
// its init, podman with crun, containerd with runc, and nothing of memagent's.
//
// mmdebstrap installs Debian's packages into a folder, from the archive that apt is configured with
// here, and mke2fs makes a file system of it. That takes minutes, so the image is kept in the cache
// folder, by a name that tells what it is made of: another list of packages is another image.
// Guests never write to it (machine.Disk).
package rootfs
