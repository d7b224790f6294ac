package archive

import (
	"context"
	"encoding/hex"

	"promptspool/api/wire"
)

// Some SDKs trace a call and log it as well. Its span then has a record of its own, beside that
// of its request, because neither says the id of the other: the request names the span by its id
// alone, without the trace. Each has a key by which a Store finds it, and the key of the other
// follows from its own. So both are joined when they are read, whichever came first.
//
// The records of a span's log records have a key as well, by which joinLogs finds them.

// The sides of a link, in the last byte of its key.
const (
	requestSide = 1
	spanSide    = 2
	logSide     = 3
)

// linkKey returns the key of one side of a link by a span's id; ok is false if that is malformed.
func linkKey(spanID string, side byte) (key UUID, ok bool) {
	id, err := hex.DecodeString(spanID)
	if err != nil || len(id) != 8 {
		return key, false
	}
	copy(key[:], id)
	key[len(key)-1] = side

	return key, true
}

// otherSide returns the key of the record that a record with this key is linked to.
func otherSide(key UUID) UUID {
	key[len(key)-1] ^= requestSide ^ spanSide
	return key
}

// logLink returns the key of the records that have log records of one span, by the id of any of
// them: these differ by their time.
func logLink(id UUID) (key UUID) {
	end := id.End()
	copy(key[:], end[:])
	key[len(key)-1] = logSide

	return key
}

// Link returns the key by which a Store finds the record; ok is false if it is linked to none.
// A record that has both the span and its request needs no link.
func (s *State) Link() (key UUID, ok bool) {
	switch {
	case s.Span != nil && s.Request == nil:
		return linkKey(s.Span.Value.LoggedAs, spanSide)
	case s.Span == nil && s.Request != nil:
		return linkKey(s.Request.Value.SpanID, requestSide)
	case s.Span == nil && s.hasLogs():
		id, ok := ParseUUID(s.RequestID)
		return logLink(id), ok
	}

	return key, false
}

// linkRecord adds to what a record shows the record that it is linked to, if that has arrived.
func (a *Archive) linkRecord(ctx context.Context, account string, state *State, record *wire.Record) error {
	key, ok := state.Link()
	if !ok {
		return nil
	}
	key = otherSide(key)
	found, err := a.config.Store.Linked(ctx, account, []UUID{key}, 1)
	if err != nil || len(found) == 0 {
		return err
	}
	other := found[key][0]
	if state.Span != nil {
		record.RequestLogID = other.String()
		return nil
	}

	span, _, err := a.config.Store.Record(ctx, account, other.String())
	switch {
	case wire.IsCode(err, wire.CodeNotFound) || err == nil && span.Span == nil:
		return nil // deleted meanwhile
	case err != nil && !wire.IsCode(err, wire.CodeInternal): // the span may be damaged: the request is not
		return err
	}
	record.SpanRecordID = other.String()
	if err == nil {
		record.SpanName, record.TraceID = span.Span.Value.Name, span.Span.Value.TraceID
	}

	return nil
}

// linkSpans sets the requests that log the calls of spans, which are those of states.
func (a *Archive) linkSpans(ctx context.Context, account string, states []State, spans []wire.TraceSpan) error {
	of := map[string]UUID{} // by the id of the span's record
	var keys []UUID
	for i := range states {
		if key, ok := states[i].Link(); ok {
			of[states[i].RequestID] = otherSide(key)
			keys = append(keys, otherSide(key))
		}
	}
	if len(keys) == 0 {
		return nil
	}

	found, err := a.config.Store.Linked(ctx, account, keys, 1)
	if err != nil {
		return err
	}
	for i := range spans {
		if ids := found[of[spans[i].ID]]; ids != nil {
			text := ids[0].String()
			spans[i].RequestLogID = &text
		}
	}

	return nil
}
