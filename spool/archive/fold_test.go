package archive_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"promptspool/api/wire"
	"promptspool/spool/archive"
	"promptspool/spool/database/databasetest"
)

// event returns the nth event of the record databasetest.ID(1000), as databasetest.Event does.
func event(t testing.TB, n int, kind wire.Kind, body string) archive.Event {
	t.Helper()
	return databasetest.Event(t, n, kind, databasetest.ID(1000), body)
}

// record folds events and returns the record.
func record(events ...archive.Event) wire.Record {
	states, bodies := databasetest.Fold(events)
	s := states[databasetest.ID(1000)]
	return s.View(context.Background(), s.ShownBody(bodies))
}

func TestFoldSaysWhetherAnythingChanged(t *testing.T) {
	var s archive.State
	e := event(t, 1, wire.KindScore, `{"score":1}`)
	if !s.Fold(e) || s.Fold(e) {
		t.Error("an event must change a state the first time, and only then")
	}
}

func TestTheLatestOfEachPlaceStays(t *testing.T) {
	const early = `{"function_name":"f","kwargs":{},"request_response":{},"request_start_time":1,"request_end_time":2,
		"metadata":{"user":"early","plan":"early"},"prompt_id":"greeting","prompt_version":1,"group_id":"g1",
		"prompt_input_variables":{"who":"early"},"tags":["early"]}`
	const late = `{"function_name":"f","kwargs":{},"request_response":{},"request_start_time":1,"request_end_time":2,
		"metadata":{"lost":"yes"},"prompt_id":"lost","group_id":"lost","tags":["lost"]}`

	rec := record(
		event(t, 9, wire.KindRequest, late),
		event(t, 5, wire.KindMetadata, `{"metadata":{"user":"five"}}`),
		event(t, 3, wire.KindMetadata, `{"metadata":{"user":"three","session":"s"}}`),
		event(t, 4, wire.KindScore, `{"score":40}`),
		event(t, 6, wire.KindScore, `{"score":60}`),
		event(t, 7, wire.KindScore, `{"score":70,"name":"b"}`),
		event(t, 8, wire.KindGroup, `{"group_id":2}`),
		event(t, 1, wire.KindRequest, early),
		event(t, 0, wire.KindMetadata, `{"metadata":{"plan":"before the request"}}`),
	)

	if diff := cmp.Diff(map[string]string{"user": "five", "session": "s", "plan": "early"}, rec.Metadata); diff != "" {
		t.Errorf("metadata (-want +got):\n%s", diff)
	}
	wantScores := []wire.Score{wire.IntegerScore("b", 70), wire.IntegerScore("default", 60)}
	if diff := cmp.Diff(wantScores, rec.Scores); diff != "" {
		t.Errorf("scores (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"2", "g1"}, rec.GroupIDs); diff != "" {
		t.Errorf("groups (-want +got):\n%s", diff)
	}
	if !slices.Equal(rec.Tags, []string{"early"}) || string(rec.Request) != early {
		t.Errorf("the record shows another request than the first: tags %q", rec.Tags)
	}

	one := 1
	want := &wire.RecordPrompt{Name: "greeting", Version: &one, InputVariables: json.RawMessage(`{"who":"early"}`)}
	if diff := cmp.Diff(want, rec.Prompt); diff != "" {
		t.Errorf("prompt (-want +got):\n%s", diff)
	}

	var conflicts []string
	for _, e := range rec.Events {
		if e.Conflict {
			conflicts = append(conflicts, e.ID)
		}
	}
	if !slices.Equal(conflicts, []string{databasetest.ID(9)}) {
		t.Errorf("conflicts %v, want the request that came second", conflicts)
	}
}

func TestARetryWithTheSameContentIsNoConflict(t *testing.T) {
	const body = `{"function_name":"f","kwargs":{},"request_response":{},"request_start_time":1,"request_end_time":2}`
	rec := record(event(t, 1, wire.KindRequest, body), event(t, 2, wire.KindRequest, body))
	if len(rec.Events) != 2 || rec.Events[0].Conflict || rec.Events[1].Conflict {
		t.Errorf("the events are %+v, want two without a conflict", rec.Events)
	}
}

func TestALaterPromptLinkReplacesTheRequestsOwn(t *testing.T) {
	rec := record(
		event(t, 2, wire.KindPrompt, `{"prompt_name":"other","label":"prod","prompt_input_variables":{"a":[1]}}`),
		event(t, 1, wire.KindRequest, `{"prompt_id":"greeting","prompt_version":1}`),
	)
	label := "prod"
	want := &wire.RecordPrompt{Name: "other", Label: &label, InputVariables: json.RawMessage(`{"a":[1]}`)}
	if diff := cmp.Diff(want, rec.Prompt); diff != "" {
		t.Errorf("prompt (-want +got):\n%s", diff)
	}
}

func TestAClockFarAheadDoesNotOrder(t *testing.T) {
	now := databasetest.Start
	for _, c := range []struct {
		ahead time.Duration
		want  time.Time
	}{
		{-time.Hour, now.Add(-time.Hour)},
		{5 * time.Second, now.Add(5 * time.Second)},
		{5*time.Second + 1, now},
		{100 * 365 * 24 * time.Hour, now},
	} {
		e := databasetest.Decode(t, wire.Event{
			ID:         databasetest.ID(1),
			RequestID:  databasetest.ID(2),
			Kind:       wire.KindScore,
			AcceptedAt: now.Add(c.ahead),
			Body:       json.RawMessage(`{"score":1}`),
		}, now)

		if !e.OrderTime.Equal(c.want) || !e.AcceptedAt.Equal(now.Add(c.ahead)) || !e.ArrivedAt.Equal(now) {
			t.Errorf("accepted %v ahead: order time %v, want %v", c.ahead, e.OrderTime, c.want)
		}
	}
}

func TestARecordTakesOnlySoManyEvents(t *testing.T) {
	var s archive.State
	e := event(t, archive.RecordEventsMax-1, wire.KindGroup, `{"group_id":"g"}`)
	for n := range archive.RecordEventsMax - 1 {
		stamp := archive.Stamp{At: databasetest.Start, ID: databasetest.ID(n)}
		s.History = append(s.History, archive.Entry{Stamp: stamp})
	}

	if r := s.Take(e); r.Code != wire.ResultAccepted {
		t.Errorf("the last event that a record takes: %+v", r)
	}
	if r := s.Take(e); r.Code != wire.ResultDuplicate {
		t.Errorf("an event of a full record, sent again: %+v", r)
	}
	e.ID = databasetest.ID(archive.RecordEventsMax)
	if r := s.Take(e); r.Code != wire.ResultInvalid || r.Cause != wire.CauseLimit ||
		!strings.Contains(r.Reason, "10000 events") {
		t.Errorf("one event too many: %+v", r)
	}
	score := event(t, archive.RecordEventsMax+1, wire.KindScore, `{"score":1}`)
	if r := s.Take(score); r.Code != wire.ResultAccepted {
		t.Errorf("a score of a full record: %+v", r)
	}
}

// FuzzFold folds hostile events. Whatever a sidecar sends must be rejected, or give a record
// that can be stored and shown.
func FuzzFold(f *testing.F) {
	for _, body := range []string{
		`{}`, `{"score":1e999}`, `{"request_response":{"usage":{"prompt_tokens":-1,"completion_tokens":1.5}}}`,
		`{"request_start_time":"9999-12-31T23:59:59-23:59","request_end_time":1e30}`,
		`{"metadata":{"\u0000":"\ud800"}}`,
		`{"kwargs":[[[[]]]],"request_response":"x","tags":[null],"prompt_id":1e3,"prompt_input_variables":{"a": {}}}`,
	} {
		f.Add("request", "2026-03-01T12:00:00Z", []byte(body))
		f.Add("prompt", "0000-01-01T00:00:00+23:59", []byte(body))
	}

	f.Fuzz(func(t *testing.T, kind, accepted string, body []byte) {
		line := []byte(`{"id":"` + databasetest.ID(1) + `","kind":"` + kind + `","request_id":"` + databasetest.ID(2) +
			`","accepted_at":"` + accepted + `","sidecar":"s","body":` + string(body) + `}`)
		e, err := wire.ParseEvent(line)
		if err != nil {
			return
		}
		d, err := archive.Decode(e, databasetest.Start)
		if err != nil {
			return
		}

		var s archive.State
		s.Fold(d)
		row, _ := s.Row()
		for _, v := range []any{s, s.View(context.Background(), e.Body), row} {
			if _, err := json.Marshal(v); err != nil {
				t.Fatalf("%T cannot be stored: %v", v, err)
			}
		}
	})
}

// The row of a record is written with each of its scores, so it must not grow with them. The
// record shows all.
func TestARowShowsTheFirstScores(t *testing.T) {
	id := databasetest.ID(1000)
	events := []archive.Event{databasetest.Event(t, 0, wire.KindRequest, id, `{"function_name":"f"}`)}
	for i := range 400 {
		body := fmt.Sprintf(`{"name":"s%03d","score":1}`, 399-i)
		events = append(events, databasetest.Event(t, 1+i, wire.KindScore, id, body))
	}
	state := foldAll(events)

	row, _ := state.Row()
	if n := len(row.Scores); n != 256 || row.Scores[0].Name != "s000" || row.Scores[255].Name != "s255" {
		t.Errorf("the row has %d scores, from %q to %q", n, row.Scores[0].Name, row.Scores[n-1].Name)
	}
	if n := len(state.View(context.Background(), nil).Scores); n != 400 {
		t.Errorf("the record has %d scores", n)
	}
}

func TestFoldingAnExportMakesTheSameRecords(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		events := databasetest.Events(t, 3, 14)
		states, all := databasetest.Fold(events)

		var again []archive.Event
		for _, s := range states {
			bodies := map[string]json.RawMessage{}
			arrived := map[string]time.Time{} // starts of a clock that is ahead count up to then
			for _, h := range s.History {
				arrived[h.ID] = h.ArrivedAt
				if h.Hash != "" {
					bodies[h.ID] = all[h.ID]
				}
			}
			for _, e := range s.Events(bodies) {
				line := e.AppendLine(nil)
				parsed, err := wire.ParseEvent(line)
				if err != nil {
					t.Fatalf("%s: %v", line, err)
				}
				d := databasetest.Decode(t, parsed, arrived[e.ID])
				if link := d.Prompt; link != nil && d.Version > 0 {
					link.Version = d.Version
				}
				if d.Request != nil && d.Request.Prompt != nil && d.Version > 0 {
					d.Request.Prompt.Version = d.Version
				}
				again = append(again, d)
			}
		}

		got, _ := databasetest.Fold(slices.Concat(databasetest.Batches(t, again)...))
		for id, want := range states {
			body := json.RawMessage(nil)
			if want.Listed() {
				body = all[want.Request.ID]
			}

			was, is := want.View(context.Background(), body), got[id].View(context.Background(), body)
			// No event has a price: the archive computes it when it records.
			if diff := cmp.Diff(was, is,
				cmpopts.IgnoreFields(wire.Record{}, "Price")); diff != "" {
				t.Fatalf("record %s, as it was (-) and from its export (+):\n%s", id, diff)
			}
			for i, h := range want.History {
				if !got[id].History[i].At.Equal(h.At) {
					t.Fatalf("event %s is ordered at %v, but was at %v", h.ID, got[id].History[i].At, h.At)
				}
			}
		}
	})
}
