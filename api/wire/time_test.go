package wire

import (
	"encoding/json"
	"math/big"
	"strings"
	"testing"
	"time"
)

// at returns a moment in UTC.
func at(year int, month time.Month, day, hour, minute, second, nanos int) time.Time {
	return time.Date(year, month, day, hour, minute, second, nanos, time.UTC)
}

// readTime decodes a time, given as JSON, from a request.
func readTime(t *testing.T, value string) (time.Time, error) {
	t.Helper()
	w, err := DecodeRequest(parse(t, edit(t, smallest["request"], "request_start_time", value)), true, noon)
	return w.Start, err
}

func TestTimes(t *testing.T) {
	for want, values := range map[time.Time][]string{
		at(2026, 3, 1, 12, 0, 0, 0): {
			"1772366400", "1772366400.0", "1.7723664e9",
			`"2026-03-01T12:00:00Z"`, `"2026-03-01T13:30:00+01:30"`, `"2026-03-01T12:00:00"`,
			`"2026-03-01 12:00:00"`, `"2026-03-01 12:00:00Z"`,
		},
		at(2026, 3, 1, 12, 0, 0, 5e8): {
			"1772366400.5", "1.7723664005E+9", "17723664005e-1",
			`"2026-03-01T13:30:00.5+0130"`, `"2026-03-01 12:00:00.5+00:00"`,
		},
		noon: {"1772366400.123456789", "1772366400.1234567899", `"2026-03-01T12:00:00.123456789Z"`},

		at(2026, 3, 1, 12, 0, 0, 1):             {"1772366400.000000001"},
		at(2026, 3, 1, 12, 0, 0, 123e6):         {`"2026-03-01T12:00:00.123Z"`},
		at(2026, 3, 1, 12, 0, 0, 123456e3):      {`"2026-03-01T12:00:00.123456"`},
		at(2026, 3, 1, 0, 0, 0, 0):              {`"2026-03-01"`, `"2026\u002d03-01"`},
		at(1970, 1, 1, 0, 0, 0, 0):              {"0", "-0.0"},
		at(1970, 1, 1, 0, 0, 2, 0):              {"1.9999999999e0"},
		at(1969, 12, 31, 23, 59, 59, 0):         {"-1"},
		at(1969, 12, 31, 23, 59, 59, 5e8):       {"-0.5"},
		at(1969, 12, 31, 23, 59, 58, 75e7):      {"-1.25", "-1.25e0", "-125e-2"},
		at(1, 1, 1, 0, 0, 1, 0):                 {"-62135596799"},
		at(9999, 12, 31, 23, 59, 59, 999999999): {"253402300799.999999999"},
	} {
		for _, value := range values {
			got, err := readTime(t, value)
			wantFaults(t, err)
			if got != want { // not Equal: the zone is UTC as well
				t.Errorf("%s is %v, want %v", value, got, want)
			}
		}
	}
}

// A number that is no moment in seconds is in another unit, if that makes it a time of a call.
func TestTimesInOtherUnits(t *testing.T) {
	for value, want := range map[string]struct {
		at   time.Time
		unit string
	}{
		"1772366400000":              {at(2026, 3, 1, 12, 0, 0, 0), "milliseconds"},
		"1772366400123.456789":       {noon, "milliseconds"},
		"1.7723664005e12":            {at(2026, 3, 1, 12, 0, 0, 5e8), "milliseconds"},
		"946684800001":               {at(2000, 1, 1, 0, 0, 0, 1e6), "milliseconds"},
		"1772452800123":              {at(2026, 3, 2, 12, 0, 0, 123e6), "milliseconds"}, // a day ahead
		"1772366400123456":           {at(2026, 3, 1, 12, 0, 0, 123456e3), "microseconds"},
		"1772366400123456.789":       {noon, "microseconds"},
		"1772366400123456789":        {noon, "nanoseconds"},
		"1772366400123456789.5":      {noon, "nanoseconds"},
		"1.772366400500000000000E18": {at(2026, 3, 1, 12, 0, 0, 5e8), "nanoseconds"},
	} {
		for _, name := range []string{"request_start_time", "request_end_time"} {
			object := parse(t, edit(t, smallest["request"], name, value))
			w, err := DecodeRequest(object, true, noon)
			wantFaults(t, err)
			l, _ := DecodeLog(object, noon)

			told := " " + name + " was read as " + want.unit + "; send seconds since 1970."
			for _, got := range []struct {
				start, end time.Time
				note       string
			}{{w.Start, w.End, w.Note}, {l.Start, l.End, l.Note}} {
				at := map[string]time.Time{"request_start_time": got.start, "request_end_time": got.end}[name]
				if at != want.at || got.note != told {
					t.Errorf("%s %s is %v,%s want %v,%s", name, value, at, got.note, want.at, told)
				}
			}
		}
	}
}

func TestTimesOfSpans(t *testing.T) {
	for _, number := range []string{
		"1772366400", "1772366400000", "1772366400000000", "1772366400000000000", "1.7723664e9",
	} {
		if got, _ := SpanTime(number); got != at(2026, 3, 1, 12, 0, 0, 0) {
			t.Errorf("%s is %v", number, got)
		}
	}
	for _, number := range []string{"", "0", "5", "-1772366400", "4102444800001", "32503680000", "x", "1e300"} {
		if got, _ := SpanTime(number); !got.IsZero() {
			t.Errorf("%s is %v", number, got)
		}
	}
}

// A number that is a time of a call in no unit is not taken for one, or left out in silence.
func TestNumbersThatAreNoTime(t *testing.T) {
	for _, value := range []string{
		"-62135596800", "-62135596800.5", "253402300800", "9223372036854775808", "-9223372036854775808",
		"9e11", "1e30", "1e300", "1e400", "-1e400", "-1772366400000", "1772366400123456789000",
		"946684800000",                                             // still 1999
		"1772452801000", "1772452801000000", "1772452801000000000", // more than a day ahead
	} {
		got, err := readTime(t, value)
		wantFaults(t, err,
			"request_start_time is not a time of a call, in seconds since 1970 or in any other unit")
		if !got.IsZero() {
			t.Errorf("%s is %v, want none", value, got)
		}
	}
}

// A clock may count from the start of a machine, and 0 means unknown: how long the call took is right.
func TestATimeThatIsNotOfACallIsKeptAndSaid(t *testing.T) {
	for value, want := range map[string]time.Time{
		"123456.5":   at(1970, 1, 2, 10, 17, 36, 5e8),
		"0":          at(1970, 1, 1, 0, 0, 0, 0),
		"-1":         at(1969, 12, 31, 23, 59, 59, 0),
		"4102444800": at(2100, 1, 1, 0, 0, 0, 0),
	} {
		w, err := DecodeRequest(parse(t, edit(t, smallest["request"], "request_start_time", value)), true, noon)
		wantFaults(t, err)
		const told = " request_start_time is not the time of a call, so lists do not go by it."
		if w.Start != want || w.Note != told {
			t.Errorf("%s is %v,%s want %v", value, w.Start, w.Note, want)
		}
	}
}

func TestWhatIsNoTimeIsRefused(t *testing.T) {
	for _, value := range []string{
		`""`, `"now"`, `"1772366400"`, `"2026-13-01"`, `"2026-02-30T12:00:00Z"`, `"12:00:00"`,
		`"2026-03-01T25:00:00Z"`, `"2026-03-01T12:00:00Z "`, `"20260301T120000Z"`,
		`"0001-01-01T00:00:00Z"`, `"0001-01-01T00:00:00+01:00"`, `"0000-06-01"`,
		`"9999-12-31T23:59:59-00:01"`, "true", "{}", "[1]",
	} {
		got, err := readTime(t, value)
		wantFaults(t, err, "request_start_time must be a number of seconds since 1970, or an ISO-8601 time")
		if !got.IsZero() {
			t.Errorf("%s is %v, want none", value, got)
		}
	}
}

// FuzzTime reads a text as a number and as ISO-8601. Every time that comes of it can be
// stored, and that of a number is exact.
func FuzzTime(f *testing.F) {
	f.Fuzz(func(t *testing.T, s string) {
		if moment, ok := ParseTime(s); ok {
			checkMoment(t, moment)
		}

		if s == "" || s != strings.TrimSpace(s) || !isNumber(json.RawMessage(s)) || !json.Valid([]byte(s)) {
			return
		}

		moment, unit := UnixTime(s, noon)
		if moment.IsZero() {
			return
		}
		checkMoment(t, moment)
		if len(s) > 50 || strings.ContainsAny(s, "eE") {
			return // a float's precision, or too large to compute exactly
		}

		want, ok := new(big.Rat).SetString(s)
		if !ok {
			t.Fatalf("%q is not a number", s)
		}
		for unit != "seconds" {
			next := map[string]string{
				"milliseconds": "seconds", "microseconds": "milliseconds", "nanoseconds": "microseconds",
			}
			unit = next[unit]
			want.Quo(want, big.NewRat(1000, 1))
		}
		got := new(big.Rat).SetFrac(big.NewInt(int64(moment.Nanosecond())), big.NewInt(1e9))
		got.Add(got, new(big.Rat).SetInt64(moment.Unix()))
		if off := got.Sub(got, want); off.Abs(off).Cmp(big.NewRat(1, 1e9)) >= 0 {
			t.Errorf("%s is off by %s s", s, off.FloatString(12))
		}
	})
}

// checkMoment checks that a moment is in UTC and survives JSON.
func checkMoment(t *testing.T, moment time.Time) {
	t.Helper()
	if moment.Location() != time.UTC {
		t.Errorf("%v is not in UTC", moment)
	}
	text, err := json.Marshal(moment)
	if err != nil {
		t.Fatalf("%v cannot be stored: %v", moment, err)
	}
	if again, ok := ParseTime(strings.Trim(string(text), `"`)); !ok || again != moment {
		t.Errorf("%v was stored, and read as %v", moment, again)
	}
}
