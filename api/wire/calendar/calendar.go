// Package calendar divides time into days, hours and other intervals, by the clocks of a
// time zone.
//
// A day may have 23 or 25 hours, begin at one o'clock, or not exist at all. Intervals
// nevertheless follow each other without a gap, and every moment is in exactly one.
package calendar

import (
	"math"
	"time"
)

const daySeconds = 24 * 60 * 60

// mondayDay is the first Monday of 1970, from which intervals of several days count: weeks begin
// on Mondays.
const mondayDay = 4

// ParseZone reads a time zone: a name such as Europe/Berlin, or an offset such as +02:00. An empty
// text is UTC.
func ParseZone(text string) (*time.Location, bool) {
	if at, err := time.Parse("-07:00", text); err == nil {
		_, seconds := at.Zone()
		return time.FixedZone(text, seconds), true
	}
	// Local is the zone of this machine, which is not the reader's.
	zone, err := time.LoadLocation(text)

	return zone, err == nil && text != "Local"
}

// StartOfDay returns the moment at which a date begins in a zone. Like time.Date, it takes days
// beyond the end of a month.
func StartOfDay(year int, month time.Month, day int, zone *time.Location) time.Time {
	wall := time.Date(year, month, day, 0, 0, 0, 0, time.UTC).Unix()
	t := time.Date(year, month, day, 0, 0, 0, 0, zone)

	// Where the clock was changed at midnight, midnight comes twice or never.
	for _, near := range []time.Time{t.AddDate(0, 0, -1), t} {
		_, offset := near.Zone()
		_, change := near.ZoneBounds()
		if first := time.Unix(wall-int64(offset), 0).In(zone); change.IsZero() || first.Before(change) {
			return first
		}
		if _, after := change.Zone(); wall-int64(after) < change.Unix() {
			// The clock skips midnight.
			return change
		}
	}

	return t
}

// Floor returns the moment at which the interval of a length begins that has a moment. The length
// divides a day, or is a number of days.
func Floor(t time.Time, length time.Duration, zone *time.Location) time.Time {
	seconds := int64(length / time.Second)
	if seconds%daySeconds == 0 {
		return floorDays(t, seconds/daySeconds, zone)
	}

	for {
		local := t.In(zone)
		into := wallSeconds(local) % seconds
		begin := time.Unix(t.Unix()-into, 0).In(zone)

		// The clock may have been changed since. Then the interval goes back beyond the change, or
		// begins with it.
		change, _ := local.ZoneBounds()
		if change.IsZero() || !begin.Before(change) {
			return begin
		}
		before := change.Add(-time.Second)
		if dayNumber(before) != dayNumber(local) || wallSeconds(before)/seconds != wallSeconds(local)/seconds {
			return change
		}
		t = before
	}
}

// floorDays is Floor for a number of days.
func floorDays(t time.Time, days int64, zone *time.Location) time.Time {
	n := dayNumber(t.In(zone))
	// A clock that is set back soon after midnight shows the day before once more.
	if !startOf(n+1, zone).After(t) {
		n++
	}
	if days > 1 {
		n = mondayDay + int64(math.Floor(float64(n-mondayDay)/float64(days)))*days
	}

	return startOf(n, zone)
}

// End returns the moment at which the interval ends that begins at a moment.
func End(begin time.Time, length time.Duration, zone *time.Location) time.Time {
	end, step := begin, time.Duration(0)
	for !end.After(begin) {
		// A change of the clock may have made it longer.
		step += length
		end = Floor(begin.Add(step), length, zone)
	}

	// Or shorter, so that others begin before this one.
	for {
		earlier := Floor(end.Add(-1), length, zone)
		if !earlier.After(begin) {
			return end
		}
		end = earlier
	}
}

// Fits reports whether no interval of a zone divides one of a length in UTC. It looks at the time
// from one moment to another.
func Fits(length time.Duration, from, to time.Time, zone *time.Location) bool {
	for t := to; ; {
		t = t.In(zone)
		change, _ := t.ZoneBounds()
		_, offset := t.Zone()
		switch whole := int64(length / time.Second); {
		case int64(offset)%whole != 0:
			return false
		case change.IsZero() || !change.After(from):
			return true
		case change.Unix()%whole != 0:
			return false
		}
		t = change.Add(-time.Second)
	}
}

// wallSeconds returns how much of the day the clock shows.
func wallSeconds(t time.Time) int64 {
	h, m, s := t.Clock()

	return int64(h*60*60 + m*60 + s)
}

// dayNumber returns the number of days from 1970 to the date that the calendar shows.
func dayNumber(t time.Time) int64 {
	y, m, d := t.Date()

	return time.Date(y, m, d, 0, 0, 0, 0, time.UTC).Unix() / daySeconds
}

func startOf(day int64, zone *time.Location) time.Time {
	y, m, d := time.Unix(day*daySeconds, 0).UTC().Date()

	return StartOfDay(y, m, d, zone)
}
