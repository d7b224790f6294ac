package postgres

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgtype"

	"promptspool/api/wire"
	"promptspool/spool/archive"
)

// accountBytesMax bounds an account's id.
const accountBytesMax = 255

// accountKey returns an account's id as it is stored in the tables of records. A PostgreSQL
// text can hold any character except NUL; NUL, invalid UTF-8 and the percent sign are escaped
// as % and two digits.
func accountKey(account string) (string, error) {
	if account == "" || len(account) > accountBytesMax {
		return "", wire.Errorf(wire.CodeInternal, "An account's id must have 1 to %d bytes.", accountBytesMax)
	}
	if utf8.ValidString(account) && !strings.ContainsAny(account, "\x00%") {
		return account, nil
	}

	// Invalid UTF-8 is escaped byte by byte, so that no two accounts get the same key.
	var b strings.Builder
	for i := 0; i < len(account); {
		r, size := utf8.DecodeRuneInString(account[i:])
		if r == 0 || r == '%' || r == utf8.RuneError && size == 1 {
			fmt.Fprintf(&b, "%%%02x", account[i])
		} else {
			b.WriteString(account[i : i+size])
		}
		i += size
	}

	return b.String(), nil
}

// accountLock returns the advisory lock of an account's records. Writers hold it shared; who
// must keep writers out holds it exclusively.
func accountLock(account string) int64 {
	sum := sha256.Sum256([]byte("records of " + account))
	return int64(binary.BigEndian.Uint64(sum[:]))
}

// uuid is an id as pgx reads and writes it.
type uuid archive.UUID

func parseUUID(s string) (uuid, bool) {
	id, ok := archive.ParseUUID(s)
	return uuid(id), ok
}

func (id uuid) String() string { return archive.UUID(id).String() }

// UUIDValue implements pgtype.UUIDValuer.
func (id uuid) UUIDValue() (pgtype.UUID, error) { return pgtype.UUID{Bytes: id, Valid: true}, nil }

// ScanUUID implements pgtype.UUIDScanner, for columns that are not null.
func (id *uuid) ScanUUID(v pgtype.UUID) error {
	*id = v.Bytes
	return nil
}

// tsOf returns the time in an id, a UUIDv7. It selects the partition of the record.
func tsOf(id uuid) time.Time {
	var ms [8]byte
	copy(ms[2:], id[:6])
	return time.UnixMilli(int64(binary.BigEndian.Uint64(ms[:]))).UTC()
}

// Order times are stored as nanoseconds since 1970. Times before 1677 or after 2262 are stored
// as the nearest of these: no real one is there, and the records keep their own times.
var (
	timeLeast = time.Unix(0, math.MinInt64+1).UTC()
	timeMost  = time.Unix(0, math.MaxInt64-1).UTC()
)

func nanosOf(t time.Time) int64 {
	switch {
	case t.Before(timeLeast):
		return math.MinInt64 + 1
	case t.After(timeMost):
		return math.MaxInt64 - 1
	}
	return t.UnixNano()
}
