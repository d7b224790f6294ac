package wire

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"time"

	"github.com/google/uuid"
)

// NewID mints a UUIDv7 for a request or an event. Ids minted by one process never go back. Safe for
// concurrent use; it panics only when the system has no randomness to give.
func NewID() string { return uuid.Must(uuid.NewV7()).String() }

// NewIDAt mints a UUIDv7 of a moment, between the years 1970 and 10889: its time in milliseconds, then the part of the millisecond in
// 12 bits (RFC 9562, 6.2, method 3), then randomness. Of two moments at least 245 ns apart the later one's id is the greater. It
// panics only when the system has no randomness to give.
func NewIDAt(t time.Time) string {
	id := uuid.Must(uuid.NewRandom())
	ms := uint64(t.UnixMilli())
	part := uint64(t.Nanosecond()%1e6) << 12 / 1e6
	binary.BigEndian.PutUint64(id[:8], ms<<16|0x7000|part)
	return id.String()
}

// errID is what a caller is told about an id that cannot be ours.
var errID = errors.New("must be a UUIDv7, as track-request returned it")

// ParseID checks that s is a UUIDv7 in its usual 36-character form and returns it in lower case.
func ParseID(s string) (string, error) {
	if len(s) != 36 {
		return "", errID
	}
	id, err := uuid.Parse(s)
	if err != nil || id.Version() != 7 || id.Variant() != uuid.RFC4122 {
		return "", errID
	}
	return id.String(), nil
}

// DeriveID turns an Idempotency-Key header into a request_id: the same header gives the same id, whoever
// accepts the call and whenever. Its time bits are zero, for a retry may come on another day; nothing orders by
// them. Ids are looked up within an account, so two accounts that choose one header do not meet.
func DeriveID(idempotencyKey string) string {
	sum := sha256.Sum256([]byte("promptspool idempotency-key\x00" + idempotencyKey))
	var id uuid.UUID
	copy(id[6:], sum[:10])
	id[6] = id[6]&0x0f | 0x70
	id[8] = id[8]&0x3f | 0x80
	return id.String()
}
