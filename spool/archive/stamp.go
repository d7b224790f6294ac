package archive

import (
	"cmp"
	"time"
)

// skewMax is how far ahead of the server's clock an accepted time may lie and still order its event. A sidecar whose
// clock is wrong by more would win every later merge.
const skewMax = 5 * time.Second

// Stamp orders the events of a record: by order time, then by event id. No two events share one.
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

// newest returns whichever was stamped last. Either may be nil.
func newest[T any](a, b *Stamped[T]) *Stamped[T] {
	if a == nil || b != nil && b.Compare(a.Stamp) > 0 {
		return b
	}
	return a
}

// orderTime is the accepted time, or the arrival where the accepted time is too far ahead to be true.
func orderTime(accepted, arrived time.Time) time.Time {
	if accepted.After(arrived.Add(skewMax)) {
		return arrived
	}
	return accepted
}

// ageMax is how long before its arrival an event may order, unless a key of scope full brings it: an import. So nobody who may only
// write can rewrite a history of years, and a sidecar that was away for a year changes nothing.
const ageMax = 400 * 24 * time.Hour

// notBefore is the earliest order time of what arrives now. It moves once an hour: what is older shares it, and keeps the order of its
// ids, which sidecars make in the order in which they accept events.
func notBefore(now time.Time) time.Time {
	return now.UTC().Round(0).Add(-ageMax).Truncate(time.Hour).Add(time.Hour)
}
