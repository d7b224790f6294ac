package wire

import (
	"crypto/sha256"
	"encoding/binary"
	"time"

	"github.com/google/uuid"
)

// Starts of spans that lie outside of this period come from a clock that was never set.
var (
	spansFrom = uint64(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano())
	spansTo   = uint64(time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano())
)

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

// traceRecordID derives an id from a span's, for a purpose. Those of a span differ by their time only.
func traceRecordID(purpose string, trace [16]byte, span [8]byte, at uint64) string {
	h := sha256.New()
	h.Write([]byte(purpose))
	h.Write(trace[:])
	h.Write(span[:])

	var ms uint64
	if spansFrom <= at && at < spansTo {
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
