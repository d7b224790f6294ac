package databasetest

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"promptspool/api/otlp"
	"promptspool/api/otlp/otlptest"
	"promptspool/api/wire"
	"promptspool/metrics"
	"promptspool/spool/archive"
	"promptspool/spool/archive/records"
)

// recorded returns the events of a recorded request of an OTLP exporter.
func recorded(t *testing.T, name string) []wire.Event {
	t.Helper()
	all := otlptest.Payloads(t, "../../../api/otlp/testdata", "../../../api/calls/otel/testdata/payloads")
	i := slices.IndexFunc(all, func(p otlptest.Payload) bool { return p.Name == name })
	if i < 0 {
		t.Fatal("no payload is called", name)
	}

	return eventsOf(t, all[i])
}

// eventsOf returns the events of a request of an OTLP exporter.
func eventsOf(t *testing.T, payload otlptest.Payload) (events []wire.Event) {
	t.Helper()
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
	addSpan := func(s otlp.Span) error {
		if s.Plumbing {
			return nil
		}
		return add(wire.KindSpan, wire.SpanRecordID(s.TraceID, s.SpanID, s.Start), s.Body)
	}
	var err error
	if payload.Path == "/v1/logs" {
		_, err = otlp.Logs(t.Context(), payload.Body, payload.Form, func(l otlp.Log) error {
			return add(wire.KindLog, wire.LogRecordID(l.TraceID, l.SpanID, l.At), l.Body)
		}, addSpan)
	} else {
		_, err = otlp.Traces(t.Context(), payload.Body, payload.Form, addSpan)
	}
	if err != nil || len(events) == 0 {
		t.Fatalf("%s: %d events, %v", payload.Name, len(events), err)
	}

	return events
}

// joiningLogs checks that log records become part of the call of their span, whichever
// comes first, and that none waits then.
func joiningLogs(t *testing.T, open Open) {
	s, _ := open(t)
	spans, logs := recorded(t, "otel-openai-multi-turn"), recorded(t, "otel-openai-multi-turn-logs")
	last := logs[len(logs)-1]
	at, err := strconv.ParseInt(strings.Trim(member(t, last.Body, "timeUnixNano"), `"`), 10, 64)
	if err != nil {
		t.Fatal(err)
	}

	// A judgement may lack its time, and come days before or after its span. Of those of one
	// name the latest counts.
	judged := []wire.Event{judgement(t, last, 0, "timeless", 1)}
	judged[0].AcceptedAt = time.Unix(0, at)
	for _, hours := range []int64{-20, 20, 100} {
		judged = append(judged, judgement(t, last, at+hours*int64(time.Hour), "relevance", hours))
	}

	// The call may be logged as well, in its span's record.
	logged := wire.Event{
		ID:         ID(8),
		Kind:       wire.KindRequest,
		AcceptedAt: Start,
		Sidecar:    sidecars[1],
		Body: json.RawMessage(`{"function_name":"logged","kwargs":{},"request_response":{},` +
			`"request_start_time":1,"request_end_time":2}`),
	}
	for _, e := range spans {
		if strings.Contains(string(e.Body), member(t, last.Body, "spanId")) && logged.RequestID == "" {
			logged.RequestID = e.RequestID
		}
	}
	all := slices.Concat(spans, logs, judged, []wire.Event{logged})

	backwards := slices.Clone(all)
	slices.Reverse(backwards)
	orders := map[string][][]wire.Event{
		"together":  {all},
		"logs":      {{logged}, judged, logs, spans},
		"backwards": slices.Collect(slices.Chunk(backwards, 1)),
		"twice":     {logs[:4], spans, logs, all, backwards},
	}

	// The span's record is the same in every account, but for its history.
	seen := map[string]wire.Record{}
	for name, batches := range orders {
		a := serving(s, time.Unix(0, at).Add(200*time.Hour))
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
		if has, err := s.Counts(t.Context(), name); has.Orphans != (archive.Orphans{}) || err != nil {
			t.Errorf("%s: %+v wait, %v", name, has, err)
		}
		if n := search(t, s, name, wire.Search{}).Total; n != 2 {
			t.Errorf("%s: %d requests are listed, want the two of four spans", name, n)
		}
	}

	scores := ""
	for _, r := range seen {
		for _, s := range r.Scores {
			scores += fmt.Sprint(s, " ", s.Reason(), "; ")
		}
		if r.Request != nil && r.RequestID != logged.RequestID && (r.InputExcerpt == "" || r.OutputExcerpt == "") {
			t.Errorf("the call has no messages: %s", r.Span)
		}
	}
	if scores != "relevance=1 because of 100; timeless=0.01 because of 1; " {
		t.Errorf("the scores are %s, want the timeless one and the latest of the others", scores)
	}
}

// serving returns the service over a store, at a moment.
func serving(s archive.Store, now time.Time) *records.Service {
	return records.New(records.Config{
		Store:   s,
		Metrics: metrics.New("server", "test"),
		Logger:  slog.New(slog.NewTextHandler(io.Discard, nil)),
		Now:     func() time.Time { return now },
	})
}

// detailed checks that the log record with the details of a call is a request by itself, and part of
// the request of its span once that is there, whichever comes first.
func detailed(t *testing.T, open Open) {
	s, _ := open(t)
	a := serving(s, Start.AddDate(1, 0, 0))
	record := func(account string, events []wire.Event) wire.Identity {
		id := wire.Identity{Account: account, Scope: wire.ScopeFull}
		results, err := a.Record(t.Context(), id, events)
		if err != nil || slices.ContainsFunc(results, func(r wire.Result) bool { return r.Reason != "" }) {
			t.Fatalf("%+v, %v", results, err)
		}
		return id
	}

	// The second call names no span.
	logs := recorded(t, "otel-genai-logs")
	id := record("sampled", slices.Concat(logs, logs))
	rows := search(t, s, "sampled", wire.Search{}).Rows
	if len(rows) != 2 || rows[0].InputExcerpt != "And order 7?" || *rows[0].InputTokens != 20 {
		t.Fatalf("the list has %+v", rows)
	}
	alone, err := a.Request(t.Context(), id, rows[1].RequestID)
	if err != nil || alone.FunctionName != "chat gemini-2.5-flash" || alone.Model != "gemini-2.5-flash" ||
		*alone.InputTokens != 97 || *alone.OutputTokens != 12 || alone.OutputExcerpt != "Cancelled." ||
		alone.FinishReason != "stop" || alone.Blueprint == nil || alone.LatencyMS != nil ||
		alone.StartTime.UnixNano() != 1795664502440000000 || alone.Metadata["session_id"] != "conv-42" {
		t.Errorf("without its span the call is %+v, %v", alone, err)
	}
	if trace, err := a.Trace(t.Context(), id, alone.TraceID); err != nil || len(trace.Spans) != 1 {
		t.Errorf("its trace has %+v, %v", trace, err)
	}

	// With its span it is one call, and so it is for a judgement that names its response.
	judged := eventsOf(t, otlptest.Payload{Path: "/v1/logs", Form: otlp.JSON, Body: []byte(
		`{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"eventName":"gen_ai.evaluation.result","attributes":[` +
			`{"key":"gen_ai.evaluation.name","value":{"stringValue":"Relevance"}},` +
			`{"key":"gen_ai.evaluation.score.value","value":{"doubleValue":0.87}},` +
			`{"key":"gen_ai.response.id","value":{"stringValue":"resp-3f9a1c5e7b2d4f608a1c"}}]}]}]}]}`)})
	judged[0].AcceptedAt = time.Unix(0, 1795664504000000000)
	events := slices.Concat(recorded(t, "otel-genai"), logs[:1], judged)
	record("together", events)
	want := search(t, s, "together", wire.Search{}).Rows
	if len(want) != 3 || fmt.Sprint(want[0].Scores) != "[Relevance=0.87]" || want[0].RequestID == alone.RequestID ||
		*want[0].InputTokens != 97 || *want[0].Latency != 0.099 {
		t.Fatalf("with its span the list has %+v", want)
	}
	slices.Reverse(events)
	record("last first", events)
	if diff := cmp.Diff(want, search(t, s, "last first", wire.Search{}).Rows); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// judgement returns a log record that judges a call, of which it gets another log record.
func judgement(t *testing.T, of wire.Event, at int64, name string, percent int64) wire.Event {
	t.Helper()
	trace, err := hex.DecodeString(strings.Trim(member(t, of.Body, "traceId"), `"`))
	span, err2 := hex.DecodeString(strings.Trim(member(t, of.Body, "spanId"), `"`))
	if err != nil || err2 != nil {
		t.Fatal(err, err2)
	}

	of.Body = fmt.Appendf(nil, `{"resource":{},"scope":{},"log":{"eventName":"gen_ai.evaluation.result",`+
		`"timeUnixNano":"%d","traceId":"%x","spanId":"%x","attributes":[`+
		`{"key":"gen_ai.evaluation.name","value":{"stringValue":"%s"}},`+
		`{"key":"gen_ai.evaluation.explanation","value":{"stringValue":"because of %d"}},`+
		`{"key":"gen_ai.evaluation.score.value","value":{"doubleValue":%g}}]},"index":0}`,
		at, trace, span, name, percent, float64(max(percent, 0))/100)
	of.RequestID = wire.LogRecordID([16]byte(trace), [8]byte(span), uint64(at))
	if of.ID, err = wire.SpanEventID(of.RequestID, of.Body); err != nil {
		t.Fatal(err)
	}

	return of
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
