package archive

import (
	"fmt"
	"slices"
	"time"

	"promptspool/api/wire"
)

// Bounds of one record. A state is read whole with every event of its record, so what could
// grow without end is refused: the event goes to its sidecar's dead letters with the reason.
const (
	RecordEventsMax = 10_000
	RecordBytesMax  = 64 << 20 // of the bodies of its events, and of its state
)

// State is what a Store keeps of one record, encoded as JSON, apart from the bodies. The zero State is that of a record
// of which nothing has arrived. Not safe for concurrent use.
type State struct {
	RequestID string                     `json:"request_id"`
	History   []Entry                    `json:"history"`            // by stamp
	Request   *Stamped[Request]          `json:"request,omitempty"`  // nil for an orphan
	Scores    map[string]Stamped[int]    `json:"scores,omitempty"`   // by name
	Metadata  map[string]Stamped[string] `json:"metadata,omitempty"` // by key; of metadata events only; values as StoredValue
	Prompt    *Stamped[Link]             `json:"prompt,omitempty"`   // of prompt events only
	GroupIDs  []string                   `json:"group_ids,omitempty"`

	// What a deletion by metadata may be for, although no list shows it.
	Past   map[string][]Stamped[string] `json:"past,omitempty"`   // overtaken values of Metadata, by stamp
	Rivals []Stamped[map[string]string] `json:"rivals,omitempty"` // metadata of other requests under this id, by stamp

	// index has the ids of History once that is long, so that a batch of events of one record does not look through it
	// for each. It holds if it is as long as History, to which entries are only added.
	index map[string]struct{}

	sums sums
}

// indexMin is from how many entries on a history is worth an index.
const indexMin = 64

// Entry is what a record remembers of one event.
type Entry struct {
	Stamp
	Kind       wire.Kind `json:"kind"`
	AcceptedAt time.Time `json:"accepted_at"`
	ArrivedAt  time.Time `json:"arrived_at"`
	Sidecar    string    `json:"sidecar"`
	Clock      string    `json:"clock,omitempty"` // see wire.Event
	Bytes      int       `json:"bytes"`           // of its body
	Hash       string    `json:"hash,omitempty"`  // of its body, if that is kept; see HashBody
}

// Take folds an event that has just arrived, unless the record has it already or is full, and returns which. It fixes the
// order time that the event has from then on; see Stamp. A Store calls it, or that of Stored.
func (s *State) Take(e Event) wire.Result { return s.take(&e) }

// take is Take, and leaves the order time in e.
func (s *State) take(e *Event) wire.Result {
	s.sum()
	r := wire.Result{ID: e.ID, Code: wire.ResultAccepted}
	switch {
	case s.knows(e.ID):
		r.Code = wire.ResultDuplicate
	case len(s.History) >= RecordEventsMax:
		r.Code = wire.ResultInvalid
		r.Reason = fmt.Sprintf("request %s has %d events already; no more are kept", e.RequestID, RecordEventsMax)
	case s.sums.bytes+len(e.Body) > RecordBytesMax, s.sums.weight+e.weight() > RecordBytesMax:
		r.Code = wire.ResultInvalid
		r.Reason = fmt.Sprintf("request %s would hold more than %d bytes; no more are kept", e.RequestID, RecordBytesMax)
	default:
		s.place(e)
		s.Fold(*e)
	}

	return r
}

// Fold merges an event and says whether it changed anything: an event that is in the history does not. The order in
// which events are folded does not matter. The state keeps what e points to.
func (s *State) Fold(e Event) (changed bool) {
	if s.knows(e.ID) {
		return false
	}
	s.RequestID = e.RequestID
	stamp := e.Stamp()
	s.remember(e)
	if e.Request != nil {
		s.putRequest(stamp, e.Request)
	}
	if e.Score != nil {
		s.putScore(e.Score.Name, stamp, e.Score.Score)
	}
	for key, value := range e.Metadata {
		s.putMetadata(key, stamp, value)
	}
	if e.Prompt != nil {
		old := s.Prompt
		s.Prompt = newest(old, &Stamped[Link]{stamp, *e.Prompt})
		s.sums.weight += weighPrompt(s.Prompt) - weighPrompt(old)
	}
	if i, have := slices.BinarySearch(s.GroupIDs, e.GroupID); e.GroupID != "" && !have {
		s.GroupIDs = slices.Insert(s.GroupIDs, i, e.GroupID)
		s.sums.weight += len(e.GroupID)
	}
	return true
}

// putRequest lets the request with the lowest stamp be the record's.
func (s *State) putRequest(stamp Stamp, r *Request) {
	if s.Request != nil && stamp.Compare(s.Request.Stamp) > 0 {
		s.addRival(stamp, r.Metadata)
		return
	}
	if s.Request != nil {
		s.addRival(s.Request.Stamp, s.Request.Value.Metadata)
	}
	s.sums.weight -= weighRequest(s.Request)
	s.Request = &Stamped[Request]{stamp, *r}
	s.sums.weight += weighRequest(s.Request)
}

// putScore lets the highest stamp have a score's name.
func (s *State) putScore(name string, stamp Stamp, score int) {
	if _, had := s.Scores[name]; !had {
		s.sums.weight += weighText(name)
	}
	s.Scores = put(s.Scores, name, stamp, score)
}

// Orphan says whether the request itself has not come yet.
func (s *State) Orphan() bool { return s.Request == nil }

func (s *State) knows(eventID string) bool {
	if len(s.History) < indexMin {
		return slices.ContainsFunc(s.History, func(h Entry) bool { return h.ID == eventID })
	}

	if len(s.index) != len(s.History) {
		s.index = make(map[string]struct{}, len(s.History))
		for i := range s.History {
			s.index[s.History[i].ID] = struct{}{}
		}
	}
	_, known := s.index[eventID]

	return known
}

// Bytes are those of the bodies of all its events, as they were sent.
func (s *State) Bytes() (n int) {
	if s.sums.known {
		return s.sums.bytes
	}
	for i := range s.History {
		n += s.History[i].Bytes
	}

	return n
}

func (s *State) remember(e Event) {
	entry := Entry{Stamp: e.Stamp(), Kind: e.Kind, AcceptedAt: e.AcceptedAt, ArrivedAt: e.ArrivedAt,
		Sidecar: e.Sidecar, Clock: e.Clock, Bytes: len(e.Body), Hash: e.Hash}
	i, _ := slices.BinarySearchFunc(s.History, entry, func(a, b Entry) int { return a.Compare(b.Stamp) })
	s.History = slices.Insert(s.History, i, entry)
	s.sums.bytes += entry.Bytes
	s.sums.weight += weighEntry(&entry)
	if s.index != nil {
		s.index[e.ID] = struct{}{}
	}
}

// put lets the highest stamp have the place called name.
func put[T any](m map[string]Stamped[T], name string, stamp Stamp, value T) map[string]Stamped[T] {
	if old, ok := m[name]; ok && old.Compare(stamp) > 0 {
		return m
	}
	if m == nil {
		m = make(map[string]Stamped[T])
	}
	m[name] = Stamped[T]{stamp, value}
	return m
}
