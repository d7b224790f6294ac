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

// accountKey is how an account's id stands in the tables of records. PostgreSQL's texts hold every character but NUL; a byte that no
// text may hold, and the percent sign, stand as % and two digits.
func accountKey(account string) (string, error) {
	if account == "" || len(account) > accountBytesMax {
		return "", wire.Errorf(wire.CodeInternal, "An account's id must have 1 to %d bytes.", accountBytesMax)
	}
	if utf8.ValidString(account) && !strings.ContainsAny(account, "\x00%") {
		return account, nil
	}
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

// accountLock is the advisory lock of an account's records: shared by those who write to them; alone for whoever needs that nobody does.
func accountLock(account string) int64 {
	sum := sha256.Sum256([]byte("records of " + account))
	return int64(binary.BigEndian.Uint64(sum[:]))
}

// uuid is an id as it stands in a table.
type uuid archive.UUID

func parseUUID(s string) (uuid, bool) {
	id, ok := archive.ParseUUID(s)
	return uuid(id), ok
}

func (id uuid) String() string { return archive.UUID(id).String() }

// UUIDValue and ScanUUID are pgx's.
func (id uuid) UUIDValue() (pgtype.UUID, error) { return pgtype.UUID{Bytes: id, Valid: true}, nil }

// ScanUUID reads an id that is not null.
func (id *uuid) ScanUUID(v pgtype.UUID) error {
	*id = v.Bytes
	return nil
}

func badID(id string) error {
	return wire.Errorf(wire.CodeInternal, "%.40q is not an id; the archive should not have passed it on.", id)
}

// tsOf is the moment in an id, a UUIDv7: what its record's partition goes by.
func tsOf(id uuid) time.Time {
	var ms [8]byte
	copy(ms[2:], id[:6])
	return time.UnixMilli(int64(binary.BigEndian.Uint64(ms[:]))).UTC()
}

const weekLength = 7 * 24 * time.Hour

// The weeks before and behind these are as one each: ids that far away were not made by a clock, and there may be any number of them.
var (
	firstWeek = time.Date(2020, 1, 6, 0, 0, 0, 0, time.UTC)
	endOfWeek = time.Date(2099, 12, 28, 0, 0, 0, 0, time.UTC)
)

// weekOf is the Monday of the week in which a moment of an id lies.
func weekOf(ts time.Time) time.Time {
	switch {
	case ts.Before(firstWeek):
		return firstWeek.Add(-weekLength)
	case !ts.Before(endOfWeek):
		return endOfWeek
	}
	return ts.Truncate(weekLength) // Go's zero time is a Monday
}

// weekEnds are the moments of the ids of a week; those that are as one reach to the ends of time.
func weekEnds(week time.Time) (from, to pgtype.Timestamptz) {
	from, to = pgtype.Timestamptz{Time: week, Valid: true}, pgtype.Timestamptz{Time: week.Add(weekLength), Valid: true}
	if week.Before(firstWeek) {
		from = pgtype.Timestamptz{InfinityModifier: pgtype.NegativeInfinity, Valid: true}
	}
	if !week.Before(endOfWeek) {
		to = pgtype.Timestamptz{InfinityModifier: pgtype.Infinity, Valid: true}
	}
	return from, to
}

// Order times stand as nanoseconds since 1970. What lies before 1677 or behind 2262 stands at the end of what a number can tell: nothing
// real does, and the records themselves keep their times.
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
