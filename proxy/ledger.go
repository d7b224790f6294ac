package proxy

import "math/bits"

// chunkEvents is how many events a chunk of the ledger covers: 16 words of 64.
const chunkEvents = 1024

// ledger remembers, of the events from the frontier on, which are settled (at the server,
// in a lane, or lost with the disk) and which are taken: in memory, or on their way. Two
// bits an event, so that memory does not grow with what waits:
//
//	     frontier            tail
//	        │ s s . t t . s s │
//	acked ──┘                 └── not read yet        s settled   t taken   . skipped, to be read again
//
// Only what is below the frontier is acknowledged to the spool. It has one owner
// and no lock.
type ledger struct {
	frontier uint64 // the lowest sequence that is not settled
	tail     uint64 // everything below was read at least once
	first    uint64 // number of chunks[0]; a chunk's number is sequence / chunkEvents
	chunks   []*chunk
}

type chunk struct {
	settled, taken [chunkEvents / 64]uint64
	events, bytes  int64 // settled, from the frontier on
}

func newLedger(frontier uint64) *ledger {
	return &ledger{frontier: frontier, tail: frontier, first: frontier / chunkEvents}
}

// place finds the bit of a sequence at or above the frontier.
func (l *ledger) place(seq uint64) (c *chunk, word int, bit uint64) {
	i := seq/chunkEvents - l.first
	for uint64(len(l.chunks)) <= i {
		l.chunks = append(l.chunks, new(chunk))
	}
	return l.chunks[i], int(seq % chunkEvents / 64), 1 << (seq % 64)
}

// isTaken reports whether an event at or above the frontier is in memory or on its way.
func (l *ledger) isTaken(seq uint64) bool {
	c, word, bit := l.place(seq)
	return c.taken[word]&bit != 0
}

// take marks an event as taken. It reports false if the event is taken
// or settled already.
func (l *ledger) take(seq uint64) bool {
	if seq < l.frontier {
		return false
	}
	c, word, bit := l.place(seq)
	if (c.settled[word]|c.taken[word])&bit != 0 {
		return false
	}
	c.taken[word] |= bit

	return true
}

// putBack makes a taken event one that can be taken again.
func (l *ledger) putBack(seq uint64) {
	c, word, bit := l.place(seq)
	c.taken[word] &^= bit
}

// settle notes that an event need not be sent any more.
func (l *ledger) settle(seq uint64, bytes int) {
	if seq < l.frontier {
		return
	}
	c, word, bit := l.place(seq)
	c.taken[word] &^= bit
	if c.settled[word]&bit != 0 {
		return
	}

	c.settled[word] |= bit
	c.events++
	c.bytes += int64(bytes)
}

// settleMissing settles what the spool left out between two events: it is lost, and
// was counted there.
func (l *ledger) settleMissing(from, end uint64) {
	for seq := max(from, l.frontier); seq < end; seq++ {
		c, word, bit := l.place(seq)
		if (c.taken[word]|c.settled[word])&bit == 0 {
			c.settled[word] |= bit
			c.events++
		}
	}
}

// advance moves the frontier over what is settled, and reports whether it moved.
func (l *ledger) advance() bool {
	before := l.frontier
	for l.frontier < l.tail {
		c, word, _ := l.place(l.frontier)
		// As many as are settled in a row within this word, but never beyond
		// what was read.
		offset := l.frontier % 64
		run := uint64(bits.TrailingZeros64(^(c.settled[word] >> offset)))
		if run == 0 {
			break
		}

		passed := min(run, 64-offset, l.tail-l.frontier)
		l.frontier += passed
		// An average one each: sizes are not kept.
		c.bytes -= c.bytes * int64(passed) / c.events
		c.events -= int64(passed)

		// The chunks that the frontier has passed are done with.
		for l.first < l.frontier/chunkEvents {
			l.first++
			l.chunks[0] = nil
			l.chunks = l.chunks[1:]
		}
	}

	return l.frontier > before
}

// pinned is about how many bytes are settled and cannot be acknowledged, because
// something before them waits.
func (l *ledger) pinned() (bytes int64) {
	for _, c := range l.chunks {
		bytes += c.bytes
	}
	return bytes
}

// span is how many events there are between the frontier and the tail.
func (l *ledger) span() uint64 { return l.tail - l.frontier }
