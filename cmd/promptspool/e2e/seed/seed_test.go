package seed

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"promptspool/api/wire"
)

// logged is what a scene may count of a call.
type logged struct {
	Template string            `json:"prompt_id"`
	Version  int               `json:"prompt_version"`
	Status   string            `json:"status"`
	Provider string            `json:"provider_type"`
	Metadata map[string]string `json:"metadata"`
	Start    float64           `json:"request_start_time"`
	Response json.RawMessage   `json:"request_response"`
	Kwargs   struct{ Model string }
}

func TestASetHasWhatScenesCountOn(t *testing.T) {
	// Also just after midnight, and at the end of a day.
	for i, clock := range []string{"00:00:30", "23:59:59"} {
		now, err := time.Parse(time.DateTime, "2026-11-23 "+clock)
		if err != nil {
			t.Fatal(err)
		}
		set := New(now)
		if i == 0 && !reflect.DeepEqual(set, New(now)) {
			t.Fatalf("%s: two sets for the same time differ", clock)
		}

		for _, e := range set.Events {
			if strings.Contains(string(e.Body), "{{") {
				t.Fatalf("%s: a prompt was sent as the template has it: %.200s", clock, e.Body)
			}
		}
		count, values := tally(t, set, now)
		for name, want := range map[string]int{
			"calls": Calls, "failed": Failed, "yesterday": YesterdayFailed, "outage": OutageFailed,
			"phrase": PhraseAnswers,
		} {
			if count[name] != want {
				t.Errorf("%s: %s: %d, want %d", clock, name, count[name], want)
			}
		}
		for name, want := range map[string]int{
			"user_id": Users, "session_id": Sessions, "customer": Customers,
			"provider": 4, "model": 8, "template": 12, "score": 4,
		} {
			if got := len(values[name]); got != want {
				t.Errorf("%s: %s: %d values, want %d", clock, name, got, want)
			}
		}
		if count["long"] < 20 || count["last hour"] < 5 {
			t.Errorf("%s: %d long prompts, %d calls in the last hour", clock, count["long"], count["last hour"])
		}
	}
}

// tally counts the calls of a set, and collects the values of their fields.
func tally(t *testing.T, set Set, now time.Time) (count map[string]int, values map[string]map[string]bool) {
	t.Helper()
	count, values = map[string]int{}, map[string]map[string]bool{}
	note := func(field, value string) {
		if values[field] == nil {
			values[field] = map[string]bool{}
		}
		values[field][value] = true
	}

	for _, e := range set.Events {
		if e.AcceptedAt.After(now) {
			t.Fatalf("an event of the future: %s", e.AcceptedAt)
		}
		if e.Kind == wire.KindScore {
			var s wire.Score
			if err := json.Unmarshal(e.Body, &s); err != nil {
				t.Fatal(err)
			}
			note("score", s.Name)
			continue
		}

		var c logged
		if err := json.Unmarshal(e.Body, &c); err != nil {
			t.Fatal(err)
		}
		note("provider", c.Provider)
		note("model", c.Kwargs.Model)
		note("template", c.Template)
		for key, value := range c.Metadata {
			note(key, value)
		}
		for name, is := range c.is(e, now) {
			if is {
				count[name]++
			}
		}
	}

	return count, values
}

// is tells what a call counts as.
func (c logged) is(e wire.Event, now time.Time) map[string]bool {
	failed := c.Status == "ERROR"
	day := time.UnixMilli(int64(c.Start * 1000)).UTC().Format(time.DateOnly)
	on := func(days int) bool { return day == now.AddDate(0, 0, -days).Format(time.DateOnly) }

	return map[string]bool{
		"calls":     true,
		"failed":    failed,
		"yesterday": failed && on(1) && fmt.Sprint(c.Template, "@", c.Version) == "support/triage@3",
		"outage":    failed && on(OutageDays) && strings.Contains(string(c.Response), "overloaded_error"),
		"phrase":    strings.Contains(string(c.Response), Phrase),
		"long":      len(e.Body) > 37_000,
		"last hour": e.AcceptedAt.After(now.Add(-time.Hour)),
	}
}
