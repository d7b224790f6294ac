package archive

import (
	"cmp"
	"time"

	"promptspool/api/wire"
)

// skewMax is how far an accepted time may be ahead of the server's clock and still order
// its event. A sidecar whose clock is wrong by more would win every later merge.
const skewMax = 5 * time.Second

// Stamp is the place of an event among those of its record: by order time, then
// by event id.
//
// An event gets its stamp when it first arrives (State.Take) and keeps it: what comes
// again is known by its id, and exports carry the order time. No two events share a
// stamp. So the order is total and transitive, no matter who wrote the events, and what
// they fold to depends on their stamps alone.
//
// The events of one clock (wire.Event.Clock) have stamps in the order in which they were
// accepted, even while that clock is wrong or changes. Accepted times alone do not give
// this order, since one too far ahead is replaced by the arrival, and batches overtake
// each other. So State.place keeps a new event between its neighbours in its clock's own
// order, which is that of accepted times, then of ids. There is always space: by
// induction, the neighbours' order times do not go back, and where they are equal the ids
// decide, which are minted from the accepted times. An event that was overtaken counts as
// if it had arrived just before the one that overtook it.
//
// The differences between accepted times are not used to take the skew off. They
// say nothing across a change of the clock, and could put an event a day before
// it was written.
type Stamp struct {
	At time.Time `json:"at"`
	ID string    `json:"id"`
}

// Compare is negative when s comes before other.
func (s Stamp) Compare(other Stamp) int {
	return cmp.Or(s.At.Compare(other.At), cmp.Compare(s.ID, other.ID))
}

// Stamped is a value with the stamp of the event that it came from.
type Stamped[T any] struct {
	Stamp
	Value T `json:"value"`
}

// newest returns the one with the higher stamp. Either may be nil.
func newest[T any](a, b *Stamped[T]) *Stamped[T] {
	if a == nil || b != nil && b.Compare(a.Stamp) > 0 {
		return b
	}

	return a
}

// orderTime returns where an event belongs regardless of others: at its accepted time,
// earlier if an export says so, or at its arrival if the accepted time is too far ahead
// to be true.
func orderTime(e *wire.Event, arrived time.Time) time.Time {
	at := e.AcceptedAt
	if !e.OrderedAt.IsZero() && e.OrderedAt.Before(at) {
		at = e.OrderedAt.UTC().Round(0) // never later: no event can overtake others by it
	}
	if at.After(arrived.Add(skewMax)) {
		return arrived
	}

	return at
}

// place fixes the order time of an event that has just arrived; see Stamp.
func (s *State) place(e *Event) {
	// Find the event's neighbours among those of its clock. Mostly it is the
	// last of them.
	var before, after *Entry
	for i := len(s.History) - 1; i >= 0 && before == nil; i-- {
		h := &s.History[i]
		switch {
		case h.Sidecar != e.Sidecar || h.Clock != e.Clock:
		case cmp.Or(h.AcceptedAt.Compare(e.AcceptedAt), cmp.Compare(h.ID, e.ID)) < 0:
			before = h
		default:
			after = h
		}
	}

	// The nanosecond is for ids that do not ascend with the accepted times: no
	// promptspool minted them.
	if before != nil && e.Stamp().Compare(before.Stamp) < 0 {
		e.OrderTime = before.At
		if e.ID < before.ID {
			e.OrderTime = before.At.Add(time.Nanosecond)
		}
	}
	if after != nil && e.Stamp().Compare(after.Stamp) > 0 {
		e.OrderTime = after.At
		if e.ID > after.ID {
			e.OrderTime = after.At.Add(-time.Nanosecond)
		}
	}
}
