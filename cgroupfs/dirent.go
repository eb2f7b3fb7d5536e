package cgroupfs

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/memagent/memagent/memcg"
)

// direntHeader is where the name begins in a struct linux_dirent64
// (include/linux/dirent.h): 8 bytes of inode, 8 of offset, 2 of the entry's
// length, 1 of its type.
const direntHeader = 19

// dirent is one directory entry as getdents64(2) returns it. The name lies in
// the buffer it was read from.
type dirent struct {
	inode uint64
	kind  byte // unix.DT_*
	name  []byte
}

// nextDirent cuts the first entry off b.
func nextDirent(b []byte) (e dirent, rest []byte, err error) {
	if len(b) <= direntHeader {
		return dirent{}, nil, fmt.Errorf("%d bytes at the end of a directory: %w", len(b), memcg.ErrInvalid)
	}
	size := int(binary.NativeEndian.Uint16(b[16:]))
	if size <= direntHeader || size > len(b) {
		return dirent{}, nil, fmt.Errorf("directory entry of %d bytes: %w", size, memcg.ErrInvalid)
	}
	name, _, ended := bytes.Cut(b[direntHeader:size], []byte{0})
	if !ended || len(name) == 0 {
		return dirent{}, nil, fmt.Errorf("directory entry without a name: %w", memcg.ErrInvalid)
	}
	return dirent{inode: binary.NativeEndian.Uint64(b), kind: b[18], name: name}, b[size:], nil
}
