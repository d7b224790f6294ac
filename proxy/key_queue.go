package proxy

import (
	"time"

	"promptspool/spool/queue"
)

const (
	// linger is how long events wait for more to go with them, while others of their key
	// are on their way, or just went.
	linger        = 20 * time.Millisecond
	perKeyMax     = inFlightMax - 1  // batches of one key on their way: one that hangs leaves space for others
	failingMax    = inFlightMax - 1  // batches of all failing keys on their way
	laterDelayMax = 30 * time.Second // between two tries of an event that the server wants later
)

// keyQueue is what the forwarder knows of one key with events above the frontier. It has one
// owner and no lock.
type keyQueue struct {
	key      uint32
	events   []queue.Entry // in memory, to be sent, in order
	since    time.Time     // when the first of them came
	inFlight int           // batches

	until    time.Time // the key is left alone so long
	failures int       // in a row
	paused   bool      // a person has to look
	alone    bool      // see batch.alone
	why      string    // it waits, or events of it do

	skipped seqRange // came while the key was blocked
	doubted seqRange // the server refuses them, and is not believed; what is tried meanwhile comes after them
	later   seqRange // the server wants them later
	latest  uint64   // the highest that it ever wanted later
	laters  int      // times in a row that it said so
	large   int      // single events in a row that a proxy in front of the server finds too large
}

// seqRange are sequences low to high. Some of a key's events among them are not taken,
// and are read again from dueAt on.
type seqRange struct {
	any       bool
	low, high uint64
	dueAt     time.Time
}

// add notes an event that does not stay in memory.
func (s *seqRange) add(seq uint64) {
	if !s.any {
		s.any, s.low, s.high = true, seq, seq
		return
	}

	s.low, s.high = min(s.low, seq), max(s.high, seq)
}

// holds reports whether an event may be one of these.
func (s *seqRange) holds(seq uint64) bool { return s.any && s.low <= seq && seq <= s.high }

// passed notes that all of from and before end were looked at.
func (s *seqRange) passed(from, end, frontier uint64) {
	// The range shrinks from its low end only. Events read in its middle are read once
	// more.
	s.low = max(s.low, frontier)
	if from <= s.low {
		s.low = max(s.low, end)
	}

	s.any = s.any && s.low <= s.high
}

// passDoubted makes the next attempt go past the events that the server refuses, twice as
// far each time: among a million it meets the newest after twenty attempts.
func (q *keyQueue) passDoubted() {
	d, s := &q.doubted, &q.skipped
	if !s.any || s.high <= d.high {
		return
	}

	d.low = min(d.low, s.low)
	d.high = min(2*d.high-d.low, s.high-1)
	s.low = max(s.low, d.high+1)
}

// retryDoubted makes the events that the server refused be sent again.
func (q *keyQueue) retryDoubted() {
	if q.doubted.any {
		q.skipped.add(q.doubted.low)
		q.skipped.add(q.doubted.high)
		q.doubted = seqRange{}
	}
}

// blocked reports whether the key must be left alone now.
func (q *keyQueue) blocked(now time.Time) bool { return now.Before(q.until) }

// due returns those of a key's ranges that must be read again now, and when to look for
// the others; zero if there are none.
func (q *keyQueue) due(now time.Time) (due []*seqRange, wake time.Time) {
	// Nothing follows the doubted ones that was not tried: begin again with the first.
	if !q.skipped.any && len(q.events)+q.inFlight == 0 {
		q.retryDoubted()
	}

	for _, s := range []*seqRange{&q.skipped, &q.later} {
		if !s.any {
			continue
		}

		// Neither before the range is due nor while the whole key is blocked.
		at := s.dueAt
		if at.Before(q.until) {
			at = q.until
		}
		if now.Before(at) {
			wake = sooner(wake, at)
		} else {
			due = append(due, s)
		}
	}

	return due, wake
}

// ready reports whether a batch should go out now, and if not, when to look again; zero
// means not before something happens.
func (q *keyQueue) ready(now time.Time, sizes *bound) (bool, time.Time) {
	switch {
	case len(q.events) == 0 || q.inFlight >= q.inFlightMax():
		return false, time.Time{}
	case q.blocked(now):
		return false, q.until
	case q.inFlight == 0 || !now.Before(q.since.Add(linger)):
		return true, time.Time{}
	}

	// Batches of this key are on their way: only a full one follows before
	// linger is over.
	bytes := 0
	for i, e := range q.events {
		if !sizes.fits(i, bytes, len(e.Data)) {
			return true, time.Time{}
		}
		bytes += len(e.Data)
	}

	return false, q.since.Add(linger)
}

// inFlightMax is how many batches of the key may be on their way. It is one after a
// failure, until the server has taken a batch again.
func (q *keyQueue) inFlightMax() int {
	if q.failing() {
		return 1
	}

	return perKeyMax
}

// whyWaiting returns why events of the key wait, or "" if none does.
func (q *keyQueue) whyWaiting(now time.Time, frontier uint64) string {
	retried := q.inFlight > 0 && q.latest >= frontier
	if q.later.any || q.doubted.any || q.blocked(now) || retried {
		return q.why
	}
	return ""
}

// failing reports whether the last batch of the key failed.
func (q *keyQueue) failing() bool { return q.failures > 0 || q.paused }

// cut takes a batch from the front. Of a key that a person has to look at it takes one
// event, to try it.
func (q *keyQueue) cut(now time.Time, sizes *bound) *batch {
	// Entries that go are cleared in the array, which lives on: their data must not
	// stay in memory.
	b := &batch{key: q.key, alone: q.alone}
	for len(q.events) > 0 && sizes.fits(len(b.events), b.bytes, len(q.events[0].Data)) {
		if q.paused && len(b.events) == 1 {
			break
		}
		b.add(q.events[0])
		q.events[0] = queue.Entry{}
		q.events = q.events[1:]
	}
	q.since = now

	return b
}

// idle reports whether nothing is known of this key that would be missed.
func (q *keyQueue) idle(now time.Time) bool {
	return len(q.events) == 0 && q.inFlight == 0 && !q.skipped.any && !q.later.any && !q.doubted.any &&
		!q.blocked(now)
}
