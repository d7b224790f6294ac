package calendar_test

import (
	"testing"
	"time"
	_ "time/tzdata"

	"pgregory.net/rapid"

	"promptspool/api/wire/calendar"
)

// zones have offsets of hours, halves and quarters, changes at midnight, by half an hour and by a
// day, and clocks that showed a day twice.
var zones = []string{
	"UTC", "Europe/London", "Europe/Berlin", "America/Los_Angeles", "Asia/Kolkata", "Asia/Kathmandu",
	"Australia/Lord_Howe", "America/St_Johns", "America/Sao_Paulo", "Asia/Beirut", "Africa/Cairo",
	"Pacific/Apia", "Africa/Casablanca", "America/Havana", "Pacific/Chatham", "+05:45", "-03:30",
}

var lengths = []time.Duration{
	time.Second, 5 * time.Second, time.Minute, 5 * time.Minute, time.Hour, 2 * time.Hour, 4 * time.Hour,
	12 * time.Hour, 24 * time.Hour, 7 * 24 * time.Hour, 28 * 24 * time.Hour,
}

func zone(t rapid.TB, name string) *time.Location {
	z, ok := calendar.ParseZone(name)
	if !ok {
		t.Fatalf("no zone %s", name)
	}

	return z
}

// moments draws times, most of them near a change of the clock.
func moments(t *rapid.T, z *time.Location) time.Time {
	from := time.Date(1975, 1, 1, 0, 0, 0, 0, time.UTC)
	at := from.Add(time.Duration(rapid.Int64Range(0, 60*365*24*3600).Draw(t, "second")) * time.Second).In(z)

	if _, change := at.ZoneBounds(); !change.IsZero() && rapid.Bool().Draw(t, "near a change") {
		at = change.Add(time.Duration(rapid.IntRange(-90_000, 90_000).Draw(t, "seconds from it")) * time.Second)
	}

	return at
}

func TestEveryMomentIsInOneStretch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		z := zone(t, rapid.SampledFrom(zones).Draw(t, "zone"))
		i := rapid.IntRange(0, len(lengths)-1).Draw(t, "length")
		length, at := lengths[i], moments(t, z)

		begin := calendar.Floor(at, length, z)
		end := calendar.End(begin, length, z)
		if begin.After(at) || !end.After(at) {
			t.Fatalf("%v is in %v to %v", at.In(z), begin.In(z), end.In(z))
		}

		// Each moment between has the same beginning, and the end is the next one.
		inside := begin.Add(time.Duration(rapid.Int64Range(0, int64(end.Sub(begin))-1).Draw(t, "inside")))
		if again := calendar.Floor(inside, length, z); !again.Equal(begin) {
			t.Errorf("%v, between %v and %v, is in a stretch of its own: %v",
				inside.In(z), begin.In(z), end.In(z), again.In(z))
		}
		if next := calendar.Floor(end, length, z); !next.Equal(end) {
			t.Errorf("%v ends at %v, which is in %v", begin.In(z), end.In(z), next.In(z))
		}

		// Shorter ones do not go beyond it.
		shorter := lengths[rapid.IntRange(0, i).Draw(t, "shorter")]
		if first := calendar.Floor(at, shorter, z); first.Before(begin) {
			t.Errorf("%v is in %v (%v), before %v (%v)", at.In(z), first.In(z), shorter, begin.In(z), length)
		}
	})
}

// What fits can be counted by the clocks of UTC and summed up by those of the zone.
func TestWhatFitsIsNotDivided(t *testing.T) {
	fits := map[bool]int{}
	rapid.Check(t, func(t *rapid.T) {
		z := zone(t, rapid.SampledFrom(zones).Draw(t, "zone"))
		part := rapid.SampledFrom([]time.Duration{time.Minute, time.Hour, 24 * time.Hour}).Draw(t, "part")
		from := moments(t, z)
		to := from.Add(time.Duration(rapid.IntRange(0, 200_000).Draw(t, "span")) * time.Second)

		ok := calendar.Fits(part, from, to, z)
		fits[ok]++
		for at := from.Truncate(part); ok && !at.After(to); at = at.Add(part) {
			first, last := max(at.Unix(), from.Unix()), min(at.Add(part).Unix()-1, to.Unix())
			begin := calendar.Floor(time.Unix(first, 0), 24*time.Hour, z)
			if other := calendar.Floor(time.Unix(last, 0), 24*time.Hour, z); !other.Equal(begin) {
				t.Fatalf("the %v of %v is in two days: %v, %v", part, at, begin.In(z), other.In(z))
			}
		}
	})
	if fits[true] == 0 || fits[false] == 0 {
		t.Error("all or none of it fits:", fits)
	}
}

func TestDaysBeginWhereClocksShowIt(t *testing.T) {
	for _, test := range []struct{ zone, day, begin, hours string }{
		{"America/Los_Angeles", "2026-03-08", "2026-03-08T00:00:00-08:00", "23h0m0s"},
		{"America/Los_Angeles", "2026-11-01", "2026-11-01T00:00:00-07:00", "25h0m0s"},
		{"Australia/Lord_Howe", "2026-04-05", "2026-04-05T00:00:00+11:00", "24h30m0s"},
		{"Asia/Beirut", "2026-03-29", "2026-03-29T01:00:00+03:00", "23h0m0s"},
		{"America/Havana", "2026-11-01", "2026-11-01T00:00:00-04:00", "25h0m0s"},
		{"Asia/Kolkata", "2026-11-01", "2026-11-01T00:00:00+05:30", "24h0m0s"},
		{"America/St_Johns", "2010-11-07", "2010-11-07T00:00:00-02:30", "25h0m0s"},
		{"Pacific/Apia", "2011-12-30", "2011-12-31T00:00:00+14:00", "0s"},
		{"UTC", "2026-11-01", "2026-11-01T00:00:00Z", "24h0m0s"},
	} {
		z := zone(t, test.zone)
		day, err := time.Parse(time.DateOnly, test.day)
		if err != nil {
			t.Fatal(err)
		}

		begin := calendar.StartOfDay(day.Year(), day.Month(), day.Day(), z)
		end := calendar.StartOfDay(day.Year(), day.Month(), day.Day()+1, z)
		if got := begin.In(z).Format(time.RFC3339); got != test.begin {
			t.Errorf("%s of %s begins at %s, want %s", test.day, test.zone, got, test.begin)
		}
		if got := end.Sub(begin).String(); got != test.hours {
			t.Errorf("%s of %s has %s, want %s", test.day, test.zone, got, test.hours)
		}
	}
}

func TestZones(t *testing.T) {
	at := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]string{
		"": "12:00", "UTC": "12:00", "Europe/Berlin": "14:00", "+05:30": "17:30", "-03:00": "09:00",
		"Local": "", "Moon/Base": "", "../../etc/passwd": "", "5": "",
	} {
		z, ok := calendar.ParseZone(text)
		if ok != (want != "") || ok && at.In(z).Format("15:04") != want {
			t.Errorf("%q is the zone %v (%v), want %s", text, z, ok, want)
		}
	}
}
