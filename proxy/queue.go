package proxy

import (
	"time"

	"promptspool/spool"
)

const (
	linger        = 20 * time.Millisecond // how long events wait for more to go with them, while others of their key are on their way, or just went
	perKeyMax     = inFlightMax - 1       // batches of one key on their way: one that hangs leaves room for the others
	laterDelayMax = 30 * time.Second      // between two tries of an event that the server wants later
)

// queue is what the forwarder knows of one key with events above the frontier. It has one owner and no lock.
type queue struct {
	key      uint32
	events   []spool.Entry // in memory, to be sent, in order
	since    time.Time     // when the first of them came
	inFlight int           // batches

	until    time.Time // the key is left alone so long
	failures int       // in a row
	paused   bool      // a person has to look
	alone    bool      // see parcel.alone
	why      string    // it waits, or events of it do

	skipped span // came while the key was blocked
	later   span // the server wants them later
	laters  int  // times in a row that it said so
	large   int  // single events in a row that something between finds too large
}

// span are sequences low to high, among which some events of a key are nobody's. They are read again from dueAt on.
type span struct {
	any       bool
	low, high uint64
	dueAt     time.Time
}

// add notes an event that does not stay in memory.
func (s *span) add(seq uint64) {
	if !s.any {
		s.any, s.low, s.high = true, seq, seq
		return
	}
	s.low, s.high = min(s.low, seq), max(s.high, seq)
}

// holds says whether an event may be one of these.
func (s *span) holds(seq uint64) bool { return s.any && s.low <= seq && seq <= s.high }

// passed notes that all of from to last were looked at.
func (s *span) passed(from, last, frontier uint64) {
	s.low = max(s.low, frontier)
	if from <= s.low && s.low <= last {
		s.low = last + 1
	}
	s.any = s.any && s.low <= s.high
}

// blocked says whether the key is to be left alone now.
func (q *queue) blocked(now time.Time) bool { return now.Before(q.until) }

// due gives those of a key's spans that are to be read again now, and when to look for the others; zero: there are none.
func (q *queue) due(now time.Time) (due []*span, wake time.Time) {
	for _, s := range []*span{&q.skipped, &q.later} {
		at := s.dueAt
		if at.Before(q.until) {
			at = q.until
		}
		switch {
		case !s.any:
		case now.Before(at):
			wake = sooner(wake, at)
		default:
			due = append(due, s)
		}
	}
	return due, wake
}

// ready says whether a batch is to go out now, and if not, when to look again; zero: not before something happens.
func (q *queue) ready(now time.Time, b *bound) (bool, time.Time) {
	switch {
	case len(q.events) == 0 || q.inFlight >= q.inFlightMax():
		return false, time.Time{}
	case q.blocked(now):
		return false, q.until
	case q.inFlight == 0 || !now.Before(q.since.Add(linger)):
		return true, time.Time{}
	}
	bytes := 0
	for i, e := range q.events {
		if !b.fits(i, bytes, len(e.Data)) {
			return true, time.Time{} // a full batch
		}
		bytes += len(e.Data)
	}
	return false, q.since.Add(linger)
}

// inFlightMax is how many batches of the key may be on their way: one, until it is known that the server takes them again.
func (q *queue) inFlightMax() int {
	if q.failures > 0 || q.paused {
		return 1
	}
	return perKeyMax
}

// cut takes a batch from the front; of a key that somebody has to look at, one event, to try it.
func (q *queue) cut(now time.Time, b *bound) *parcel {
	p := &parcel{key: q.key, alone: q.alone}
	for len(q.events) > 0 && !(q.paused && len(p.events) == 1) && b.fits(len(p.events), p.bytes, len(q.events[0].Data)) {
		p.add(q.events[0])
		q.events[0] = spool.Entry{}
		q.events = q.events[1:]
	}
	q.since = now
	return p
}

// idle says whether nothing is known of this key that would be missed.
func (q *queue) idle(now time.Time) bool {
	return len(q.events) == 0 && q.inFlight == 0 && !q.skipped.any && !q.later.any && !q.blocked(now)
}
