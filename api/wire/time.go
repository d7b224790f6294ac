package wire

import (
	"math"
	"strconv"
	"strings"
	"time"

	"promptspool/api/wire/jsonscan"
)

// time reads a moment: seconds since 1970 as a number, or ISO-8601. A number that is not
// between the years 1 and 9999 gives the zero time, but is no fault.
func (f *fields) time(name string, required bool) time.Time {
	v, ok := f.raw(name, required)
	if !ok {
		return time.Time{}
	}

	// A number out of range is milliseconds or a mistake; the
	// call is worth more than its time.
	if isNumber(v) {
		return unixTime(string(v))
	}
	if v[0] == '"' {
		if t, ok := ParseTime(jsonscan.Unquote(v)); ok {
			return t
		}
	}

	f.fault(name, "must be a number of seconds since 1970, or an ISO-8601 time")
	return time.Time{}
}

// isoLayouts are the spellings of ISO-8601 that clients use; the most frequent ones come
// first.
var isoLayouts = []string{
	time.RFC3339Nano,
	"2006-01-02T15:04:05.999999999",
	"2006-01-02 15:04:05.999999999Z07:00",
	"2006-01-02 15:04:05.999999999",
	"2006-01-02T15:04:05.999999999Z0700",
	time.DateOnly,
}

// ParseTime reads ISO-8601 as clients write it: with or without fraction, zone and T. The
// default zone is UTC. The result is UTC and between the years 1 and 9999, because no
// other time can be written as JSON.
func ParseTime(s string) (time.Time, bool) {
	for _, layout := range isoLayouts {
		if t, err := time.Parse(layout, s); err == nil {
			t = t.UTC()
			return t, isMoment(t)
		}
	}
	return time.Time{}, false
}

// isMoment reports whether t, in UTC, is between the years 1 and 9999 and not the zero
// time.
func isMoment(t time.Time) bool { return !t.IsZero() && t.Year() >= 1 && t.Year() <= 9999 }

// unixTime reads decimal seconds; anything that is not a moment is the zero time. It
// reads the digits themselves, because a float64 has only microseconds at today's dates.
func unixTime(number string) time.Time {
	if strings.ContainsAny(number, "eE") {
		float, err := strconv.ParseFloat(number, 64)
		if err != nil || math.Abs(float) > 1e12 {
			return time.Time{}
		}
		number = strconv.FormatFloat(float, 'f', 9, 64)
	}

	whole, fraction, _ := strings.Cut(number, ".")
	seconds, err := strconv.ParseInt(whole, 10, 64)
	if err != nil || seconds < -1e12 || seconds > 1e12 {
		return time.Time{}
	}

	// Nine digits are nanoseconds.
	fraction = fraction[:min(len(fraction), 9)]
	nanos, _ := strconv.ParseInt(fraction, 10, 64)
	for range 9 - len(fraction) {
		nanos *= 10
	}
	if number[0] == '-' {
		nanos = -nanos
	}

	t := time.Unix(seconds, nanos).UTC()
	if !isMoment(t) {
		return time.Time{}
	}
	return t
}
