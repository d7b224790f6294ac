package spool_test

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"promptspool/spool"
)

const benchEventBytes = 4096

// BenchmarkAppend and BenchmarkFloor belong together. The floor is a bare file to which
// writers append, sharing an fdatasync. Compare the ratio of the two, not their figures.
func BenchmarkAppend(b *testing.B) {
	s := open(b, b.TempDir(), func(c *spool.Config) { c.BytesMax = 1 << 40 })
	data := make([]byte, benchEventBytes)
	benchParallel(b, func() error { return s.Append(context.Background(), 1, data) })
}

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

// benchParallel measures do with one writer and with 64.
func benchParallel(b *testing.B, do func() error) {
	for name, writers := range map[string]int{"writers=1": 1, "writers=64": 64} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(benchEventBytes)

			var wg sync.WaitGroup
			for i := range writers {
				wg.Go(func() {
					for range (b.N + i) / writers {
						if err := do(); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
		})
	}
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

// BenchmarkOpen opens a spool that holds 1 GiB in 262,144 events.
func BenchmarkOpen(b *testing.B) {
	dir := b.TempDir()
	s := open(b, dir)

	batch := make([][]byte, 256)
	for i := range batch {
		batch[i] = make([]byte, 4096)
	}
	for range 1 << 30 / (256 * 4096) {
		if err := s.Append(b.Context(), 1, batch...); err != nil {
			b.Fatal(err)
		}
	}

	closeSpool(b, s)
	for b.Loop() {
		s, err := spool.Open(spool.Config{Dir: dir})
		if err != nil {
			b.Fatal(err)
		}
		closeSpool(b, s)
	}
}
