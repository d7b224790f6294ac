package spool

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"promptspool/spool/rawlog"
)

// logs are the two files that a generation is written to: Badger's value log and its write-ahead log. Badger writes them through
// mappings; when it syncs those itself, the kernel takes every page apart from the mapping, with an interrupt of all processors for
// each. So Badger is told not to sync, and this does it, after it gave up the mapping as a whole. Not safe for concurrent use.
type logs struct {
	files    []*os.File // the value log, the write-ahead log
	mappings []mapping
}

// mapping is where a file lies in this process's memory.
type mapping struct{ at, bytes uintptr }

// openLogs opens the logs of a generation that is open for writing in dir.
func openLogs(dir string) (logs, error) {
	var l logs
	for _, suffix := range []string{".vlog", ".mem"} {
		paths, err := filesBySuffix(dir, suffix)
		if err == nil && len(paths) != 1 {
			err = fmt.Errorf("%d files *%s in a new generation", len(paths), suffix)
		}
		if err != nil {
			return l, errors.Join(err, l.close())
		}
		file, err := os.OpenFile(paths[0], os.O_RDWR, 0)
		if err != nil {
			return l, errors.Join(err, l.close())
		}
		l.files = append(l.files, file)
	}
	l.mappings = mappingsOf(l.files)
	readNoneAhead(l.mappings)
	return l, nil
}

// sync returns when all that Badger has written is on the disk: the value log first, so that what the write-ahead log names has a
// frame. Badger must not close the generation meanwhile.
func (l logs) sync() error {
	if unsafeNoSync {
		return nil
	}
	releasePages(l.mappings)
	for _, file := range l.files {
		if err := syncData(file); err != nil {
			return err
		}
	}
	return nil
}

// forget takes the events from this sequence on out of the write-ahead log, which follow no others, as far as the file can still be
// written. Their frames could not be synced, nobody was told that they are kept, and the next start shall not miss them.
func (l logs) forget(seq uint64) {
	wal := l.files[1]
	var at int64 = rawlog.HeaderBytes
	err := rawlog.Map(wal.Name(), func(data []byte, _ []rawlog.Span) error {
		for e := range rawlog.Entries(data) {
			if k, ok := decodeEventKey(e.Key); ok && k.seq >= seq {
				break
			}
			at = int64(e.End)
		}
		return nil
	})
	if err == nil {
		_, _ = wal.WriteAt(make([]byte, rawlog.HeaderBytes), at)
	}
}

func syncData(file *os.File) error {
	if err := unix.Fdatasync(int(file.Fd())); err != nil {
		return fmt.Errorf("cannot sync %s: %w", pathOf(file), err)
	}
	return nil
}

// pathOf is where an open file lies now.
func pathOf(file *os.File) string {
	path, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", file.Fd()))
	if err != nil {
		return file.Name()
	}
	return path
}

func (l logs) close() error {
	var errs []error
	for _, file := range l.files {
		errs = append(errs, file.Close())
	}
	return errors.Join(errs...)
}

// releasePages takes the pages of shared mappings of files out of this process, which costs no data: they stay in the kernel's cache,
// as dirty as they are. So they do not count as ours, and the kernel need not take them away one by one when it writes them.
func releasePages(mappings []mapping) {
	for _, m := range mappings {
		_, _, _ = unix.Syscall(unix.SYS_MADVISE, m.at, m.bytes, unix.MADV_DONTNEED)
	}
}

// readNoneAhead keeps the kernel from filling the cache with zeros around each page that is written first: as much as it reads ahead
// elsewhere, which is 8 MiB on some machines and then takes it 20 ms.
func readNoneAhead(mappings []mapping) {
	for _, m := range mappings {
		_, _, _ = unix.Syscall(unix.SYS_MADVISE, m.at, m.bytes, unix.MADV_RANDOM)
	}
}

// mappingsOf finds where this process has mapped files, shared. What it does not find is not released, which only costs time.
func mappingsOf(files []*os.File) []mapping {
	text, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return nil
	}
	var mappings []mapping
	for _, file := range files {
		var st unix.Stat_t
		if unix.Fstat(int(file.Fd()), &st) != nil {
			continue
		}
		for line := range bytes.Lines(text) {
			var from, to uintptr
			var mode, offset, device, path string
			var inode uint64
			n, _ := fmt.Sscanf(string(line), "%x-%x %s %s %s %d %s", &from, &to, &mode, &offset, &device, &inode, &path)
			if n == 7 && inode == st.Ino && strings.HasSuffix(mode, "s") && strings.HasSuffix(path, filepath.Base(file.Name())) {
				mappings = append(mappings, mapping{from, to - from})
			}
		}
	}
	return mappings
}
