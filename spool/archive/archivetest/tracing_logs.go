package archivetest

import (
	"encoding/json"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"promptspool/api/otlp"
	"promptspool/api/wire"
	"promptspool/spool/archive"
)

// recorded returns the events of a recorded request of an OTLP exporter, in protobuf.
func recorded(t *testing.T, name string) (events []wire.Event) {
	t.Helper()
	file, err := os.ReadFile("../../../api/otlp/testdata/" + name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	var payload struct {
		Path string
		Body []byte `json:"body_base64"`
	}
	if err := json.Unmarshal(file, &payload); err != nil {
		t.Fatal(err)
	}

	add := func(kind wire.Kind, recordID string, body json.RawMessage) error {
		id, err := wire.SpanEventID(recordID, body)
		events = append(events, wire.Event{
			ID:         id,
			RequestID:  recordID,
			Kind:       kind,
			AcceptedAt: Start.Add(seconds(len(events))),
			Sidecar:    sidecars[0],
			Body:       body,
		})
		return err
	}
	if payload.Path == "/v1/logs" {
		_, err = otlp.Logs(payload.Body, otlp.Protobuf, func(l otlp.Log) error {
			return add(wire.KindLog, wire.LogRecordID(l.TraceID, l.SpanID, l.At), l.Body)
		})
	} else {
		_, err = otlp.Traces(payload.Body, otlp.Protobuf, func(s otlp.Span) error {
			return add(wire.KindSpan, wire.SpanRecordID(s.TraceID, s.SpanID, s.Start), s.Body)
		})
	}
	if err != nil || len(events) == 0 {
		t.Fatalf("%s: %d events, %v", name, len(events), err)
	}

	return events
}

// joiningLogs checks that log records become part of the call of their span, whichever
// comes first, and that none waits then.
func joiningLogs(t *testing.T, open Open) {
	s, _ := open(t)
	spans, logs := recorded(t, "otel-openai-multi-turn"), recorded(t, "otel-openai-multi-turn-logs")
	judged := logs[len(logs)-1]
	judged.Body = json.RawMessage(`{"resource":{},"scope":{},"log":{"eventName":"gen_ai.evaluation.result",` +
		`"timeUnixNano":"1","traceId":` + member(t, judged.Body, "traceId") + `,"spanId":` +
		member(t, judged.Body, "spanId") + `,"attributes":[` +
		`{"key":"gen_ai.evaluation.name","value":{"stringValue":"relevance"}},` +
		`{"key":"gen_ai.evaluation.score.value","value":{"doubleValue":0.85}}]},"index":99}`)
	judged.ID = ID(7)
	all := slices.Concat(spans, logs, []wire.Event{judged})

	backwards := slices.Clone(all)
	slices.Reverse(backwards)
	orders := map[string][][]wire.Event{
		"together":   {all},
		"spans":      {spans, logs, {judged}},
		"logs":       {{judged}, logs, spans},
		"one by one": slices.Collect(slices.Chunk(all, 1)),
		"backwards":  slices.Collect(slices.Chunk(backwards, 1)),
		"twice":      {logs[:4], spans, logs, all, backwards},
	}

	// The span's record is the same in every account, but for its history.
	seen := map[string]wire.Record{}
	for name, batches := range orders {
		a := overStore(s)
		id := wire.Identity{Account: name, Scope: wire.ScopeFull}
		for _, batch := range batches {
			results, err := a.Record(t.Context(), id, batch)
			if err != nil || slices.ContainsFunc(results, func(r wire.Result) bool { return r.Reason != "" }) {
				t.Fatalf("%s: %+v, %v", name, results, err)
			}
		}

		for _, e := range spans {
			r, err := a.Request(t.Context(), id, e.RequestID)
			if err != nil {
				t.Fatal(err)
			}
			r.Events = nil
			if _, ok := seen[e.ID]; !ok {
				seen[e.ID] = r
			}
			if diff := cmp.Diff(seen[e.ID], r); diff != "" {
				t.Errorf("%s: the record differs from that of another order:\n%s", name, diff)
			}
		}
		if _, _, tally, err := s.Orphans(t.Context(), name, "", 0); tally != (archive.Orphans{}) || err != nil {
			t.Errorf("%s: %+v wait, %v", name, tally, err)
		}
		if n := search(t, s, name, wire.Search{}).Total; n != 2 {
			t.Errorf("%s: %d requests are listed, want the two of four spans", name, n)
		}
	}

	scores := 0
	for _, r := range seen {
		scores += len(r.Scores)
		if r.Request != nil && (r.InputExcerpt == "" || r.OutputExcerpt == "") {
			t.Errorf("the call has no messages: %s", r.Span)
		}
	}
	if scores != 1 {
		t.Errorf("%d scores, want 1", scores)
	}
}

// member returns a member of a stored log record.
func member(t *testing.T, body json.RawMessage, name string) string {
	t.Helper()
	var stored struct{ Log map[string]json.RawMessage }
	if err := json.Unmarshal(body, &stored); err != nil {
		t.Fatal(err)
	}

	return string(stored.Log[name])
}
