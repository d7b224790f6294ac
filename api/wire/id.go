package wire

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
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
