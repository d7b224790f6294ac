package archive

import (
	"encoding/binary"
	"encoding/hex"
	"time"

	"github.com/google/uuid"

	"promptspool/api/wire"
)

// Some SDKs trace a call and log it as well. Its span then has its own record, beside that
// of its request, because neither says the id of the other: the request names the span by its id
// alone, without the trace. Each has a key by which a Store finds it, and the key of the other
// follows from its own. So both are joined when they are read, whichever came first.
//
// The records of a span's log records have a key as well, by which its span finds them.

// The sides of a link, in the last byte of its key.
const (
	requestSide = 1
	spanSide    = 2
	logSide     = 3
)

// sideKey returns the key of one side of a link, by the id of a span or the end of that of a record.
func sideKey(id []byte, side byte) (key UUID) {
	copy(key[:], id)
	key[len(key)-1] = side

	return key
}

// linkKey is sideKey by a span's id in hexadecimal digits; ok is false if that is malformed.
func linkKey(spanID string, side byte) (key UUID, ok bool) {
	id, err := hex.DecodeString(spanID)
	if err != nil || len(id) != 8 {
		return key, false
	}

	return sideKey(id, side), true
}

// LogLink returns the key of the records that have log records of a span. id is that of any
// of them: they differ by their time.
func LogLink(id UUID) (key UUID) {
	end := id.End()
	return sideKey(end[:], logSide)
}

// logsLink returns the key of the log records and scores of the record's span; ok is false if it has
// none.
func (s *State) logsLink() (key UUID, ok bool) {
	span := s.span()
	if span == nil || span.TraceID == "" || span.SpanID == "" {
		return key, false
	}
	target := wire.ScoreTarget{TraceID: span.TraceID, SpanID: span.SpanID}
	id, ok := ParseUUID(target.RecordID())

	return LogLink(id), ok
}

// CallLink returns the key of the calls that were logged with the id of a span.
func CallLink(span [8]byte) (key UUID) { return sideKey(span[:], requestSide) }

// Link returns the key by which a Store finds the record; ok is false if it is linked to none.
// A record that has both the span and its request needs no link.
func (s *State) Link() (key UUID, ok bool) {
	switch {
	case s.hasLogs():
		id, ok := ParseUUID(s.RequestID)
		return LogLink(id), ok
	case s.Span != nil && s.Request == nil:
		return linkKey(s.Span.Value.LoggedAs, spanSide)
	case s.Span == nil && s.Request != nil:
		return linkKey(s.Request.Value.SpanID, requestSide)
	}

	return key, false
}

// LinkedTo returns the Link of the record that this one is linked to. A request is linked
// to its span, and a span to its request.
func (s *State) LinkedTo() (key UUID, ok bool) {
	key, ok = s.Link()
	key[len(key)-1] ^= requestSide ^ spanSide

	return key, ok
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

// IDEnd is the part of a UUIDv7 after its time.
type IDEnd [10]byte

// End returns the part of an id after its time.
func (id UUID) End() IDEnd { return IDEnd(id[len(id)-len(IDEnd{}):]) }
