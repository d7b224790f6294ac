package records_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"promptspool/api/wire"
	"promptspool/spool/archive/records"
	"promptspool/spool/database/databasetest"
)

// archiveAt returns an archive whose clock stands still at this moment.
func archiveAt(t *testing.T, now time.Time) *records.Service {
	t.Helper()
	return newServer(t, at(func() time.Time { return now })).Service
}

func forged(n int, requestID string, at time.Time, user string) wire.Event {
	body := fmt.Sprintf(`{"function_name":"f","kwargs":{},"request_response":{},`+
		`"request_start_time":1,"request_end_time":2,"metadata":{"user":%q}}`, user)

	return wire.Event{
		ID:         databasetest.ID(n),
		Kind:       wire.KindRequest,
		RequestID:  requestID,
		AcceptedAt: at,
		Body:       json.RawMessage(body),
	}
}

// written writes events with a key of a scope.
func written(t *testing.T, a *records.Service, scope wire.Scope, events ...wire.Event) {
	t.Helper()
	results, err := a.Record(t.Context(), wire.Identity{Account: "acme", Scope: scope}, events)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		if r.Code != wire.ResultAccepted {
			t.Fatalf("%+v", r)
		}
	}
}

func TestAnAppKeyCannotWriteHistoryOfLongAgo(t *testing.T) {
	now := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	a := archiveAt(t, now)
	id := wire.Identity{Account: "acme"}
	ages := []time.Duration{24 * time.Hour, 300 * 24 * time.Hour, 500 * 24 * time.Hour, 2000 * 24 * time.Hour}
	for i, age := range ages {
		written(t, a, wire.ScopeApp, forged(i, databasetest.ID(1000+i), now.Add(-age), "ann"))
		written(t, a, wire.ScopeFull, forged(100+i, databasetest.ID(2000+i), now.Add(-age), "ann"))

		imported, err := a.Request(t.Context(), id, databasetest.ID(2000+i))
		if err != nil || !imported.AcceptedAt.Equal(now.Add(-age)) {
			t.Errorf("a request that a full key imports of %v ago is of %v (%v)", age, imported.AcceptedAt, err)
		}

		rec, err := a.Request(t.Context(), id, databasetest.ID(1000+i))
		if err != nil {
			t.Fatal(err)
		}
		got := now.Sub(rec.AcceptedAt)
		within := age < 400*24*time.Hour
		if within && got != age || got > 400*24*time.Hour || !within && got < 399*24*time.Hour {
			t.Errorf("a request that an app key wrote of %v ago is of %v ago", age, got)
		}
	}
}

// The events of a sidecar that comes back after years keep their order, in whatever batches
// they arrive.
func TestEventsOfLongAgoKeepTheirOrder(t *testing.T) {
	now := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	a := archiveAt(t, now)
	written(t, a, wire.ScopeApp, forged(1, databasetest.ID(1000), now.AddDate(-3, 0, 0), "ann"))
	for _, n := range []int{4, 3, 2} {
		e := wire.Event{
			ID:         databasetest.ID(n),
			Kind:       wire.KindScore,
			RequestID:  databasetest.ID(1000),
			AcceptedAt: now.AddDate(-2, 0, n),
		}
		e.Body = json.RawMessage(fmt.Sprintf(`{"request_id":%q,"score":%d}`, e.RequestID, n))
		written(t, a, wire.ScopeApp, e)
	}

	rec, err := a.Request(t.Context(), wire.Identity{Account: "acme"}, databasetest.ID(1000))
	if err != nil || len(rec.Scores) != 1 || rec.Scores[0].Number != 4 {
		t.Errorf("the scores are %+v (%v)", rec.Scores, err)
	}
}

func TestAForgedOlderRequestHidesNothing(t *testing.T) {
	now := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	a := archiveAt(t, now)
	id := wire.Identity{Account: "acme"}
	stood := forged(5, databasetest.ID(1000), now, "ann")
	older := forged(6, databasetest.ID(1000), now.AddDate(-6, 0, 0), "mallory")
	written(t, a, wire.ScopeApp, stood)
	written(t, a, wire.ScopeApp, older, forged(7, databasetest.ID(1000), now.AddDate(-6, 0, 0), "mallory"))

	rec, err := a.Request(t.Context(), id, databasetest.ID(1000))
	if err != nil {
		t.Fatal(err)
	}
	if len(rec.Conflicts) != 1 || rec.Conflicts[0].EventID != stood.ID ||
		string(rec.Conflicts[0].Request) != string(stood.Body) {
		t.Errorf("the content from before is not shown: %+v", rec.Conflicts)
	}

	deleted, err := a.Delete(t.Context(), id, wire.Deletion{Key: "user", Value: "ann", Before: now})
	if err != nil || deleted.Records != 1 {
		t.Errorf("deleting what ann wrote deletes %d records (%v), want 1", deleted.Records, err)
	}
}

func TestStatisticsReachBackForCenturies(t *testing.T) {
	now := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	rows := make([]wire.Row, 10_200)
	for i := range rows {
		template := "greet"
		rows[i] = wire.Row{ListTime: now.AddDate(0, 0, -28*i), Engine: "m", Status: "SUCCESS", PromptName: &template}
	}
	for name, q := range map[string]wire.StatisticsQuery{"API": {}, "page": {PointsMax: 50}} {
		analytics, templates, err := databasetest.Statistics(rows, q)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}

		most := 200
		if q.PointsMax > 0 {
			most = q.PointsMax + 1
		}

		sum := int64(0)
		for _, s := range analytics.Stats {
			sum += s.Requests
			if strings.HasPrefix(s.Date, "-") {
				t.Errorf("a bucket begins %s", s.Date)
			}
		}
		if len(analytics.Stats) > most || sum != int64(len(rows)) || templates.LeftOut > 0 {
			t.Errorf("%s: %d points with %d requests", name, len(analytics.Stats), sum)
		}
	}

	// A bucket that the caller chose is not widened.
	_, _, err := databasetest.Statistics(rows, wire.StatisticsQuery{Bucket: "hour"})
	if !wire.IsCode(err, wire.CodeInvalid) {
		t.Errorf("the caller's bucket of an hour: %v, want %s", err, wire.CodeInvalid)
	}
}
