package api_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"promptspool/api"
	"promptspool/api/wire"
)

// lentKey is a key that may do anything, and what a test changes.
type lentKey wire.Identity

func (k lentKey) Authenticate(context.Context, wire.Secret) (wire.Identity, error) {
	return wire.Identity(k), nil
}

// deliver sends a batch of one event of each kind, accepted at these times, and returns which were
// recorded, and why each other one was not.
func deliver(t *testing.T, id wire.Identity, now time.Time, at ...time.Time) (taken []string, reasons []string) {
	t.Helper()
	kinds := []wire.Kind{wire.KindRequest, wire.KindScore, wire.KindSpan}
	recorder := new(recorder)
	s := start(t, func(c *api.Config) {
		c.Recorder, c.Authenticator = recorder, lentKey(id)
		c.Clock = api.NewClock(func() time.Time { return now })
	})

	var lines strings.Builder
	for _, at := range at {
		for _, kind := range kinds {
			e := wire.Event{
				ID: wire.NewID(), Kind: kind, RequestID: wire.NewID(), AcceptedAt: at, Sidecar: "s", Body: []byte(`{}`),
			}
			lines.Write(e.AppendLine(nil))
		}
	}
	got := s.call("POST", "/sync/events", lines.String(), "X-API-KEY", "k")
	if got.Status != 200 {
		t.Fatalf("%+v", got)
	}

	for _, e := range recorder.events {
		taken = append(taken, fmt.Sprintf("%s at %v", e.Kind, e.AcceptedAt.Sub(now).Round(time.Minute)))
	}
	for _, r := range got.Refused {
		if r.Code != wire.ResultForbidden {
			t.Errorf("an event is refused as %s", r.Code)
		}
		reasons = append(reasons, r.Reason)
	}
	if got.Accepted != len(taken) || len(taken)+len(reasons) != len(at)*len(kinds) {
		t.Errorf("the answer %+v does not account for all events", got)
	}
	return taken, reasons
}

func TestEventsOfABatchAreJudgedByWhatTheirKeyMay(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		scope   wire.Scope
		taken   string
		refused int
		reason  string
	}{
		{wire.ScopeApp, "[request at 0s score at 0s span at 0s]", 0, ""},
		{wire.ScopeLog, "[request at 0s span at 0s]", 1, "the key key_1 has the scope log, and may not score"},
		{wire.ScopeScore, "[score at 0s]", 2, "the key key_1 has the scope score, and may not log"},
		{wire.ScopeFull &^ wire.ScopeApp, "[]", 3, "may not"},
	} {
		id := wire.Identity{Account: "a", KeyID: "key_1", Scope: tt.scope, Verified: true}
		taken, reasons := deliver(t, id, now, now)
		if fmt.Sprint(taken) != tt.taken || len(reasons) != tt.refused ||
			!strings.Contains(strings.Join(reasons, ""), tt.reason) {
			t.Errorf("a key of scope %s: %v, and %q", tt.scope, taken, reasons)
		}
	}
}

// Which right a new kind of event needs, only the server knows that knows the kind.
func TestAnEventOfANewKindIsLeftToTheRecorder(t *testing.T) {
	for _, scope := range []wire.Scope{wire.ScopeApp, wire.ScopeScore, wire.ScopeFetch} {
		recorder := new(recorder)
		s := start(t, func(c *api.Config) {
			c.Recorder = recorder
			c.Authenticator = lentKey{Account: "a", KeyID: "key_1", Scope: scope, Verified: true}
		})
		e := wire.Event{
			ID: wire.NewID(), Kind: "annotation", RequestID: wire.NewID(), AcceptedAt: time.Now(), Sidecar: "s",
			Body: []byte(`{}`),
		}
		got := s.call("POST", "/sync/events", string(e.AppendLine(nil)), "X-API-KEY", "k")
		if got.Status != 200 || len(got.Refused) != 0 || len(recorder.events) != 1 {
			t.Errorf("a key of scope %s: %+v", scope, got)
		}
	}
}

func TestAKeyDeliversWhatWasAcceptedBeforeItsEnd(t *testing.T) {
	end := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	id := wire.Identity{
		Account: "a", KeyID: "key_1", Scope: wire.ScopeScore, Expires: end, Expired: true, Verified: true,
	}
	for _, tt := range []struct {
		after string // the end, when the batch arrives
		at    []string
		taken int
	}{
		{"720h", []string{"-24h", "-1ns", "0s", "5m"}, 4}, // clocks differ
		{"720h", []string{"5m1s", "24h"}, 0},
		{"-1m", []string{"24h"}, 1}, // nothing is accepted in the future
		{"1h", []string{"24h", "1000h"}, 0},
	} {
		moment := func(text string) time.Time {
			d, err := time.ParseDuration(text)
			if err != nil {
				t.Fatal(err)
			}
			return end.Add(d)
		}
		var at []time.Time
		for _, text := range tt.at {
			at = append(at, moment(text))
		}

		taken, reasons := deliver(t, id, moment(tt.after), at...)
		late := 0
		for _, r := range reasons {
			if strings.Contains(r, "expired on 2026-03-01T12:00:00Z, before this was accepted") {
				late++
			}
		}
		if len(taken) != tt.taken || late != len(tt.at)-tt.taken {
			t.Errorf("%v after the end, accepted at %v: %v, and %q", tt.after, tt.at, taken, reasons)
		}
	}
}
