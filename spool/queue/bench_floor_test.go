//go:build bench && linux

package queue_test

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// BenchmarkFloor is what BenchmarkAppend is compared with: a bare file to which writers
// append, sharing an fdatasync.
func BenchmarkFloor(b *testing.B) {
	file, err := os.Create(filepath.Join(b.TempDir(), "floor"))
	if err != nil {
		b.Fatal(err)
	}
	defer file.Close()
	f := &floor{file: file}
	f.cond.L = &f.mu
	data := make([]byte, benchEventBytes)
	benchParallel(b, func() error { return f.append(data) })
}

// floor appends to a file. The first writer syncs for all who arrived in the meantime.
type floor struct {
	file *os.File

	mu      sync.Mutex
	cond    sync.Cond
	buffer  []byte
	filling int // the round that buffer belongs to
	done    int // rounds that are synced
	syncing bool
}

// append returns once data is synced, by this writer or by another.
func (f *floor) append(data []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.buffer = append(f.buffer, data...)

	for round := f.filling; f.done <= round; {
		if f.syncing {
			f.cond.Wait()
			continue
		}

		buffer := f.buffer
		f.buffer, f.syncing = nil, true
		f.filling++

		// Others fill the next buffer during the write.
		f.mu.Unlock()
		_, err := f.file.Write(buffer)
		if err == nil {
			err = unix.Fdatasync(int(f.file.Fd()))
		}

		f.mu.Lock()
		f.syncing = false
		f.done++
		f.cond.Broadcast()
		if err != nil {
			return err
		}
	}

	return nil
}
