package proxy

import (
	"sync"
	"time"
)

// pacer keeps forwarding from slowing down an app that writes. Reading and compressing a
// backlog takes a processor for milliseconds on end. That is longer than Go or the kernel
// let a write wait that needs it for a moment, several times over: for its call, its
// commit, its answer. So while the app writes, the work is done in pieces of some tenths
// of a millisecond, with a rest of the same length after each. A backlog then drains at
// about half of the speed. When the app is quiet nothing rests. Safe for concurrent use.
type pacer struct {
	next func() uint64 // the sequence that the next event will get

	mu   sync.Mutex
	seen uint64    // under mu; what next returned last
	at   time.Time // under mu; when it was seen that the app had written
}

const (
	writingFor = time.Second            // how long after its last write an app counts as writing
	pieceTime  = 250 * time.Microsecond // of work without a rest
	pieceBytes = 64 << 10               // of one reading of the spool; compression has blocks of 128 KiB
	restMax    = 2 * time.Millisecond   // a piece that took longer was itself kept waiting
)

func newPacer(next func() uint64) *pacer { return &pacer{next: next, seen: next()} }

// writing reports whether the app has written within the last second, as far
// as anything looked.
func (p *pacer) writing() bool {
	// The sequence grows with every write, so writes need not tell us of themselves.
	next, now := p.next(), time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()

	if next != p.seen {
		p.seen, p.at = next, now
	}

	return now.Sub(p.at) < writingFor
}

// rest lets writers go first, if there are any and the work since begun was a piece. It
// returns when the next piece begins.
func (p *pacer) rest(begun time.Time) time.Time {
	took := time.Since(begun)
	if took < pieceTime {
		return begun
	}

	if p.writing() {
		time.Sleep(min(took, restMax))
	}
	return time.Now()
}
