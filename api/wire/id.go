package wire

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"time"

	"github.com/google/uuid"
)

// NewID mints a UUIDv7 for a request or an event. Ids of one process never go back. It is
// safe for concurrent use, and panics only if the system has no randomness.
func NewID() string { return uuid.Must(uuid.NewV7()).String() }

// NewIDAt mints a UUIDv7 for a moment between the years 1970 and 10889. Of two moments at
// least 245 ns apart, the later one's id is greater.
func NewIDAt(t time.Time) string {
	var id uuid.UUID
	_, _ = rand.Read(id[8:])  // it never returns an error
	id[8] = id[8]&0x3f | 0x80 // variant RFC 4122

	// Milliseconds, then the fraction of the millisecond in 12 bits (RFC 9562, 6.2,
	// method 3).
	ms := uint64(t.UnixMilli())
	fraction := uint64(t.Nanosecond()%1e6) << 12 / 1e6
	binary.BigEndian.PutUint64(id[:8], ms<<16|0x7000|fraction)

	return id.String()
}

// errID rejects an id that promptspool cannot have minted.
var errID = errors.New("must be a UUIDv7, as track-request returned it")

// ParseID checks that s is a UUIDv7 in its usual 36-character form, and returns it in
// lower case.
func ParseID(s string) (string, error) {
	// uuid.Parse also accepts other forms, such as braces.
	if len(s) != 36 {
		return "", errID
	}

	id, err := uuid.Parse(s)
	if err != nil || id.Version() != 7 || id.Variant() != uuid.RFC4122 {
		return "", errID
	}
	return id.String(), nil
}

// DeriveID turns an Idempotency-Key header into a request_id. The same header always
// gives the same id.
//
// The time bits are zero, because a retry may come on another day; nothing orders by
// them. Ids are looked up within an account, so two accounts that choose the same header
// do not collide.
func DeriveID(idempotencyKey string) string {
	sum := sha256.Sum256([]byte("promptspool idempotency-key\x00" + idempotencyKey))

	return idOf(sum, 0)
}

// idOf makes a UUIDv7 of a hash and a time in milliseconds: ParseID takes nothing else.
func idOf(sum [32]byte, ms uint64) string {
	var id uuid.UUID
	copy(id[6:], sum[:10])
	for i := range 6 {
		id[i] = byte(ms >> (40 - 8*i))
	}
	id[6] = id[6]&0x0f | 0x70 // version 7
	id[8] = id[8]&0x3f | 0x80 // variant RFC 4122

	return id.String()
}

// SpanRecordID returns the id of a span's record, in the form of a UUIDv7. Its time bits
// are those of the span's start in nanoseconds since 1970, so that a retry finds the
// record in the same week; they are zero if that start makes no sense.
func SpanRecordID(trace [16]byte, span [8]byte, start uint64) string {
	return traceRecordID("promptspool span\x00", trace, span, start)
}

// CloseRecordID returns the id of the record that a trace is closed with.
func CloseRecordID(trace [16]byte) string { return SpanRecordID(trace, [8]byte{}, 0) }

// LogRecordID returns the id of the record that holds a span's log records of one day. It has
// the form of a UUIDv7. Its time bits are those of the day, in UTC, of a time in nanoseconds
// since 1970; they are zero if that makes no sense. So the id follows from the span alone.
func LogRecordID(trace [16]byte, span [8]byte, at uint64) string {
	return traceRecordID("promptspool span logs\x00", trace, span, at-at%uint64(24*time.Hour))
}

// RecordID returns the id of the record that keeps the scores of the target. It follows from the
// target alone, so that a later score replaces an earlier one. That of a span is a LogRecordID.
func (t *ScoreTarget) RecordID() string {
	var trace [16]byte
	var span [8]byte
	_, _ = hex.Decode(trace[:], []byte(t.TraceID)) // both were checked
	_, _ = hex.Decode(span[:], []byte(t.SpanID))
	if t.SpanID != "" {
		return LogRecordID(trace, span, 0)
	}

	return idOf(sha256.Sum256([]byte("promptspool scores\x00"+t.TraceID+"\x00"+t.SessionID)), 0)
}

// traceRecordID derives an id from a span's, for a purpose. Those of a span differ by their time only.
func traceRecordID(purpose string, trace [16]byte, span [8]byte, at uint64) string {
	h := sha256.New()
	h.Write([]byte(purpose))
	h.Write(trace[:])
	h.Write(span[:])

	// A start outside this period comes from a clock that was never set.
	var ms uint64
	if uint64(CallsBegan.UnixNano()) <= at && at < uint64(spansEnd.UnixNano()) {
		ms = at / 1e6
	}

	return idOf([32]byte(h.Sum(nil)), ms)
}

// SpanEventID returns the id of the event that brought a span or a log record. The same body
// gives the same id, and another body another one. recordID must be that of SpanRecordID or
// LogRecordID.
func SpanEventID(recordID string, body []byte) (string, error) {
	record, err := ParseID(recordID)
	if err != nil {
		return "", err
	}
	id := uuid.MustParse(record)

	h := sha256.New()
	h.Write([]byte("promptspool span event\x00"))
	h.Write(id[:])
	h.Write(body)

	return idOf([32]byte(h.Sum(nil)), binary.BigEndian.Uint64(id[:8])>>16), nil
}
