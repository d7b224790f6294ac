package wire

import (
	"fmt"
	"strings"
	"sync"
	"testing"
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
