package queue

import (
	"maps"
	"slices"
)

// tally is a number of events and their bytes.
type tally struct {
	events int
	bytes  int64
}

// usage adds up events by key number. Its zero value is empty. It holds only keys that
// have events.
type usage struct {
	total tally
	keys  map[uint32]tally
}

func (u *usage) add(key uint32, events int, bytes int64) {
	if u.keys == nil {
		u.keys = make(map[uint32]tally)
	}
	u.total.events += events
	u.total.bytes += bytes

	t := u.keys[key]
	t.events += events
	t.bytes += bytes
	// A key that stayed here would never be forgotten; see Keys.
	if u.keys[key] = t; t.events == 0 {
		delete(u.keys, key)
	}
}

func (u *usage) subtract(v usage) {
	for key, t := range v.keys {
		u.add(key, -t.events, -t.bytes)
	}
}

// KeyUsage returns how many events of this key wait in the spool, and their bytes. Events
// that are being committed count; events in the lanes do not.
func (q *Queue) KeyUsage(key uint32) (events int, bytes int64) {
	q.mu.Lock()
	defer q.mu.Unlock()

	t := q.usage.keys[key]
	return t.events, t.bytes
}

// Keys returns, in order, the numbers of all keys that some event in the spool or in a
// lane needs. Any other key may be forgotten.
func (q *Queue) Keys() []uint32 {
	// Before mu: the lanes report to the spool, which takes mu, with their own lock held.
	keys := q.lanes.Keys(LaneHeld, LaneDead)

	q.mu.Lock()
	defer q.mu.Unlock()
	for key := range q.usage.keys {
		keys[key] = struct{}{}
	}
	return slices.Sorted(maps.Keys(keys))
}
