package archive

import (
	"slices"
	"strings"
	"time"

	"promptspool/api/calls/otel/dialect"
	"promptspool/api/wire"
	"promptspool/spool/archive/rowcode"
)

// Selectors returns the order time up to which a metadata value was deleted. The value is
// as a state holds it (see HashStored). ok is false for a value that was not deleted.
type Selectors func(key, value string) (before time.Time, ok bool)

// Deleted reports whether a deletion by metadata applies to the record, in whatever order
// its events arrived. It does if, with one of the requests that were kept, a key has a
// deleted value
//
//   - as of the deletion's moment, whatever came later, or
//   - now, and the request is not later than that moment.
func (s *State) Deleted(deleted Selectors) bool {
	if len(s.Context) > 0 && s.inheritsDeleted(deleted) || s.inDeletedTrace(deleted) {
		return true
	}
	d := s.deletions(deleted)
	if s.Request == nil && len(s.Rivals) == 0 {
		return d.asOf > 0
	}

	// Which request is the record's may still change; a deletion must not depend on it.
	if r := s.Request; r != nil && d.with(Stamped[map[string]string]{r.Stamp, r.Value.Metadata}) {
		return true
	}
	return slices.ContainsFunc(s.Rivals, d.with)
}

// traceSelector is in place of a metadata key where a trace is deleted. No key begins so.
const traceSelector = "\x00trace_id"

// traceValue returns a trace, or what came of it with an API key that may only log, as the value by
// which it is deleted.
func traceValue(trace UUID, apiKey string) wire.MetadataRow {
	return wire.MetadataRow{Key: traceSelector, Value: strings.TrimSpace(traceText(trace) + " " + apiKey)}
}

// inDeletedTrace reports whether the record is in a deleted trace, and began before that.
func (s *State) inDeletedTrace(deleted Selectors) bool {
	trace, ok := s.Trace()
	if !ok {
		return false
	}
	for _, value := range []wire.MetadataRow{traceValue(trace, ""), traceValue(trace, s.apiKey())} {
		before, ok := deleted(value.Key, value.Value)
		if ok && !s.History[0].At.After(before) {
			return true
		}
	}

	return false
}

// Selectable returns all values by which the record may be, or have been, deleted.
func (s *State) Selectable() []wire.MetadataRow {
	values := s.Had()
	if trace, ok := s.Trace(); ok {
		values = append(values, traceValue(trace, ""), traceValue(trace, s.apiKey()))
	}

	return values
}

// Selectable returns the values that the event brings by which its record may be deleted.
func (e *Event) Selectable() (values []wire.MetadataRow) {
	metadata, trace := e.Metadata, ""
	if e.Request != nil {
		metadata, trace = e.Request.Metadata, e.Request.TraceID
	}
	switch {
	case e.Span != nil:
		trace = e.Span.TraceID
	case e.Log != nil:
		trace = e.Log.TraceID
	case e.Target != nil:
		trace = e.Target.TraceID
		values = append(values, sessionValue(e.Target.SessionID))
	}
	for key, value := range metadata {
		values = append(values, wire.MetadataRow{Key: key, Value: value})
	}
	if id, ok := ParseTrace(trace); ok {
		values = append(values, traceValue(id, ""), traceValue(id, e.KeyID))
	}

	return values
}

// sessionValue returns a session as the value by which it is deleted.
func sessionValue(session string) wire.MetadataRow {
	return wire.MetadataRow{Key: dialect.SessionKey, Value: rowcode.StoredValue(dialect.SessionKey, session)}
}

// keptOut reports whether a log record or a score is of a trace or a session that was deleted after it.
// Others in its record may be from later, so that only the event is kept out.
func (e *Event) keptOut(deleted Selectors) bool {
	if e.Log == nil && e.Target == nil || e.Span != nil {
		return false
	}

	return slices.ContainsFunc(e.Selectable(), func(v wire.MetadataRow) bool {
		before, ok := deleted(v.Key, v.Value)
		return ok && !e.OrderTime.After(before)
	})
}

// DeletedBy is Deleted for a record that was not deleted before it took e.
//
// A value that a metadata event sets ends the value before it, so that a deletion matches at
// most less. The record, of which thousands of values may be kept, is looked at only if the
// new value itself was deleted.
func (s *State) DeletedBy(e *Event, deleted Selectors) bool {
	if e.Request == nil {
		sets := e.Span != nil && s.inDeletedTrace(deleted)
		for key, value := range e.Metadata {
			_, ok := deleted(key, value)
			sets = sets || ok
		}
		if !sets {
			return false
		}
	}

	return s.Deleted(deleted)
}

// deletions are the deletions that match values of metadata events. They are found once for
// all requests of a record: there may be thousands of these, and of values.
type deletions struct {
	deleted Selectors
	keys    map[string]*keyValues
	asOf    int          // how many keys have a value that was there when it was deleted
	last    []*keyValues // whose last value is deleted, the latest deletion first
}

// keyValues are the values that metadata events gave to one key.
type keyValues struct {
	key    string
	values []Stamped[string] // by stamp

	// asOf means that some of them were there when they were deleted. newest is the highest
	// stamp of these values, earliest the first moment of their deletions.
	asOf     bool
	newest   Stamp
	earliest time.Time

	// lastBefore is up to when the last value was deleted; nil if it was not.
	lastBefore *time.Time
}

// deletions looks for deletions of the values of metadata events.
func (s *State) deletions(deleted Selectors) *deletions {
	d := &deletions{deleted: deleted, keys: make(map[string]*keyValues, len(s.Metadata))}
	for key, now := range s.Metadata {
		k := &keyValues{key: key, values: append(slices.Clone(s.Past[key]), now)}
		k.find(deleted)
		d.keys[key] = k
		if k.asOf {
			d.asOf++
		}
		if k.lastBefore != nil {
			d.last = append(d.last, k)
		}
	}
	// The latest first: of the keys that a request leaves alone, that one decides.
	slices.SortFunc(d.last, func(a, b *keyValues) int { return b.lastBefore.Compare(*a.lastBefore) })

	return d
}

// find looks for deletions of the key's values.
func (k *keyValues) find(deleted Selectors) {
	for i, v := range k.values {
		before, ok := deleted(k.key, v.Value)
		if !ok {
			continue
		}
		last := i == len(k.values)-1
		if last {
			k.lastBefore = &before
		}

		// A value holds from its own stamp to that of the next one.
		if v.At.After(before) || !last && !k.values[i+1].At.After(before) {
			continue
		}
		// The deletion of a later value is later, too.
		if !k.asOf {
			k.earliest = before
		}
		k.newest, k.asOf = v.Stamp, true
	}
}

// with reports whether a deletion applies to the record if this is its request.
func (d *deletions) with(request Stamped[map[string]string]) bool {
	// The keys that the request does not set are as without it. They are counted, not
	// looked at one by one.
	others := d.asOf
	for key := range request.Value {
		if k := d.keys[key]; k != nil && k.asOf {
			others--
		}
	}
	if others > 0 {
		return true
	}
	for _, k := range d.last {
		if _, sets := request.Value[k.key]; sets {
			continue
		}
		if !request.At.After(*k.lastBefore) {
			return true
		}
		// The others were deleted up to earlier moments.
		break
	}

	for key, value := range request.Value {
		k := d.keys[key]
		if k == nil {
			k = &keyValues{}
		}
		before, ok := d.deleted(key, value)
		if k.deletedWith(request.Stamp) || ok && k.had(request.Stamp, before) {
			return true
		}
	}

	return false
}

// deletedWith reports whether a value of an event is deleted if a request has a value, too.
func (k *keyValues) deletedWith(request Stamp) bool {
	// The request's value may have come between one of these and its deletion. It did not
	// for all of them if the newest came later, or if the earliest deletion did not see it.
	if k.asOf && (request.Compare(k.newest) < 0 || request.At.After(k.earliest)) {
		return true
	}

	return k.lastBefore != nil && k.after(request) < len(k.values) && !request.At.After(*k.lastBefore)
}

// had reports whether a request's value of this key was the one at a moment.
func (k *keyValues) had(request Stamp, at time.Time) bool {
	next := k.after(request)
	return !request.At.After(at) && (next == len(k.values) || k.values[next].At.After(at))
}

// after returns the index of the first value after a stamp.
func (k *keyValues) after(stamp Stamp) int {
	byStamp := func(v Stamped[string], stamp Stamp) int { return v.Compare(stamp) }
	i, _ := slices.BinarySearchFunc(k.values, stamp, byStamp)
	return i
}
