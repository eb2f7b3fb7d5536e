package cgroupfs

import "github.com/memagent/memagent/memcg"

// Current reads memory.current of one cgroup, in bytes, and nothing else: no
// counter is flushed for it. The error is memcg.ErrGone when the cgroup is no
// longer there, memcg.ErrUnsupported when it has no such file,
// memcg.ErrDenied or memcg.ErrInvalid as for Sample. It allocates nothing
// once the file is open.
func (fs *FS) Current(id memcg.ID) (uint64, error) {
	c, err := fs.acquire(id)
	if err != nil {
		return 0, err
	}
	defer fs.done(c)
	buf := fs.scratch.get()
	defer fs.scratch.put(buf)
	r := reading{fs: fs, c: c, buf: buf}
	v := r.value(memoryCurrent)
	if n, ok := v.Get(); ok {
		return n, nil
	}
	if r.gone {
		fs.drop(c)
		return 0, &opError{Op: "read", File: fs.file(id.Path, ""), Kind: memcg.ErrGone}
	}
	if r.err != nil {
		return 0, r.err
	}
	kind := memcg.ErrInvalid
	if v.State() == memcg.Unsupported {
		kind = memcg.ErrUnsupported
	}
	return 0, &opError{Op: "read", File: fs.file(id.Path, fileNames[memoryCurrent]), Kind: kind}
}
