package wire

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
)

func TestNewIDsAreUUIDv7sThatNeverGoBack(t *testing.T) {
	last := ""
	for range 10_000 {
		id := NewID()
		if got, err := ParseID(id); err != nil || got != id {
			t.Fatalf("%q is not an id: %v", id, err)
		}
		if id <= last {
			t.Fatalf("%s follows %s, but is not greater", id, last)
		}
		last = id
	}
}

func TestNewIDsOfManyCallersDiffer(t *testing.T) {
	var wg sync.WaitGroup
	ids := make([][1000]string, 8)
	for i := range ids {
		wg.Go(func() {
			for n := range ids[i] {
				ids[i][n] = NewID()
			}
		})
	}
	wg.Wait()

	seen := map[string]bool{}
	for i := range ids {
		for _, id := range ids[i] {
			if seen[id] {
				t.Fatalf("%s was returned twice", id)
			}
			seen[id] = true
		}
	}
}

func TestParseID(t *testing.T) {
	for _, s := range []string{someID, strings.ToUpper(someID)} {
		if got, err := ParseID(s); err != nil || got != someID {
			t.Errorf("ParseID(%s) is %q, %v; want %s", s, got, err, someID)
		}
	}

	for what, s := range map[string]string{
		"empty":                            "",
		"a number":                         "12345",
		"another version":                  "0195517d-2c00-4abc-8def-0123456789ab",
		"another variant":                  "0195517d-2c00-7abc-cdef-0123456789ab",
		"without dashes":                   strings.ReplaceAll(someID, "-", ""),
		"in braces":                        "{" + someID + "}",
		"as a URN":                         "urn:uuid:" + someID,
		"with a blank":                     someID[:35] + " ",
		"cut short":                        someID[:35],
		"with a sign that is no digit":     someID[:35] + "g",
		"dashes elsewhere":                 "0195517d2-c00-7abc-8def-0123456789ab",
		"of 36 bytes and fewer characters": someID[:34] + "é",
	} {
		if got, err := ParseID(s); err == nil || got != "" {
			t.Errorf("%s: ParseID(%q) is %q, %v", what, s, got, err)
		}
	}
}

// If a result changed, a call retried across an upgrade would be logged twice.
func TestDeriveIDNeverChanges(t *testing.T) {
	for key, want := range map[string]string{
		"":       "00000000-0000-7b56-8ecc-1effc273c6aa",
		"order1": "00000000-0000-747f-b7b4-5349d993873e",
		"é\x00":  "00000000-0000-790d-956d-29d66e4b9680",
	} {
		got := DeriveID(key)
		same(t, fmt.Sprintf("id derived from %q", key), got, want)
		if _, err := ParseID(got); err != nil {
			t.Errorf("%s is not an id: %v", got, err)
		}
	}
}

func TestIDsOfSpansNeverChange(t *testing.T) {
	trace, span := [16]byte{1, 2, 3}, [8]byte{4, 5}
	const start = 1_795_318_943_782_000_000

	record := SpanRecordID(trace, span, start)
	if got := SpanRecordID(trace, span, start); got != record {
		t.Errorf("%s and %s for one span", record, got)
	}
	id, err := SpanEventID(record, []byte(`{"a":1}`))
	if err != nil {
		t.Fatal(err)
	}
	changed, _ := SpanEventID(record, []byte(`{"a":2}`))
	if id == changed {
		t.Error("a changed body has the same event id")
	}

	// Both lie in the week of the start, whenever they are made.
	for _, s := range []string{record, id, changed} {
		if _, err := ParseID(s); err != nil {
			t.Errorf("%s: %v", s, err)
		}
		if sec, nsec := uuid.MustParse(s).Time().UnixTime(); sec*1e9+nsec != start {
			t.Errorf("%s has the time %d.%09d", s, sec, nsec)
		}
	}

	// As they were when the first of them were stored.
	if record != "01a20159-1026-766d-9b6e-e40ca046f9a2" || id != "01a20159-1026-7e13-ab99-d576a9be156f" {
		t.Errorf("record %s and event %s have changed", record, id)
	}
	for _, start := range []uint64{0, 5, 1 << 63, 1<<64 - 1} {
		if got := SpanRecordID(trace, span, start); got[:13] != "00000000-0000" {
			t.Errorf("a start of %d gives %s", start, got)
		}
	}
}

func TestIDsOfLogRecordsFollowFromTheSpanAndTheDay(t *testing.T) {
	trace, span := [16]byte{1, 2, 3}, [8]byte{4, 5}
	const at, day = 1_795_318_943_782_000_000, 86_400_000_000_000

	// As it was when the first of them were stored.
	record := LogRecordID(trace, span, at)
	if record != "01a2008d-7400-7465-b257-12c6442a72cf" || LogRecordID(trace, span, at/day*day) != record {
		t.Errorf("record %s", record)
	}
	others := []string{
		LogRecordID(trace, span, at+day), LogRecordID(trace, [8]byte{4}, at), SpanRecordID(trace, span, at/day*day),
	}
	if slices.Contains(others, record) {
		t.Errorf("%s is the record of something else: %v", record, others)
	}
	for _, at := range []uint64{0, 5, 1 << 63, 1<<64 - 1} {
		if got := LogRecordID(trace, span, at); got[:13] != "00000000-0000" {
			t.Errorf("a time of %d gives %s", at, got)
		}
	}
}
