package archive

import (
	"slices"
	"time"
)

// A request that starts later than this after its first arrival has a wrong clock.
const startAheadMax = 5 * time.Minute

// startMin is before every model call. What a caller takes for a time may count from the
// start of a machine, and 0 stands for unknown.
var startMin = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// ListTime returns where the record belongs in lists and charts: at the start of its
// request. That is at most startAheadMax after the request first arrived. Without a
// sensible start it is the order time. The state must have its request.
//
// It depends on the standing request alone, so it is the same whatever came when.
func (s *State) ListTime() time.Time {
	return s.began(s.Request.Stamp, s.Request.Value.Start)
}

// began returns the time of an event that says when something started.
func (s *State) began(stamp Stamp, start *time.Time) time.Time {
	if start == nil || start.Before(startMin) {
		return stamp.At
	}

	// A redelivered event changes nothing, so the history has its first arrival.
	began := start.UTC().Round(0)
	i := slices.IndexFunc(s.History, func(h Entry) bool { return h.ID == stamp.ID })
	if i < 0 {
		return began
	}
	if latest := s.History[i].ArrivedAt.Add(startAheadMax); began.After(latest) {
		return latest
	}

	return began
}
