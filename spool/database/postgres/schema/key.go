package schema

import (
	"fmt"
	"math"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"promptspool/api/wire"
)

// accountBytesMax bounds an account's id.
const accountBytesMax = 255

// AccountKey returns an account's id as it is stored in the tables of records. A PostgreSQL
// text can hold any character except NUL; NUL, invalid UTF-8 and the percent sign are escaped
// as % and two digits.
func AccountKey(account string) (string, error) {
	if account == "" || len(account) > accountBytesMax {
		return "", wire.Errorf(wire.CodeInternal, "A project's id must have 1 to %d bytes.", accountBytesMax)
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

// AccountOf reverses AccountKey.
func AccountOf(key string) string {
	if account, err := url.PathUnescape(key); err == nil {
		return account
	}
	return key
}

// The first and the last time that Nanos can return.
var (
	timeLeast = time.Unix(0, math.MinInt64+1).UTC()
	timeMost  = time.Unix(0, math.MaxInt64-1).UTC()
)

// Nanos returns a time as it is stored: in nanoseconds since 1970. Times before 1677 or after
// 2262 are stored as the nearest that fits: no real one is there, and the records keep their own.
func Nanos(t time.Time) int64 {
	switch {
	case t.Before(timeLeast):
		return math.MinInt64 + 1
	case t.After(timeMost):
		return math.MaxInt64 - 1
	}
	return t.UnixNano()
}
