package archive

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"promptspool/api/wire"
)

// Bounds of one record. A state is read whole with every event of its record, so anything
// that could grow without end is refused: the event goes to its sidecar's dead letters,
// with the reason.
const (
	RecordEventsMax = 10_000   // requests, spans and group links; as many enrichments are listed
	LogEventsMax    = 1000     // of log records that belong to one span; see joinLogs
	LogBytesMax     = 4 << 20  // of these, and one more may have more
	RecordBytesMax  = 64 << 20 // of the bodies of its events, and of its state
)

// State is what a Store keeps of one record, apart from the bodies; see Stored.Encode. The
// zero State is that of a record for which nothing has arrived. Not safe for concurrent use.
type State struct {
	RequestID string            `json:"request_id"`
	History   []Entry           `json:"history"`            // by stamp; see unlist
	Unlisted  []byte            `json:"unlisted,omitempty"` // ids that unlist took out of the history, in order
	Request   *Stamped[Request] `json:"request,omitempty"`  // nil for an orphan and a span
	Span      *Stamped[Span]    `json:"span,omitempty"`     // the one with the highest stamp
	Joined    bool              `json:"joined,omitempty"`   // log records that 0.1.0 joined to their span
	Target    *wire.ScoreTarget `json:"target,omitempty"`   // of its scores, if they name no request

	// Scores are by slot. Metadata, by key and as StoredValue, and Prompt are only those
	// of metadata and prompt events; the request has its own.
	Scores   Scores                     `json:"scores,omitempty"`
	Metadata map[string]Stamped[string] `json:"metadata,omitempty"`
	Prompt   *Stamped[Link]             `json:"prompt,omitempty"`
	GroupIDs []string                   `json:"group_ids,omitempty"`

	// From other records; Group.Unite sets these.
	Same    *SameCall         `json:"same_call,omitempty"` // nil: no other record reports its call
	Context map[string]string `json:"context,omitempty"`   // metadata of its trace
	Given   *Given            `json:"given,omitempty"`
	Linked  *Linked           `json:"linked,omitempty"`
	Logs    string            `json:"logs,omitempty"` // a hash of the log records with which its span was read
	Joint   *Joint            `json:"joint,omitempty"`

	// No list shows these, but a deletion by metadata may match them: Past holds
	// replaced values of Metadata, Rivals the metadata of other requests under this id,
	// both by stamp.
	Past   map[string][]Stamped[string] `json:"past,omitempty"`
	Rivals []Stamped[map[string]string] `json:"rivals,omitempty"`

	// index holds the ids of a long History, so that a batch of events of one record does
	// not search all of it for each event. It is valid while it is as long as History, to
	// which entries are only added.
	index map[string]struct{}

	// dropped are the events that unlist took out of the history, of those with a body.
	dropped []string

	sums sums
}

// indexMin is the number of entries from which a history is worth an index.
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
	Key        string    `json:"key,omitempty"`   // see wire.Event.KeyID
}

// Take folds an event that has just arrived, unless the record has it already or is full,
// and returns which. It fixes the event's order time for good; see Stamp. A Store calls
// this, or Stored.Take.
func (s *State) Take(e Event) wire.Result { return s.take(&e) }

// take is Take, and leaves the order time in e.
func (s *State) take(e *Event) wire.Result {
	// Once, and kept up to date from then on: adding up a long history for
	// each event of a batch would take quadratic time.
	s.sum()
	r := wire.Result{ID: e.ID, Code: wire.ResultAccepted}
	switch {
	case s.knows(e.ID):
		r.Code = wire.ResultDuplicate
	case !isEnrichment(e.Kind) && len(s.History)-s.sums.enrichments >= RecordEventsMax:
		r.Code, r.Cause = wire.ResultInvalid, wire.CauseLimit
		r.Reason = fmt.Sprintf("request %s already has %d events besides scores, metadata and prompts, "+
			"the most that are kept", e.RequestID, RecordEventsMax)
	case e.Kind == wire.KindLog && e.Log.Joined == "" && s.sums.bytes >= LogBytesMax:
		r.Code, r.Cause = wire.ResultInvalid, wire.CauseLimit
		r.Reason = fmt.Sprintf("the log records of span %s of this day already have %d bytes, the most that are kept",
			e.Log.SpanID, LogBytesMax)
	case e.Kind == wire.KindLog && e.Log.Joined == "" && len(s.History)-s.sums.enrichments >= LogEventsMax:
		r.Code, r.Cause = wire.ResultInvalid, wire.CauseLimit
		r.Reason = fmt.Sprintf("span %s already has %d log records of this day, the most that are kept",
			e.Log.SpanID, len(s.History))
	case s.sums.bytes+len(e.Body) > RecordBytesMax, s.sums.weight+e.weight() > RecordBytesMax:
		r.Code, r.Cause = wire.ResultInvalid, wire.CauseLimit
		r.Reason = fmt.Sprintf("request %s would exceed %d bytes, the most that are kept",
			e.RequestID, RecordBytesMax)
	default:
		// The order time must be fixed first: everything folded carries it.
		s.place(e)
		s.Fold(*e)
		s.sums.weight += e.weight()
	}

	return r
}

// Fold merges an event and reports whether it changed anything. An event that is in the
// history does not. The order in which events are folded does not matter. The state keeps
// what e points to.
func (s *State) Fold(e Event) (changed bool) {
	if s.knows(e.ID) {
		return false
	}

	s.RequestID = e.RequestID
	stamp := e.Stamp()
	s.remember(e)

	// From here on nothing depends on what came before, but on stamps alone.
	s.Joined = s.Joined || e.Log != nil && e.Log.Joined != ""
	s.Target = cmp.Or(s.Target, e.Target)
	if e.Span != nil || s.Joined {
		s.putSpan(stamp, e.Span)
	}
	if e.Request != nil {
		s.putRequest(stamp, e.Request)
	}
	if e.Score != nil {
		s.putScore(e.Score, stamp)
	}
	if e.Log != nil && !e.Log.At.IsZero() && e.Score == nil {
		// Judgements of a call count by when they were made.
		stamp.At = e.Log.At
	}
	for i := range e.Scores {
		s.putScore(&e.Scores[i], stamp)
	}
	for key, value := range e.Metadata {
		s.putMetadata(key, stamp, value)
	}
	if e.Prompt != nil {
		s.Prompt = newest(s.Prompt, &Stamped[Link]{stamp, *e.Prompt})
	}
	if e.GroupID != "" {
		s.addGroup(e.GroupID)
	}
	s.unlist()

	return true
}

// putSpan keeps the span with the highest stamp: some libraries send a span again when
// they know more. Joined log records have none: their span is another record.
func (s *State) putSpan(stamp Stamp, span *Span) {
	if s.Joined {
		s.Span = nil
	} else {
		s.Span = s.newestSpan(s.Span, &Stamped[Span]{stamp, *span})
	}

	// The request of the span until now goes with it, whether or not the new one is a call.
	if r := s.Request; r != nil && r.Value.Traced && !s.stands(r, nil) {
		s.addRival(r.Stamp, r.Value.Metadata)
		s.Request = nil
	}
}

// newestSpan is newest for spans, but for those of API keys that may only log: these replace no other's.
func (s *State) newestSpan(a, b *Stamped[Span]) *Stamped[Span] {
	switch {
	case a == nil || b == nil || s.isWeak(a.ID) == s.isWeak(b.ID):
		return newest(a, b)
	case s.isWeak(a.ID):
		return b
	}

	return a
}

// isWeak reports whether an event came with an API key that may do less than an app's.
func (s *State) isWeak(eventID string) bool { return s.entry(eventID).Key != "" }

// putRequest keeps the request that counts as the record's. The others are rivals.
func (s *State) putRequest(stamp Stamp, r *Request) {
	if !s.stands(&Stamped[Request]{stamp, *r}, s.Request) {
		s.addRival(stamp, r.Metadata)
		return
	}
	// A request that comes late may still be the earliest.
	// The one until now becomes a rival.
	if s.Request != nil {
		s.addRival(s.Request.Stamp, s.Request.Value.Metadata)
	}

	s.Request = &Stamped[Request]{stamp, *r}
}

// stands reports whether a request is the record's, beside another one that may be nil. A
// logged request is before a traced one, and the first of those that were logged: a later
// one is a mistake. A traced one is only that of the span that stands. That of an API key
// that may only log replaces no other's.
func (s *State) stands(r, other *Stamped[Request]) bool {
	if other != nil && s.isWeak(r.ID) != s.isWeak(other.ID) {
		return !s.isWeak(r.ID) && (!r.Value.Traced || s.Span != nil && r.ID == s.Span.ID)
	}
	if r.Value.Traced {
		return s.Span != nil && r.ID == s.Span.ID && (other == nil || other.Value.Traced)
	}

	return other == nil || other.Value.Traced || r.Compare(other.Stamp) < 0
}

// addGroup adds a group that the record is not in yet.
func (s *State) addGroup(id string) {
	i, have := slices.BinarySearch(s.GroupIDs, id)
	if !have {
		s.GroupIDs = slices.Insert(s.GroupIDs, i, id)
	}
}

// Orphan reports whether the record waits for its request. A span waits for nothing.
func (s *State) Orphan() bool { return s.Request == nil && !s.Bare() }

// Listed reports whether lists of requests show the record.
func (s *State) Listed() bool { return s.Request != nil && !s.IsStep() }

// Bare reports whether the record is a span without a request, log records of one, or a step (IsStep).
// It may have scores and the like. A record that keeps the scores of a Target is another.
func (s *State) Bare() bool {
	return s.Request == nil && (s.Span != nil || s.Target != nil || s.hasLogs()) || s.Request != nil && s.IsStep()
}

// hasLogs reports whether the record is log records or scores of a span, which is another record.
func (s *State) hasLogs() bool {
	if s.Span != nil || s.Request != nil {
		return s.Span != nil && s.Span.Value.IsLog
	}
	return s.Joined || s.Target != nil && s.Target.SpanID != "" ||
		len(s.History) > 0 && s.History[0].Kind == wire.KindLog
}

// BareAt returns the order time under which a Bare record is listed.
func (s *State) BareAt() time.Time {
	switch {
	case s.Span != nil:
		return s.Span.At
	case s.Request != nil:
		return s.Request.At
	}

	return s.History[len(s.History)-1].At
}

// Tagged reports whether the record is Bare and has, or had, metadata. A deletion by
// metadata must look at it, although no list shows it.
func (s *State) Tagged() bool {
	tags := len(s.Metadata) + len(s.Rivals) + len(s.Context)
	if s.Request != nil {
		tags += len(s.Request.Value.Metadata)
	}

	return s.Bare() && tags > 0
}

// apiKey returns the key that the record's call or span came with; see wire.Event.KeyID.
func (s *State) apiKey() string {
	event := s.History[0].ID
	switch {
	case s.Request != nil:
		event = s.Request.ID
	case s.Span != nil:
		event = s.Span.ID
	}

	return s.entry(event).Key
}

// entry returns what the record remembers of an event; the zero Entry if that is nothing.
func (s *State) entry(eventID string) (h Entry) {
	if i := slices.IndexFunc(s.History, func(h Entry) bool { return h.ID == eventID }); i >= 0 {
		h = s.History[i]
	}
	return h
}

// knows reports whether an event is in the history, or was.
func (s *State) knows(eventID string) bool {
	if len(s.Unlisted) > 0 && s.isUnlisted(eventID) {
		return true
	}
	if len(s.History) < indexMin {
		return slices.ContainsFunc(s.History, func(h Entry) bool { return h.ID == eventID })
	}

	// A state that was just read has no index, and Join adds entries beside it.
	if len(s.index) != len(s.History) {
		s.index = make(map[string]struct{}, len(s.History))
		for i := range s.History {
			s.index[s.History[i].ID] = struct{}{}
		}
	}
	_, known := s.index[eventID]

	return known
}

// Bytes returns the size of the bodies of all its events, as they were sent.
func (s *State) Bytes() (n int) {
	if s.sums.known {
		return s.sums.bytes
	}
	for i := range s.History {
		n += s.History[i].Bytes
	}

	return n
}

// remember adds an event to the history.
func (s *State) remember(e Event) {
	entry := Entry{
		Stamp:      e.Stamp(),
		Kind:       e.Kind,
		AcceptedAt: e.AcceptedAt,
		ArrivedAt:  e.ArrivedAt,
		Sidecar:    e.Sidecar,
		Clock:      e.Clock,
		Bytes:      len(e.Body),
		Hash:       e.Hash,
		Key:        e.KeyID,
	}
	i, _ := slices.BinarySearchFunc(s.History, entry, func(a, b Entry) int { return a.Compare(b.Stamp) })
	s.History = slices.Insert(s.History, i, entry)

	s.sums.bytes += entry.Bytes
	if isEnrichment(entry.Kind) {
		s.sums.enrichments++
	}
	// Otherwise the next event would make the whole index again.
	if s.index != nil {
		s.index[e.ID] = struct{}{}
	}
}

// put keeps the value with the highest stamp under a name.
func put[K comparable, T any](m map[K]Stamped[T], name K, stamp Stamp, value T) map[K]Stamped[T] {
	// Whichever comes first: the order of arrival must not matter.
	if old, ok := m[name]; ok && old.Compare(stamp) > 0 {
		return m
	}

	return with(m, name, Stamped[T]{stamp, value})
}

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
		// Never later: no event can overtake others by it.
		at = e.OrderedAt.UTC().Round(0)
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
