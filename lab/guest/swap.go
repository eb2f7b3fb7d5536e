package guest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// moduleDir is where the initramfs keeps modules.
const moduleDir = "/modules"

// ModulePath is where the guest looks for a module.
func ModulePath(name string) string { return filepath.Join(moduleDir, name+".ko") }

func loadModules(names []string) error {
	for _, n := range names {
		f, err := os.Open(ModulePath(n))
		if err != nil {
			return fmt.Errorf("loading a module: %w", err)
		}
		err = unix.FinitModule(int(f.Fd()), "", 0)
		if cerr := f.Close(); err == nil {
			err = cerr
		}
		if err != nil && !errors.Is(err, unix.EEXIST) { // exists: built in after all
			return fmt.Errorf("loading module %s: %w", n, err)
		}
	}
	return nil
}

// zram is the swap device, always the first.
const (
	zramDevice = "/dev/zram0"
	zramSysfs  = "/sys/block/zram0"
)

// swapOnZram makes a compressed swap device of that many bytes and turns it on.
func swapOnZram(size int64) error {
	if err := Write(filepath.Join(zramSysfs, "disksize"), strconv.FormatInt(size, 10)); err != nil {
		return fmt.Errorf("sizing the swap device: %w", err)
	}
	f, err := os.OpenFile(zramDevice, os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("opening the swap device: %w", err)
	}
	_, err = f.WriteAt(SwapHeader(size, os.Getpagesize()), 0)
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return fmt.Errorf("writing a swap header to %s: %w", zramDevice, err)
	}
	path, err := unix.BytePtrFromString(zramDevice)
	if err != nil {
		return err
	}
	if _, _, errno := unix.Syscall(unix.SYS_SWAPON, uintptr(unsafe.Pointer(path)), 0, 0); errno != 0 {
		return fmt.Errorf("swapon %s: %w", zramDevice, errno)
	}
	return nil
}

// SwapHeader is the first page of a swap device, as mkswap writes it (union swap_header in the
// kernel's include/linux/swap.h): 1 KiB for a boot block, then version, last page and number of
// bad pages as 32-bit numbers, and the signature in the page's last ten bytes.
func SwapHeader(size int64, page int) []byte {
	const bootBlock, version, signature = 1024, 1, "SWAPSPACE2"
	h := make([]byte, page)
	binary.LittleEndian.PutUint32(h[bootBlock:], version)
	binary.LittleEndian.PutUint32(h[bootBlock+4:], uint32(size/int64(page)-1))
	copy(h[page-len(signature):], signature)
	return h
}
