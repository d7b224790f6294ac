package filterline

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"time"

	"promptspool/api/wire"
	"promptspool/api/wire/calendar"
)

// Clock is what the times of a line refer to.
type Clock struct {
	Now  time.Time
	Zone *time.Location // in which days begin, and of times without a zone; nil is UTC
}

// TimeWords are the words that stand for a time.
var TimeWords = []string{"today", "yesterday", "this-week", "last-week", "this-month", "last-month"}

// span is what a time in a line stands for: from its beginning until before its end. Both are the
// same for a moment.
type span struct{ from, to time.Time }

func (s span) isMoment() bool { return s.from.Equal(s.to) }

// momentLayouts are the spellings of moments, without a zone and with one.
var momentLayouts = []string{
	"2006-01-02T15:04", "2006-01-02T15:04:05", "2006-01-02 15:04", "2006-01-02 15:04:05",
	time.RFC3339, "2006-01-02T15:04Z07:00", "2006-01-02 15:04:05Z07:00", "2006-01-02 15:04Z07:00",
}

// span reads a time: a word, a day or month, a moment, or a duration, which is that long ago.
func (c Clock) span(text string) (span, bool) {
	zone := c.Zone
	if zone == nil {
		zone = time.UTC
	}

	if s, ok := spanOfWord(strings.ToLower(text), c.Now.In(zone)); ok {
		return s, true
	}
	if t, err := time.Parse(time.DateOnly, text); err == nil {
		return checked(dates(t, t.AddDate(0, 0, 1), zone))
	}
	if t, err := time.Parse("2006-01", text); err == nil {
		return checked(dates(t, t.AddDate(0, 1, 0), zone))
	}

	if d, ok := ParseDuration(text); ok && d > 0 {
		t := c.Now.Add(-d)
		return checked(span{t, t})
	}
	// Seconds since 1970. A small number is not a time: 2026 would be one of 1970.
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && n > 100_000_000 {
		t := time.Unix(n, 0)
		return checked(span{t, t})
	}
	for _, layout := range momentLayouts {
		if t, err := time.ParseInLocation(layout, text, zone); err == nil {
			return checked(span{t, t})
		}
	}

	return span{}, false
}

// Range returns the time that a line is about: from a moment until before another. A bound that the
// line does not set is zero.
func (l Line) Range(clock Clock) (from, to time.Time) {
	for i := range l.Terms {
		t := &l.Terms[i]
		if !t.IsTime() || t.Not || len(t.Values) != 1 || t.Values[0].Operator == Exists {
			continue
		}
		f, err := l.compileTime(t.Field, &t.Values[0], clock)
		if err != nil {
			continue
		}

		// A bound narrows the one before.
		for _, part := range conditions(f) {
			var at time.Time
			_ = json.Unmarshal(part.Value, &at) // we made it
			switch part.Operator {
			case "gt", "gte":
				if at.After(from) {
					from = at
				}
			case "lt", "lte":
				if to.IsZero() || at.Before(to) {
					to = at
				}
			case "is":
				from, to = at, at
			}
		}
	}

	return from, to
}

// conditions returns the conditions of a filter, all of which must hold.
func conditions(f wire.Filter) []wire.Filter {
	if f.Filters == nil {
		return []wire.Filter{f}
	}
	var all []wire.Filter
	for _, part := range f.Filters {
		all = append(all, conditions(part)...)
	}

	return all
}

// checked rejects times that JSON cannot hold.
func checked(s span) (span, bool) {
	from, to := s.from.UTC(), s.to.UTC()

	return span{from, to}, from.Year() >= 1 && to.Year() <= 9999
}

// dates returns the span from the beginning of one date to that of another.
func dates(from, to time.Time, zone *time.Location) span {
	begin := func(t time.Time) time.Time { return calendar.StartOfDay(t.Year(), t.Month(), t.Day(), zone) }

	return span{begin(from), begin(to)}
}

// spanOfWord returns the span of one of TimeWords. A week begins on Monday.
func spanOfWord(word string, now time.Time) (span, bool) {
	day := func(year int, month time.Month, day int) time.Time {
		return calendar.StartOfDay(year, month, day, now.Location())
	}
	y, m, d := now.Date()
	monday := d - (int(now.Weekday())+6)%7

	s, ok := map[string]span{
		"today":      {day(y, m, d), day(y, m, d+1)},
		"yesterday":  {day(y, m, d-1), day(y, m, d)},
		"this-week":  {day(y, m, monday), day(y, m, monday+7)},
		"last-week":  {day(y, m, monday-7), day(y, m, monday)},
		"this-month": {day(y, m, 1), day(y, m+1, 1)},
		"last-month": {day(y, m-1, 1), day(y, m, 1)},
	}[word]
	if !ok {
		return s, false
	}

	return checked(s)
}

// ParseDuration reads a duration in Go's form, or in days or weeks, such as 90d. It reports whether the text is one.
func ParseDuration(text string) (time.Duration, bool) {
	for unit, hours := range map[string]float64{"d": 24, "w": 24 * 7} {
		number, ok := strings.CutSuffix(text, unit)
		if !ok {
			continue
		}
		n, err := strconv.ParseFloat(number, 64)
		if d := n * hours * float64(time.Hour); err == nil && d >= 0 && d < math.MaxInt64 {
			return time.Duration(d), true
		}
	}

	d, err := time.ParseDuration(text)

	return d, err == nil && d >= 0
}
