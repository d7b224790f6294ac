package archive

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sort"
	"time"

	"promptspool/api/wire"
	"promptspool/api/wire/jsonscan"
	"promptspool/spool/archive/rowcode"
)

// DeltaMin is the size in bytes from which the stored value of a state may have deltas. A
// Store marks such a value, and looks for none beside smaller ones.
const DeltaMin = 32 << 10

// Delta is what the events of one batch add to a large record. It is the stored value of a
// State into which only they are folded.
type Delta struct {
	After int // how many events the value and the deltas before it list
	Value []byte
}

// Stored is a state as a Store has it: one value, and deltas beside that of a large
// record. These hold what came since. Once the deltas have half as many bytes as the
// value, the next write replaces all of them by one value. So the bytes written for a
// record stay within a small factor of those sent for it.
//
// The order of folding does not matter, so it does not matter either which events are in
// which delta. Not safe for concurrent use.
type Stored struct {
	State

	large  bool   // it may have deltas
	events int    // in the histories of its value and its deltas
	whole  int    // bytes of its value
	beside int    // bytes of the deltas
	deltas []int  // Delta.After of each
	added  *State // what came since it was read; nil if that cannot be a delta
}

// ErrDelta means that a delta is missing, or belongs to another record.
var ErrDelta = errors.New("a delta is missing, or belongs to another record")

// ReadStored reads the value of a state, without its deltas. large means that it
// may have some.
func ReadStored(value []byte, large bool) (s Stored, err error) {
	s.large, s.whole = large, len(value)
	err = decodeState(value, &s.State)
	s.events = len(s.History)

	return s, err
}

// ReadExcerpts sets the excerpts of a row to those in the value of its state, which must
// not have deltas. It reads nothing else of the state.
func ReadExcerpts(value []byte, row *wire.Row) {
	stamped, _ := jsonscan.Lookup(value, "request")
	request, _ := jsonscan.Lookup(stamped, "value")
	if same, ok := jsonscan.Lookup(value, "same_call"); ok {
		// A row is that of the head.
		request, _ = jsonscan.Lookup(same, "shown")
	}
	excerpt := func(name string) string {
		quoted, ok := jsonscan.Lookup(request, name)
		if !ok || quoted[0] != '"' {
			return ""
		}
		return jsonscan.Unquote(quoted)
	}

	row.InputExcerpt, row.OutputExcerpt = excerpt("input_excerpt"), excerpt("output_excerpt")
}

// Large reports whether there may be deltas beside the state.
func (s *Stored) Large() bool { return s.large }

// Join adds all deltas of a state that was just read, in the order of After.
func (s *Stored) Join(deltas []Delta) error {
	others := make([]*State, len(deltas))
	for i, d := range deltas {
		others[i] = new(State)
		if err := decodeState(d.Value, others[i]); err != nil {
			return err
		}
		// A delta that is missing or foreign must be found: the record would
		// silently have less, or another's events (G5).
		if d.After != s.events || others[i].RequestID != s.RequestID || len(others[i].History) == 0 {
			return fmt.Errorf("%w: after %d of %d events", ErrDelta, d.After, s.events)
		}
		s.events += len(others[i].History)
		s.beside += len(d.Value)
		s.deltas = append(s.deltas, d.After)
	}
	s.State.Join(others...)
	// They were dropped when the deltas were written.
	s.dropped = nil

	return nil
}

// Take is State.Take, and notes the event for a delta if the next write may be one.
func (s *Stored) Take(e Event) wire.Result {
	// The delta must hold the event with the order time that the state gave it.
	r := s.take(&e)
	// Beyond half of the whole, the next write makes one value of all: see Stored.
	if r.Code == wire.ResultAccepted && s.large && s.beside < s.whole/2 {
		if s.added == nil {
			s.added = new(State)
		}
		s.added.Fold(e)
	}

	return r
}

// Encode returns what a Store must write: a delta or, if after is 0, the whole state.
// This replaces the value and the Deltas that were read. A delta holds only events that were
// taken, so code that changes the state in another way must not take any.
func (s *Stored) Encode() (value []byte, after int, err error) {
	// Later additions may be written alone, beside the rest.
	state := &s.State
	if s.added != nil {
		state, after = s.added, s.events
	}
	value, err = encodeState(state)
	if err != nil {
		return nil, 0, fmt.Errorf("encode record %s: %w", s.RequestID, err)
	}

	return value, after, nil
}

// Deltas returns Delta.After of each delta that was read.
func (s *Stored) Deltas() []int { return s.deltas }

// Join merges states of one record that share no event. The result is that of folding all
// their events into one state. s keeps what the others point to.
func (s *State) Join(others ...*State) {
	if len(others) == 0 {
		return
	}

	for _, o := range others {
		s.RequestID = o.RequestID
		s.History = append(s.History, o.History...)
		s.Target = cmp.Or(s.Target, o.Target)
		s.Joined = s.Joined || o.Joined
		if s.Joined {
			s.Span = nil
		} else {
			s.Span = s.newestSpan(s.Span, o.Span)
		}
		s.joinRequest(o)
		for slot, v := range o.Scores {
			s.Scores = put(s.Scores, slot, v.Stamp, v.Value)
		}
		s.joinMetadata(o)
		s.Prompt = newest(s.Prompt, o.Prompt)
		s.GroupIDs = append(s.GroupIDs, o.GroupIDs...)
	}

	// One sort at the end: inserting entry by entry would take quadratic time.
	slices.SortFunc(s.History, func(a, b Entry) int { return a.Compare(b.Stamp) })
	sort.Slice(s.Rivals, func(i, j int) bool { return s.Rivals[i].Compare(s.Rivals[j].Stamp) < 0 })
	for _, past := range s.Past {
		sort.Slice(past, func(i, j int) bool { return past[i].Compare(past[j].Stamp) < 0 })
	}
	slices.Sort(s.GroupIDs)
	s.GroupIDs = slices.Compact(s.GroupIDs)
	s.joinUnlisted(others)
	s.index, s.sums = nil, sums{}
	s.unlist()
}

// joinRequest folds the other state's requests. Join sorts the rivals.
func (s *State) joinRequest(o *State) {
	s.Rivals = append(s.Rivals, o.Rivals...)
	both := []*Stamped[Request]{s.Request, o.Request}
	s.Request = nil

	// As if both had been folded into one state.
	for _, r := range both {
		if r != nil {
			s.putRequest(r.Stamp, &r.Value)
		}
	}
}

// joinMetadata folds all values of the other state. Join sorts the past ones.
func (s *State) joinMetadata(o *State) {
	for key, v := range o.Metadata {
		s.putMetadata(key, v.Stamp, v.Value)
	}
	for key, past := range o.Past {
		s.Past = with(s.Past, key, append(s.Past[key], past...))
	}
}

// The stored value of a state is its JSON. The parts that grow without end follow
// it, if there are any, in a form that is read many times as fast:
//
//	bytes  field
//	    n  the state as JSON, without Past and Unlisted
//	    m  the ids in Unlisted, 16 bytes each, and their number as a varint in front of them
//	    -  the values in Past, one after the other: see appendPast
//	    4  n, big-endian
//	    1  valueMark, which ends no JSON
const valueMark = 0x01

// errStoredValue means that a stored value is not what encodeState wrote.
var errStoredValue = errors.New("the stored state is not readable")

// encodeState returns the stored value of a state.
func encodeState(s *State) ([]byte, error) {
	if len(s.Past)+len(s.Unlisted) == 0 {
		return jsonscan.Marshal(s)
	}

	rest := *s
	rest.Past, rest.Unlisted = nil, nil
	value, err := jsonscan.Marshal(&rest)
	if err != nil {
		return nil, err
	}

	n := len(value)
	value = binary.AppendUvarint(value, uint64(len(s.Unlisted)/len(UUID{})))
	value = append(value, s.Unlisted...)
	for _, key := range slices.Sorted(maps.Keys(s.Past)) {
		for _, v := range s.Past[key] {
			value = appendPast(value, key, v)
		}
	}

	return append(binary.BigEndian.AppendUint32(value, uint32(n)), valueMark), nil
}

// decodeState reads what encodeState returned. The state keeps nothing of value.
func decodeState(value []byte, s *State) error {
	end := len(value) - 5
	if end < 0 || value[len(value)-1] != valueMark {
		return json.Unmarshal(value, s)
	}
	n := int(binary.BigEndian.Uint32(value[end:]))
	if n > end {
		return errStoredValue
	}
	if err := json.Unmarshal(value[:n], s); err != nil {
		return err
	}

	// The state must keep nothing of value, so the ids are copied as the texts are.
	r := rowcode.Reader{Rest: value[n:end]}
	s.Unlisted = append([]byte(nil), r.Take(r.Uvarint()*uint64(len(UUID{})))...)
	for len(r.Rest) > 0 && r.Err == nil {
		key := r.Text()
		seconds, nanos := r.Uvarint(), r.Uvarint()
		v := Stamped[string]{Stamp{time.Unix(int64(seconds), int64(nanos)).UTC(), r.Text()}, r.Text()}
		s.Past = with(s.Past, key, append(s.Past[key], v))
	}
	if r.Err != nil {
		return fmt.Errorf("%w: it ends early", errStoredValue)
	}

	return nil
}

// appendPast appends a value that a key had: the key, the seconds and nanoseconds of the stamp as
// varints, its id, and the value. Each text has its length in front of it.
func appendPast(b []byte, key string, v Stamped[string]) []byte {
	b = rowcode.AppendText(b, key)
	b = binary.AppendUvarint(b, uint64(v.At.Unix()))
	b = binary.AppendUvarint(b, uint64(v.At.Nanosecond()))

	return rowcode.AppendText(rowcode.AppendText(b, v.ID), v.Value)
}

// HeldBytesMax bounds the weight of the states that a Store holds for one transaction,
// unless one alone weighs more.
const HeldBytesMax = 16 << 20

// ErrHeavy reports that records weigh too much to be changed in one transaction.
var ErrHeavy = errors.New("the records weigh too much to be changed together")

// Apart calls fn with all items or, if that fails with ErrHeavy, with each half of them.
func Apart[T any](items []T, fn func(items []T) error) error {
	err := fn(items)
	if !errors.Is(err, ErrHeavy) || len(items) < 2 {
		return err
	}

	// Changes of the first half stay even if the second fails.
	half := len(items) / 2
	if err := Apart(items[:half], fn); err != nil {
		return err
	}

	return Apart(items[half:], fn)
}

// The weights of things besides their texts: about as much as in a stored state.
const (
	entryBytes    = 300
	stampedBytes  = 100
	unlistedBytes = 22
)

// sums caches the totals of a state while it takes events. Code that changes a state
// other than by folding must do so before the state takes any.
type sums struct {
	known       bool
	bytes       int
	weight      int // at most: what later events replace stays in it
	enrichments int // in the history
}

// sum fills in the cache.
func (s *State) sum() {
	if !s.sums.known {
		s.sums = sums{true, s.Bytes(), s.Weight(), s.enrichments()}
	}
}

// enrichments counts those in the history.
func (s *State) enrichments() (n int) {
	for i := range s.History {
		if isEnrichment(s.History[i].Kind) {
			n++
		}
	}

	return n
}

// Weight returns about how many bytes the state has when it is stored.
func (s *State) Weight() (n int) {
	// Other records add a bounded part, which does not count.
	for i := range s.History {
		n += entryBytes + len(s.History[i].Sidecar)
	}
	for slot, score := range s.Scores {
		n += weighScore(slot, &score.Value)
	}
	for key, v := range s.Metadata {
		n += stampedBytes + len(key) + len(v.Value)
	}
	for key, past := range s.Past {
		for _, v := range past {
			n += stampedBytes + len(key) + len(v.Value)
		}
	}
	for i := range s.Rivals {
		n += stampedBytes + textsBytes(s.Rivals[i].Value)
	}
	for _, id := range s.GroupIDs {
		n += len(id)
	}
	n += len(s.Unlisted) / len(UUID{}) * unlistedBytes
	if s.Prompt != nil {
		n += stampedBytes + len(s.Prompt.Value.InputVariables)
	}
	if s.Request != nil {
		n += entryBytes + textsBytes(s.Request.Value.Metadata) + s.Request.Value.excerptBytes()
	}
	if s.Span != nil {
		n += entryBytes + s.Span.Value.bytes()
	}

	return n
}

// weight returns at most what folding the event adds to Weight.
func (e *Event) weight() int {
	n := entryBytes + len(e.Sidecar) + len(e.GroupID)
	scores := e.Scores
	if e.Score != nil {
		scores = append(scores[:len(scores):len(scores)], *e.Score)
	}
	for _, score := range scores {
		n += weighScore(score.ScoreSlot, &Judgement{score.ScoreValue, score.Details})
	}
	for key, value := range e.Metadata {
		n += stampedBytes + len(key) + len(value)
	}
	if e.Prompt != nil {
		n += stampedBytes + len(e.Prompt.InputVariables)
	}
	if e.Span != nil {
		n += entryBytes + e.Span.bytes()
	}
	if e.Request != nil {
		// As the record's request or as a rival, whichever weighs more.
		n += entryBytes + stampedBytes + textsBytes(e.Request.Metadata) + e.Request.excerptBytes()
	}

	return n
}

func weighScore(slot wire.ScoreSlot, j *Judgement) int {
	n := stampedBytes + len(slot.Name) + len(slot.Author) + len(j.Text)
	if d := j.Details; d != nil {
		n += len(d.Source) + len(d.AuthorVersion)
	}
	return n
}

func (r *Request) excerptBytes() int { return len(r.InputExcerpt) + len(r.OutputExcerpt) }

func textsBytes(texts map[string]string) (n int) {
	for key, value := range texts {
		n += len(key) + len(value)
	}

	return n
}
