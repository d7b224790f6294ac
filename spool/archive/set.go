package archive

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"promptspool/api/otlp"
	"promptspool/api/wire"
	"promptspool/spool/archive/reports"
)

// Records that belong together have a key in common: of a span, a response id, or a trace. A Store keeps
// a Set under each key of an account, and changes it in the transaction that changes the records. A
// record shows what follows from its state and its sets, in any order of arrival; see Group.Unite.
//
// A key begins with a week, as the ids of its records do, so that a set goes with its week. Within an
// hour of Monday, 00:00 UTC, a record is under the keys of both weeks.

// Bounds of sets.
const (
	logSetMax     = 32       // records with log records of a span: one for each day
	callWeightMax = 64 << 10 // of a record's state: all of a set may be in memory
	goneMax       = 16       // deleted records that a set knows of
	judgedWeeks   = 5        // in which a judgement looks for its call, its own the last

	judgedWeeksMax = 10 // of several judgements of one call
)

// Set is what a Store keeps under a key. The zero value is an empty set, which is not stored.
type Set struct {
	Members []Member
	Gone    []Gone
	Context *TraceContext // of the key of a trace
	ToDo    []ToDo        // of toDoKey

	Revision int64 // of what the Store keeps, 0 if that is nothing
	Changed  bool
	Decided  bool // something was decided by it: it must not have changed when that is committed
}

// Member are the records of a set in one role.
type Member struct {
	Role    reports.Role
	Records []UUID // in order; nil once there were more than its bound
	Count   int    // how many there are; no longer counted once Records is nil
}

// Gone is what a set keeps of a deleted record. Other reports of its call may still be on the way.
type Gone struct {
	At       time.Time `json:"at"` // when it was deleted
	Key      string    `json:"key,omitempty"`
	Reporter string    `json:"reporter"`
	Start    time.Time `json:"start"`
	End      time.Time `json:"end"`
	Salt     string    `json:"salt"`
	Input    string    `json:"input,omitempty"` // a hash of the beginning of its last user text
}

// setMark begins a stored set.
const setMark = 1

// Encode returns the stored value of a set, nil if it is empty.
//
// That is for each role its letter, the number of its records and their ids, which are left out if there
// are too many; a zero; and the rest as JSON.
func (s *Set) Encode() (value []byte) {
	if len(s.Members)+len(s.Gone)+len(s.ToDo) == 0 && s.Context == nil && !s.Decided {
		return nil
	}

	value = []byte{setMark}
	for _, m := range s.Members {
		value = append(value, byte(m.Role))
		value = binary.AppendUvarint(value, uint64(m.Count))
		for _, id := range m.Records {
			value = append(value, id[:]...)
		}
	}
	value = append(value, 0)
	if s.Context == nil && len(s.Gone)+len(s.ToDo) == 0 {
		return value
	}
	rest, _ := json.Marshal(setRest{s.Context, s.ToDo, s.Gone}) // of texts and times

	return append(value, rest...)
}

// setRest is what sets rarely have.
type setRest struct {
	Context *TraceContext `json:"context,omitempty"`
	ToDo    []ToDo        `json:"to_do,omitempty"`
	Gone    []Gone        `json:"gone,omitempty"`
}

// DecodeSet reads what Encode returned. Of anything else it reads what it can.
func DecodeSet(value []byte) (s Set) {
	if len(value) < 2 || value[0] != setMark {
		return s
	}
	for value = value[1:]; len(value) > 0 && value[0] != 0; {
		m := Member{Role: reports.Role(value[0])}
		n, size := binary.Uvarint(value[1:])
		m.Count = int(n)
		value = value[1+max(size, 0):]
		for m.Count <= m.most() && len(m.Records) < m.Count && len(value) >= len(UUID{}) {
			m.Records = append(m.Records, UUID(value[:len(UUID{})]))
			value = value[len(UUID{}):]
		}
		s.Members = append(s.Members, m)
	}
	if len(value) > 1 {
		var rest setRest
		_ = json.Unmarshal(value[1:], &rest)
		s.Context, s.ToDo, s.Gone = rest.Context, rest.ToDo, rest.Gone
	}

	return s
}

func compareIDs(a, b UUID) int { return slices.Compare(a[:], b[:]) }

func (m *Member) most() int {
	if m.Role == reports.Log {
		return logSetMax
	}
	return reports.MembersMax
}

// in returns the records of a set in a role. crowded reports that there were too many of them.
func (s *Set) in(role reports.Role) (ids []UUID, crowded bool) {
	for _, m := range s.Members {
		if m.Role == role {
			return m.Records, m.Count > m.most()
		}
	}
	return nil, false
}

// IsGone reports whether the set has nothing but what it keeps of deleted records.
func (s *Set) IsGone() bool { return len(s.Members)+len(s.ToDo) == 0 && s.Context == nil }

// isEmpty reports whether no report is in the set.
func (s *Set) isEmpty() bool {
	none := []reports.Role{reports.Log, reports.Scores, reports.Foreign}
	return !slices.ContainsFunc(s.Members, func(m Member) bool { return !slices.Contains(none, m.Role) })
}

// put adds a record to the set, or takes it out. It returns the records that the set no longer
// brings together, because there are too many of them now.
func (s *Set) put(id UUID, role reports.Role, in bool) (apart []UUID) {
	at := slices.IndexFunc(s.Members, func(m Member) bool { return m.Role == role })
	if at < 0 {
		if in {
			s.Members, s.Changed = append(s.Members, Member{role, []UUID{id}, 1}), true
		}
		return nil
	}
	m := &s.Members[at]
	i, has := slices.BinarySearchFunc(m.Records, id, compareIDs)
	// A crowded role stays so until its week goes.
	if has == in || m.Count > m.most() {
		return nil
	}

	s.Changed = true
	if in {
		m.Records, m.Count = slices.Insert(m.Records, i, id), m.Count+1
	} else {
		m.Records, m.Count = slices.Delete(m.Records, i, i+1), m.Count-1
	}
	switch {
	case m.Count == 0:
		s.Members = slices.Delete(s.Members, at, at+1)
	case m.Count > m.most():
		apart, m.Records = m.Records, nil
	}

	return apart
}

// bury notes that a record was deleted.
func (s *Set) bury(r *reports.Report, at time.Time) {
	salt := make([]byte, 8)
	_, _ = rand.Read(salt)
	g := Gone{
		At: at, Key: r.Key, Reporter: r.Reporter, Start: r.Start, End: r.End, Salt: hex.EncodeToString(salt),
	}
	g.Input = g.hash(r.Input)
	s.Gone, s.Changed = append(s.Gone, g), true
	s.Gone = s.Gone[max(0, len(s.Gone)-goneMax):]
}

// hash returns a hash of the beginning of a text, "" of no text.
func (g *Gone) hash(input string) string {
	input = reports.Beginning(input)
	if input == "" {
		return ""
	}
	h := hmac.New(sha256.New, []byte(g.Salt))
	h.Write([]byte(input))

	return hex.EncodeToString(h.Sum(nil)[:8])
}

// keepsOut reports whether a report is of a call that was deleted after the report was accepted. The
// same reporter would have sent another call.
func (s *Set) keepsOut(r *reports.Report) bool {
	return s.isEmpty() && slices.ContainsFunc(s.Gone, func(g Gone) bool {
		other := g.Reporter == "" || g.Reporter != r.Reporter
		input := g.hash(r.Input)
		return other && g.Key == r.Key && !r.Accepted.After(g.At) && reports.Overlap(g.Start, g.End, r.Start, r.End) &&
			(g.Input == "" || input == "" || g.Input == input)
	})
}

const week = 7 * 24 * time.Hour

// keyAt returns the key of something in the week of a moment.
func keyAt(end IDEnd, at time.Time) (key UUID) {
	copy(key[6:], end[:])
	// Go's zero time is a Monday.
	monday := at.Truncate(week).UnixMilli()
	copy(key[:6], binary.BigEndian.AppendUint64(nil, uint64(max(monday, 0)))[2:])

	return key
}

// WeekKey returns a key between those of the sets of a moment's week and of earlier ones.
func WeekKey(at time.Time) UUID { return keyAt(IDEnd{}, at) }

// keysAt returns the keys of something at a moment: two near Monday, 00:00 UTC.
func keysAt(end IDEnd, at time.Time) (keys []UUID) {
	return slices.Compact([]UUID{keyAt(end, at.Add(-time.Hour)), keyAt(end, at), keyAt(end, at.Add(time.Hour))})
}

// spanEnd returns the end of the keys of a span, which is also that of the ids of its log records; ok is
// false if an id is malformed.
func spanEnd(traceID, spanID string) (end IDEnd, ok bool) {
	trace, ok := ParseTrace(traceID)
	var span [8]byte
	n, err := hex.Decode(span[:], []byte(spanID[:min(len(spanID), 2*len(span))]))
	if !ok || err != nil || n != len(span) || len(spanID) != 2*len(span) {
		return end, false
	}
	id, ok := ParseUUID(wire.LogRecordID(trace, span, 0))

	return id.End(), ok
}

// responseEnd returns the end of the keys of a response id, which is also that of the ids of its
// judgements.
func responseEnd(responseID string) IDEnd {
	trace, span := otlp.ResponseIDs(responseID)
	id, _ := ParseUUID(wire.LogRecordID(trace, span, 0))

	return id.End()
}

// nameEnd returns the end of the keys of something else.
func nameEnd(name string) (end IDEnd) {
	sum := sha256.Sum256([]byte(name))
	return IDEnd(sum[:])
}

// apart returns the end of the keys for records of an API key that may only log. Their sets are separate,
// so that such a key brings no others' reports together, and keeps none apart.
func (end IDEnd) apart(apiKey string) IDEnd {
	if apiKey == "" {
		return end
	}
	return nameEnd(string(end[:]) + apiKey)
}

// responseIDMin is the length of ids that do not repeat by themselves.
const responseIDMin = 20

// places returns where the record is found by what belongs to it.
func (s *State) places() (places []reports.Place) {
	id, ok := ParseUUID(s.RequestID)
	if !ok || len(s.History) == 0 {
		return nil
	}
	apiKey := s.apiKey()
	add := func(role reports.Role, end IDEnd) {
		for _, key := range keysAt(end.apart(apiKey), id.Time()) {
			places = append(places, reports.Place{Key: key, Role: role})
		}
	}
	if s.hasLogs() {
		places = s.logPlaces(id)
	}

	span, isCall := s.span(), s.Request != nil && s.Weight() <= callWeightMax
	if span != nil && !span.IsLog && (s.Span != nil || isCall) {
		role := reports.Named
		switch {
		case s.Span != nil && isCall:
			role = reports.Span
		case s.Span != nil:
			role = reports.Other
		}
		if s.Span != nil {
			if span.LoggedAs != "" {
				add(reports.Other, nameEnd("logged as "+strings.ToLower(span.LoggedAs)))
			}
		}
		if end, ok := spanEnd(span.TraceID, span.SpanID); ok && (s.Span != nil || s.Request.Value.SpanID != "") {
			add(role, end)
			places = append(places, foreign(end, id, apiKey)...)
		}
		if end, ok := spanEnd(span.TraceID, span.ParentID); ok && isCall {
			add(reports.Below, end)
		}
	}
	if !isCall || s.hasLogs() && s.IsStep() {
		return places
	}
	r := &s.Request.Value
	if s.Span == nil && r.TraceID == "" && r.SpanID != "" {
		add(reports.Named, nameEnd("logged as "+strings.ToLower(r.SpanID)))
	}
	if len(r.ResponseID) >= responseIDMin {
		add(reports.Response, responseEnd(r.ResponseID))
		places = append(places, foreign(responseEnd(r.ResponseID), id, apiKey)...)
	}

	return places
}

// foreign returns the place where the scores of other keys find what came with one that may only log.
func foreign(end IDEnd, id UUID, apiKey string) []reports.Place {
	if apiKey == "" {
		return nil
	}
	return []reports.Place{{Key: keyAt(end, id.Time()), Role: reports.Foreign}}
}

// Keys returns the keys of the sets in which the record must be.
func (s *State) Keys() (keys []UUID) {
	for _, p := range s.places() {
		keys = append(keys, p.Key)
	}
	return keys
}

// Lacks reports whether a record is not in a set in which it must be.
func (s *Set) Lacks(key UUID, state *State) bool {
	id, _ := ParseUUID(state.RequestID)
	for _, p := range state.places() {
		ids, crowded := s.in(p.Role)
		if p.Key == key && !crowded && !slices.Contains(ids, id) {
			return true
		}
	}
	return false
}

// logPlaces returns the places of the log records or scores of a span, or of judgements. These may come
// weeks after their call, and with any key.
func (s *State) logPlaces(id UUID) (places []reports.Place) {
	role, end, apiKey := reports.Log, id.End(), s.apiKey()
	add := func(end IDEnd, at time.Time) {
		places = append(places, reports.Place{Key: keyAt(end, at), Role: role})
	}
	first, last := id.Time(), id.Time()
	// Scores, and log records without a time.
	if first.Unix() == 0 {
		first, last = s.History[0].At, s.History[len(s.History)-1].At
	}
	if s.Target == nil && len(s.Scores)+len(s.Metadata) == 0 {
		add(end.apart(apiKey), first)
		if !first.Add(-24 * time.Hour).After(first.Truncate(week)) {
			add(end.apart(apiKey), first.Add(-24*time.Hour))
		}
		return places
	}
	if s.Target != nil {
		role = reports.Scores
	}

	from := last.Add(-judgedWeeksMax * week)
	if early := first.Add(-judgedWeeks * week); early.After(from) {
		from = early
	}
	for at := from.Add(week); !at.After(last); at = at.Add(week) {
		add(end, at)
		if apiKey != "" {
			add(end.apart(apiKey), at)
		}
	}

	return places
}

// Keys returns the keys of the sets that folding the event will mostly ask for.
func (e *Event) Keys() (keys []UUID) {
	came := Entry{Stamp: e.Stamp(), Kind: e.Kind, Key: e.KeyID}
	s := State{RequestID: e.RequestID, Target: e.Target, History: []Entry{came}}
	if e.Request != nil {
		s.Request = &Stamped[Request]{e.Stamp(), *e.Request}
	}
	if e.Span != nil {
		s.Span = &Stamped[Span]{e.Stamp(), *e.Span}
	}
	for i := range e.Scores {
		s.putScore(&e.Scores[i], e.Stamp())
	}
	for _, p := range s.places() {
		keys = append(keys, p.Key)
	}

	return append(keys, s.traceKeys()...)
}

// UUID is an id as a Store keeps it.
type UUID [16]byte

// ParseUUID reads an id in its form of 36 characters, and in no other.
func ParseUUID(s string) (id UUID, ok bool) {
	// uuid.Parse also takes a URN, braces, and no dashes,
	// which String would not give back.
	if len(s) != 36 {
		return id, false
	}
	parsed, err := uuid.Parse(s)
	return UUID(parsed), err == nil
}

// String is the form that ParseUUID reads.
func (id UUID) String() string { return uuid.UUID(id).String() }

// Time returns the time in an id, a UUIDv7.
func (id UUID) Time() time.Time {
	var ms [8]byte
	copy(ms[2:], id[:6])
	return time.UnixMilli(int64(binary.BigEndian.Uint64(ms[:]))).UTC()
}

// joint returns the id of the Joint of a record. It is of another version than those of events.
func (id UUID) joint() UUID {
	id[6] = id[6]&0x0f | 0x80
	return id
}

// IDEnd is the part of a UUIDv7 after its time.
type IDEnd [10]byte

// End returns the part of an id after its time.
func (id UUID) End() IDEnd { return IDEnd(id[len(id)-len(IDEnd{}):]) }
