package records_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"promptspool/api/otlp"
	"promptspool/api/wire"
	"promptspool/spool/archive"
	"promptspool/spool/archive/records"
	"promptspool/spool/database/databasetest"
)

// joiner is an archive whose store fails where a test wants it to, and knows what it was given.
type joiner struct {
	archive.Store
	archive *records.Service
	id      wire.Identity

	damaged string // the id of a record that cannot be read
	deleted string // the id of a record that is deleted before its bodies are read
	largest int    // bytes of bodies in one Apply
	read    int    // records whose bodies were read
	traces  int    // traces in one call of SpanRecords
	between func() // called once, when the next record was read
}

func newJoiner(t *testing.T) *joiner {
	t.Helper()
	j := &joiner{Store: openStore(t), id: wire.Identity{Account: "account-a", Scope: wire.ScopeFull}}
	j.archive = serverOver(j).Service

	return j
}

func (j *joiner) Apply(ctx context.Context, account string, events []archive.Event) ([]wire.Result, error) {
	size := 0
	for i := range events {
		size += len(events[i].Body)
	}
	j.largest = max(j.largest, size)

	return j.Store.Apply(ctx, account, events)
}

func (j *joiner) Bodies(ctx context.Context, account, id string) (
	s archive.State, bodies map[string]json.RawMessage, err error,
) {
	j.read++
	switch id {
	case j.damaged:
		return s, nil, wire.Errorf(wire.CodeInternal, "damaged")
	case j.deleted:
		return s, nil, wire.Errorf(wire.CodeNotFound, "deleted")
	}

	return j.Store.Bodies(ctx, account, id)
}

func (j *joiner) Record(ctx context.Context, account, id string) (archive.State, json.RawMessage, error) {
	s, body, err := j.Store.Record(ctx, account, id)
	if between := j.between; between != nil {
		j.between = nil
		between()
	}

	return s, body, err
}

func (j *joiner) SpanRecords(
	ctx context.Context, account string, traces []archive.UUID, ends []archive.IDEnd, limit int,
) ([]archive.UUID, error) {
	j.traces = max(j.traces, len(traces))
	return j.Store.SpanRecords(ctx, account, traces, ends, limit)
}

func (j *joiner) record(t *testing.T, events ...wire.Event) {
	t.Helper()
	results, err := j.archive.Record(t.Context(), j.id, events)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		if r.Reason != "" {
			t.Fatal(r.Reason)
		}
	}
}

func (j *joiner) shown(t *testing.T, e wire.Event) wire.Record {
	t.Helper()
	r, err := j.archive.Request(t.Context(), j.id, e.RequestID)
	if err != nil {
		t.Fatal(err)
	}

	return r
}

// joinTrace is the trace of all spans of these tests.
var joinTrace = [16]byte{1, 2, 3}

// joinStart is when all spans of these tests start.
var joinStart = databasetest.Start

// spanAndLog returns the nth span, a model call without messages, with text as its variable,
// and a log record of it at a time, with further members.
func spanAndLog(t *testing.T, n int, text string, at time.Time, members string) (span, log wire.Event) {
	t.Helper()
	id := [8]byte{6: byte(n >> 8), 7: byte(n)}
	ids := fmt.Sprintf(`"traceId":"%x","spanId":"%x"`, joinTrace, id)
	start := uint64(joinStart.UnixNano())
	span = traceEvent(t, wire.KindSpan, wire.SpanRecordID(joinTrace, id, start), fmt.Sprintf(
		`{"resource":{},"scope":{},"span":{%s,"name":"chat m","startTimeUnixNano":"%d","attributes":[
		{"key":"gen_ai.operation.name","value":{"stringValue":"chat"}},
		{"key":"gen_ai.request.model","value":{"stringValue":"m"}},
		{"key":"gen_ai.prompt.variable.text","value":{"stringValue":"%s"}}]}}`, ids, start, text))

	nanos := uint64(0)
	if !at.IsZero() {
		nanos = uint64(at.UnixNano())
	}
	log = traceEvent(t, wire.KindLog, wire.LogRecordID(joinTrace, id, nanos), fmt.Sprintf(
		`{"resource":{},"scope":{},"log":{%s,"timeUnixNano":"%d",%s},"index":0}`, ids, nanos, members))

	return span, log
}

func traceEvent(t *testing.T, kind wire.Kind, recordID, body string) wire.Event {
	t.Helper()
	id, err := wire.SpanEventID(recordID, []byte(body))
	if err != nil {
		t.Fatal(err)
	}

	return wire.Event{
		ID:         id,
		RequestID:  recordID,
		Kind:       kind,
		AcceptedAt: databasetest.Start,
		Sidecar:    "a",
		Body:       json.RawMessage(body),
	}
}

// said is a message of a call in a log record.
const said = `"eventName":"gen_ai.user.message","body":{"stringValue":"{\"content\":\"Hi\"}"}`

// judged is a judgement of a call in a log record.
const judged = `"eventName":"gen_ai.evaluation.result","attributes":[
	{"key":"gen_ai.evaluation.name","value":{"stringValue":"relevance"}},
	{"key":"gen_ai.evaluation.score.value","value":{"doubleValue":0.85}}]`

// What cannot be joined must not make its batch fail, which would be sent for ever.
func TestWhatCannotBeJoinedStaysApart(t *testing.T) {
	j := newJoiner(t)
	deep := `"deep":` + strings.Repeat("[", wire.JSONDepthMax-2) + strings.Repeat("]", wire.JSONDepthMax-2)
	span, log := spanAndLog(t, 1, "", joinStart, deep)
	other, message := spanAndLog(t, 2, "", joinStart, said)
	j.record(t, span, log, other, message)
	if r := j.shown(t, other); r.InputExcerpt != "Hi" {
		t.Errorf("the other span of the batch has no message: %s", r.Span)
	}

	third, lost := spanAndLog(t, 3, "", joinStart, said)
	fourth, found := spanAndLog(t, 4, "", joinStart, said)
	j.damaged = lost.RequestID
	j.record(t, third, lost, fourth, found)
	if r := j.shown(t, fourth); r.InputExcerpt != "Hi" {
		t.Errorf("a span beside a damaged record has no message: %s", r.Span)
	}
}

// A call may be judged days after its messages came, and the sidecar that has the span may be
// without its server for months.
func TestLogRecordsOfAnyDayAreJoined(t *testing.T) {
	for name, c := range map[string]struct {
		said, judged time.Time
		spanLast     bool
	}{
		"the next day":      {joinStart, joinStart.AddDate(0, 0, 1), false},
		"of an earlier day": {joinStart.AddDate(0, 0, 1), joinStart, false},
		"months apart":      {joinStart.AddDate(0, -3, 0), joinStart.AddDate(0, 3, 0), true},
	} {
		j := newJoiner(t)
		span, message := spanAndLog(t, 1, "", c.said, said)
		_, judgement := spanAndLog(t, 1, "", c.judged, judged)
		if !c.spanLast {
			j.record(t, span)
		}
		for _, e := range []wire.Event{message, judgement, message, judgement, span} {
			j.record(t, e)
		}

		r := j.shown(t, span)
		if r.InputExcerpt != "Hi" || len(r.Scores) != 1 || !c.spanLast && len(r.Events) != 3 {
			t.Errorf("%s: the input %q, the scores %v, %d events", name, r.InputExcerpt, r.Scores, len(r.Events))
		}
	}
}

// Apps that keep few of their spans often send the log records of all of them.
func TestLogRecordsWithoutSpansKeepNoScoreOut(t *testing.T) {
	j := newJoiner(t)
	for n := range 3 {
		_, log := spanAndLog(t, n, "", joinStart, said)
		j.record(t, log)
	}

	has, err := j.Counts(t.Context(), j.id.Account)
	if has.Orphans != (archive.Orphans{Logs: 3}) || err != nil {
		t.Errorf("%+v wait, %v; want three records without a part in the bounds", has, err)
	}

	// Nor is any of them in the list of requests that have not come, or in its total, on
	// whichever page.
	const scored = 3
	for range scored {
		j.record(t, traceEvent(t, wire.KindScore, wire.NewID(), `{"score":1,"name":"a"}`))
	}
	listed := 0
	for cursor := ""; ; {
		page, err := j.archive.Orphans(t.Context(), j.id, wire.OrphanQuery{PerPage: 2, Cursor: cursor})
		if page.Total != scored || page.Events != scored || err != nil {
			t.Fatalf("%d events wait for %d requests, %v, want those that were scored", page.Events, page.Total, err)
		}
		if listed += len(page.Items); page.NextCursor == nil {
			break
		}
		cursor = *page.NextCursor
	}
	if listed != scored {
		t.Errorf("%d requests are listed, want the %d that were scored", listed, scored)
	}
	places, err := j.Spans(t.Context(), j.id.Account, nil, 10)
	if len(places) != 3 || err != nil {
		t.Errorf("%d are kept as spans are, %v, want 3", len(places), err)
	}
}

// All of the traces may be large.
func TestTheSpansOfManyTracesAreFoundAFewTracesAtATime(t *testing.T) {
	trace := joinTrace
	defer func() { joinTrace = trace }()

	j := newJoiner(t)
	var spans, logs []wire.Event
	for n := range 41 {
		joinTrace[0] = byte(n)
		span, log := spanAndLog(t, n, "", joinStart, said)
		spans, logs = append(spans, span), append(logs, log)
	}
	j.record(t, spans...)
	j.record(t, logs...)

	if j.traces == 0 || j.traces > 20 {
		t.Errorf("%d traces were asked for at a time", j.traces)
	}
	for n, span := range spans {
		if r := j.shown(t, span); r.InputExcerpt != "Hi" {
			t.Errorf("span %d has no message: %s", n, r.Span)
		}
	}
}

// The batch of log records is durable by then, and would be sent again for ever.
func TestADeletionWhileLogRecordsAreJoined(t *testing.T) {
	j := newJoiner(t)
	span, log := spanAndLog(t, 1, "", joinStart, said)
	logged := wire.Event{
		ID:         "018bcfe5-6800-7000-8000-000000000008",
		RequestID:  span.RequestID,
		Kind:       wire.KindRequest,
		AcceptedAt: joinStart,
		Sidecar:    "a",
		Body: json.RawMessage(`{"function_name":"logged","kwargs":{},"request_response":{},` +
			`"request_start_time":1,"request_end_time":2}`),
	}
	j.record(t, span, logged)
	j.deleted = span.RequestID
	j.record(t, log)
}

func TestLogRecordsOfTwoDaysAtTheSameTimeAreBothJoined(t *testing.T) {
	j := newJoiner(t)
	span, message := spanAndLog(t, 1, "", joinStart, said)
	_, judgement := spanAndLog(t, 1, "", joinStart.AddDate(0, 0, 1), judged)
	j.record(t, span)

	j.between = func() { j.record(t, judgement) }
	j.record(t, message)
	if r := j.shown(t, span); r.InputExcerpt != "Hi" || len(r.Scores) != 1 {
		t.Errorf("the input %q, the scores %v", r.InputExcerpt, r.Scores)
	}
}

// A clock that was never set gives spans a start in 1970.
func TestASpanWithAWrongStartFindsItsLogRecords(t *testing.T) {
	for _, start := range []time.Time{time.Unix(0, 1), joinStart.AddDate(-3, 0, 0), joinStart.AddDate(3, 0, 0)} {
		j := newJoiner(t)
		span, log := spanAndLog(t, 1, "", joinStart, said)
		body := strings.Replace(string(span.Body), fmt.Sprint(joinStart.UnixNano()), fmt.Sprint(start.UnixNano()), 1)
		id := [8]byte{7: 1}
		span = traceEvent(t, wire.KindSpan, wire.SpanRecordID(joinTrace, id, uint64(start.UnixNano())), body)

		j.record(t, log)
		j.record(t, span)
		if r := j.shown(t, span); r.InputExcerpt != "Hi" {
			t.Errorf("a span that began %v has no message: %s", start, r.Span)
		}
	}
}

func TestWhyALogRecordIsRefused(t *testing.T) {
	j := newJoiner(t)
	var logs []wire.Event
	for n := range 6 {
		members := fmt.Sprintf(`"n":%d,"pad":"%s",%s`, n, strings.Repeat("x", 1<<20), said)
		_, log := spanAndLog(t, 1, "", joinStart, members)
		logs = append(logs, log)
	}

	results, err := j.archive.Record(t.Context(), j.id, logs)
	if err != nil || !strings.Contains(results[5].Reason, fmt.Sprint(archive.LogBytesMax, " bytes")) {
		t.Errorf("%v, %+v", err, results[5])
	}
}

// An evaluation may name the call by the provider's response id alone, and come long before or after it.
func TestAnEvaluationFindsItsCallByTheResponseID(t *testing.T) {
	const responseID = "chatcmpl-Ay5LM9hCKy4Zp0sXVeVY"
	evaluations := fmt.Sprintf(`{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"timeUnixNano":"%d",
		"eventName":"gen_ai.evaluation.result","attributes":[
		{"key":"gen_ai.response.id","value":{"stringValue":"`+responseID+`"}},
		{"key":"gen_ai.evaluation.name","value":{"stringValue":"relevance"}},
		{"key":"gen_ai.evaluation.score.value","value":{"doubleValue":0.85}},
		{"key":"gen_ai.evaluation.evaluator.id","value":{"stringValue":"judge"}},
		{"key":"gen_ai.evaluation.explanation","value":{"stringValue":"to the point"}}]}]}]}]}`,
		joinStart.Add(8*24*time.Hour).UnixNano())
	var judgement wire.Event
	refused, err := otlp.Logs([]byte(evaluations), otlp.JSON, func(l otlp.Log) error {
		judgement = traceEvent(t, wire.KindLog, wire.LogRecordID(l.TraceID, l.SpanID, l.At), string(l.Body))
		judgement.AcceptedAt = joinStart.Add(8 * 24 * time.Hour)
		return nil
	}, nil)
	if err != nil || refused.Spans+refused.Dropped > 0 {
		t.Fatal(refused, err)
	}

	logged := wire.Event{
		ID: databasetest.ID(1), RequestID: wire.SpanRecordID(joinTrace, [8]byte{9}, uint64(joinStart.UnixNano())),
		Kind: wire.KindRequest, AcceptedAt: joinStart, Sidecar: "a",
		Body: json.RawMessage(`{"function_name":"f","kwargs":{},"request_response":{"id":"` + responseID + `"},
			"request_start_time":1,"request_end_time":2}`),
	}
	traced, _ := spanAndLog(t, 1, "Hi", joinStart, said)
	traced.Body = bytes.Replace(traced.Body, []byte(`"attributes":[`), []byte(
		`"attributes":[{"key":"gen_ai.response.id","value":{"stringValue":"`+responseID+`"}},`), 1)

	for name, call := range map[string]wire.Event{"logged": logged, "traced": traced} {
		for order, events := range map[string][]wire.Event{
			"after its call":  {call, judgement, judgement},
			"before its call": {judgement, call},
		} {
			t.Run(name+", "+order, func(t *testing.T) {
				j := newJoiner(t)
				for _, e := range events {
					j.record(t, e)
				}
				r := j.shown(t, call)
				const want = `[{"name":"relevance","value":0.85,"author":"judge","reason":"to the point"}]`
				if shown, err := json.Marshal(r.Scores); err != nil || string(shown) != want {
					t.Errorf("the call shows %s, %v", shown, err)
				}
				if counts, err := j.Counts(t.Context(), j.id.Account); err != nil || counts.Orphans.Logs != 0 {
					t.Errorf("%d log records wait, %v", counts.Orphans.Logs, err)
				}
			})
		}
	}
}
