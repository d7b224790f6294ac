package archive

import (
	"slices"

	"promptspool/api/wire"
)

// Bounds of what an account's orphans may hold together. Events beyond them are answered
// later, never invalid: their requests may be on the way, and each arrival makes space.
const (
	OrphanEventsMax = 200_000
	OrphanBytesMax  = 256 << 20 // of the bodies of their events
)

// Orphans is a tally of records whose request has not arrived. A Store keeps one for each
// account, and changes it in the transaction that changes the records.
type Orphans struct {
	Requests int64 `json:"requests"`
	Events   int64 `json:"events"`
	Bytes    int64 `json:"bytes"` // of the events' bodies

	// Logs are records of log records that wait for their span. No list shows them, unless they
	// have the details of a call, and they have no part in the bounds: an app that traces few of
	// its calls may send the log records of all of them. They are kept as long as spans are.
	Logs int64 `json:"logs,omitempty"`
}

// Add adds another tally, which may be negative.
func (o *Orphans) Add(more Orphans) {
	o.Requests += more.Requests
	o.Events += more.Events
	o.Bytes += more.Bytes
	o.Logs += more.Logs
}

// Minus returns the difference of two tallies.
func (o Orphans) Minus(less Orphans) Orphans {
	return Orphans{
		Requests: o.Requests - less.Requests,
		Events:   o.Events - less.Events,
		Bytes:    o.Bytes - less.Bytes,
		Logs:     o.Logs - less.Logs,
	}
}

// Full reports whether no more events may wait.
func (o Orphans) Full() bool { return o.Events >= OrphanEventsMax || o.Bytes >= OrphanBytesMax }

// OrphanLater returns the result of an event for which there is no space
// among the orphans.
func OrphanLater(eventID string) wire.Result {
	return wire.Result{
		ID:   eventID,
		Code: wire.ResultLater,
		Reason: "too many events of this project wait for requests that have not arrived; " +
			"this one is accepted when there is space",
	}
}

// Waiting returns the record's share of the tally. It is nothing once its request has arrived,
// or the span of its log records.
func (s *State) Waiting() Orphans {
	switch {
	case s.hasLogs() && !s.Joined && !s.IsStep():
		return Orphans{Logs: 1}
	case !s.Orphan() || len(s.History) == 0:
		return Orphans{}
	}

	return Orphans{Requests: 1, Events: int64(len(s.History)), Bytes: int64(s.Bytes())}
}

// WouldWait reports whether folding the event would make the record an orphan, or
// a larger one.
func (s *State) WouldWait(e Event) bool {
	return s.Orphan() && e.Request == nil && e.Span == nil && e.Log == nil && e.Target == nil && !s.knows(e.ID)
}

// orphanSidecarsMax bounds the sidecars named in an orphan's row.
const orphanSidecarsMax = 16

// OrphanRow returns the record's row in the list of orphans; ok is false if it is none.
func (s *State) OrphanRow() (row wire.Orphan, ok bool) {
	if !s.Orphan() || len(s.History) == 0 {
		return row, false
	}

	first := s.History[0].ArrivedAt
	row = wire.Orphan{
		RequestID:      s.RequestID,
		Events:         len(s.History),
		FirstArrivedAt: first,
		LastArrivedAt:  first,
	}
	// The history is by stamp, so the first in it need not have arrived first.
	for _, h := range s.History {
		if h.ArrivedAt.Before(row.FirstArrivedAt) {
			row.FirstArrivedAt = h.ArrivedAt
		}
		if h.ArrivedAt.After(row.LastArrivedAt) {
			row.LastArrivedAt = h.ArrivedAt
		}
		row.Kinds = append(row.Kinds, h.Kind)
		row.Sidecars = append(row.Sidecars, h.Sidecar)
	}

	slices.Sort(row.Kinds)
	row.Kinds = slices.Compact(row.Kinds)
	slices.Sort(row.Sidecars)
	row.Sidecars = slices.Compact(row.Sidecars)
	row.Sidecars = row.Sidecars[:min(len(row.Sidecars), orphanSidecarsMax)]

	return row, true
}
