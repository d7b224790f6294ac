//go:build bench

package queue_test

import (
	"sync"
	"testing"

	"promptspool/spool/queue"
)

// BenchmarkAppend measures one writer and 64. BenchmarkBesideTheFloors of e2e/bench compares a
// sidecar with a bare file.
func BenchmarkAppend(b *testing.B) {
	data := make([]byte, 4096)
	for name, writers := range map[string]int{"writers=1": 1, "writers=64": 64} {
		b.Run(name, func(b *testing.B) {
			s := open(b, b.TempDir(), func(c *queue.Config) { c.BytesMax = 1 << 40 })
			b.SetBytes(int64(len(data)))

			var wg sync.WaitGroup
			for i := range writers {
				wg.Go(func() {
					for range (b.N + i) / writers {
						if err := s.Append(1, data); err != nil {
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

// BenchmarkOpen opens a spool that holds 1 GiB in 262,144 events.
func BenchmarkOpen(b *testing.B) {
	dir := b.TempDir()
	s := open(b, dir)

	batch := make([][]byte, 256)
	for i := range batch {
		batch[i] = make([]byte, 4096)
	}
	for range 1 << 30 / (256 * 4096) {
		if err := s.Append(1, batch...); err != nil {
			b.Fatal(err)
		}
	}

	closeSpool(b, s)
	for b.Loop() {
		s, err := queue.Open(queue.Config{Dir: dir})
		if err != nil {
			b.Fatal(err)
		}
		closeSpool(b, s)
	}
}
