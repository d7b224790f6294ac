//go:build linux && !portable

package rawlog

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// withoutBad puts zeros in the place of the bad parts of a mapped file, without touching them:
// they are mapped over.
func withoutBad(_ *os.File, data []byte, bad []Span) ([]byte, error) {
	if len(bad) == 0 {
		return data, nil
	}

	// A page that the cache has lost meanwhile must be read alone: with a bad one beside
	// it, it would fail.
	if err := unix.Madvise(data, unix.MADV_RANDOM); err != nil {
		return nil, err
	}

	for _, span := range bad {
		at := uintptr(addressOf(data)) + uintptr(span.From)
		bytes := uintptr(span.End-span.From+BlockBytes-1) / BlockBytes * BlockBytes
		const flags = unix.MAP_FIXED | unix.MAP_PRIVATE | unix.MAP_ANONYMOUS
		if _, _, errno := unix.Syscall6(unix.SYS_MMAP, at, bytes, unix.PROT_READ, flags, ^uintptr(0), 0); errno != 0 {
			return nil, fmt.Errorf("leave out a part that cannot be read: %w", errno)
		}
	}

	return data, nil
}
