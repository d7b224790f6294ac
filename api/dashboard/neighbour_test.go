package dashboard

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"testing"
	"time"

	"promptspool/api/wire"
)

// An import by the second or by the day has many calls that started at the same time.
func TestNeighboursAreThoseOfTheListWhereTimesAndValuesAreTheSame(t *testing.T) {
	s := openSite(t)
	const ann = "ann@example.com"
	id := wire.Identity{Account: s.signed[ann].User.AccountID, KeyID: "k", Scope: wire.ScopeFull, Verified: true}

	noon := time.Now().UTC().Truncate(time.Hour).Add(-48 * time.Hour)
	var events []wire.Event
	for n, call := range []struct{ start, latency int }{
		{0, 1}, {60, 1}, {60, 1}, {60, 2}, {60, 1}, {90, 2}, {90, 2}, {120, 1}, {120, 3}, {120, 1},
	} {
		start := noon.Add(time.Duration(call.start) * time.Second)
		body := fmt.Sprintf(`{"function_name":"f","request_start_time":%q,"request_end_time":%q}`,
			start.Format(time.RFC3339), start.Add(time.Duration(call.latency)*time.Second).Format(time.RFC3339))
		events = append(events, wire.Event{
			ID: wire.NewID(), Kind: wire.KindRequest, RequestID: wire.NewIDAt(noon.Add(time.Duration(-n) * time.Hour)),
			AcceptedAt: time.Now().UTC(), Body: json.RawMessage(body),
		})
	}
	if _, err := s.records.Record(t.Context(), id, events); err != nil {
		t.Fatal(err)
	}

	for _, o := range []order{
		{}, {byTime, true}, {"latency_ms", false}, {"latency_ms", true}, {"status", true}, {"accepted_at", true},
	} {
		search := wire.Search{PerPage: 20}
		search.SortBy, search.SortOrder = o.search()
		list, err := s.records.Search(t.Context(), id, search)
		if err != nil || len(list.Items) != len(events) {
			t.Fatalf("%+v: %d rows, %v", o, len(list.Items), err)
		}

		f := filter{Order: o}
		address := func(i int) string {
			if i < 0 || i == len(list.Items) {
				return ""
			}
			return f.Record(list.Items[i].RequestID)
		}
		for i, row := range list.Items {
			r, err := s.records.Request(t.Context(), id, row.RequestID)
			if err != nil {
				t.Fatal(err)
			}
			c := &call{Request: httptest.NewRequestWithContext(t.Context(), "GET", "/", nil), SignedIn: s.signed[ann]}
			previous, next, err := s.d.neighbours(c, f, r)
			if err != nil || previous != address(i-1) || next != address(i+1) {
				t.Errorf("%+v: row %d has the neighbours %q and %q, %v", o, i, previous, next, err)
			}
		}
	}
}
