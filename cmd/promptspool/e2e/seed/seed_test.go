package seed

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"testing"
	"time"

	"promptspool/api/wire"
	"promptspool/api/wire/packed/packedtest"
	"promptspool/cmd/promptspool/internal/demo"
)

var update = flag.Bool("update", false, "pack the set of `up --demo` anew")

func TestTheDemoIsTheSetForItsMoment(t *testing.T) {
	packedtest.Check(t, "../../internal/demo/calls.zst", string(encode(New(demo.Base).APICalls())), *update)
}

func TestASetHasWhatScenesCountOn(t *testing.T) {
	want := map[string]int{
		"calls": Calls, "traced": Traced, "failed": Failed,
		"yesterday": YesterdayFailed, "outage": OutageFailed, "phrase": PhraseAnswers,
	}
	// Also just after midnight, and at the end of a day.
	for _, clock := range []string{"00:00:30", "23:59:59"} {
		now, err := time.Parse(time.DateTime, "2026-11-23 "+clock)
		if err != nil {
			t.Fatal(err)
		}
		set := New(now)
		if !reflect.DeepEqual(set, New(now)) {
			t.Fatalf("%s: two sets for the same time differ", clock)
		}
		if got := counts(t, set, now); !maps.Equal(got, want) {
			t.Errorf("%s: the set has %v, want %v", clock, got, want)
		}
	}
}

// counts counts the calls of a set that scenes count on.
func counts(t *testing.T, set Set, now time.Time) map[string]int {
	t.Helper()
	count := map[string]int{"traced": strings.Count(string(encode(set.Traces)), `"name":"chat `)}
	for _, e := range set.Events {
		if e.AcceptedAt.After(now) || strings.Contains(string(e.Body), "{{") {
			t.Fatalf("an event of the future, or a prompt as the template has it: %s, %.200s", e.AcceptedAt, e.Body)
		}
		if e.Kind == wire.KindScore {
			continue
		}

		var c struct {
			Template string          `json:"prompt_id"`
			Version  int             `json:"prompt_version"`
			Status   string          `json:"status"`
			Start    float64         `json:"request_start_time"`
			Response json.RawMessage `json:"request_response"`
		}
		if err := json.Unmarshal(e.Body, &c); err != nil {
			t.Fatal(err)
		}
		failed, day := c.Status == "ERROR", time.UnixMilli(int64(c.Start*1000)).UTC().Format(time.DateOnly)
		on := func(days int) bool { return day == now.AddDate(0, 0, -days).Format(time.DateOnly) }
		for name, is := range map[string]bool{
			"calls":     true,
			"failed":    failed,
			"yesterday": failed && on(1) && fmt.Sprint(c.Template, "@", c.Version) == "support/triage@3",
			"outage":    failed && on(OutageDays) && strings.Contains(string(c.Response), "overloaded_error"),
			"phrase":    strings.Contains(string(c.Response), Phrase),
		} {
			if is {
				count[name]++
			}
		}
	}

	return count
}
