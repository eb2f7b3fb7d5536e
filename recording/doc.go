// Package recording keeps what a run of memagent took in, so that its decisions
// can be made again: all samples, host samples and ages that the loop read, the
// outcomes that came back, and when. Decisions are not in it; they follow.
//
// # The file
//
// A recording is one gzip stream. Its first line is the Header, as JSON. Behind
// it come frames: a kind, a slot, the length of what follows, and that. A frame
// holds an Event as a list of numbers, of which only those are written that
// differ from the frame before in the same slot, each as the difference; texts
// are numbered, and a frame of its own introduces each. A cgroup has a slot of
// its own, so a sample in which little has moved takes some tens of bytes, and
// gzip halves that.
//
// The stream is flushed about once a second, so a file that was cut off, by
// kill -9 or a full disk, can be read up to there. A checksum in each Stepped
// frame keeps what a failing disk has changed from being taken for samples.
//
// # Versions
//
// Keys of memory.stat are known by name, so a recording from a kernel or a
// memagent with other keys is read for those that both have. A kind of frame
// that this version does not know is skipped and counted. What else changes in
// the layout changes Version, and a file of another version is refused, with
// the name of the program that wrote it.
//
// # Bounds
//
// Writing allocates nothing once every cgroup has been seen, and never waits
// for the disk: a goroutine compresses and writes. Where it falls behind too
// far, or the file has its full size, the recording ends there and says so; the
// loop goes on. What the Writer remembers is bounded however many cgroups come
// and go.
package recording
