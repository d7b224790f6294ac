package proxy

import (
	"sync"
	"time"
)

// manners keep forwarding from getting in the way of an app that writes. To read and pack a backlog takes a processor for milliseconds
// on end, more than Go or the kernel let a write wait that needs it for a moment, several times over: for its call, its
// commit, its answer. So while the app writes, that work goes in pieces of some tenths of a millisecond with a rest of the same length after
// each. A backlog then drains at about half of the speed, and the app has its answers. When the app is quiet nothing rests.
// Safe for concurrent use.
type manners struct {
	next func() uint64 // the sequence that the next event will get

	mu   sync.Mutex
	seen uint64
	at   time.Time // when it was seen that the app had written
}

const (
	writingFor = time.Second            // how long after its last write an app counts as one that writes
	pieceTime  = 250 * time.Microsecond // of work without a rest
	pieceBytes = 64 << 10               // of one reading of the spool; packing goes by blocks of 128 KiB
	restMax    = 2 * time.Millisecond   // a piece that took long was itself kept waiting
)

func newManners(next func() uint64) *manners { return &manners{next: next, seen: next()} }

// writing says whether the app has written within the last second, as far as somebody looked.
func (m *manners) writing() bool {
	next, now := m.next(), time.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	if next != m.seen {
		m.seen, m.at = next, now
	}
	return now.Sub(m.at) < writingFor
}

// rest lets writers go first, if there are any and the work since begun was a piece. It returns when the next piece begins.
func (m *manners) rest(begun time.Time) time.Time {
	took := time.Since(begun)
	if took < pieceTime {
		return begun
	}
	if m.writing() {
		time.Sleep(min(took, restMax))
	}
	return time.Now()
}
