package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"promptspool/api"
	"promptspool/api/wire"
)

// bulkOf is a call of /spans-bulk with the span of oneSpan and these members besides.
func bulkOf(members string) string {
	return `{"spans":[{"name":"chat m","context":{"trace_id":"5b8efff798038103d269b633813fc60c",
		"span_id":"eee19b7ec3c1b174"},"start_time":"1700000000000000000",
		"end_time":1700000000750000000` + members + `}]}`
}

// decoded is the answer of /spans-bulk.
type decoded struct {
	Success             bool
	Spans, RequestLogs  []struct{ ID, Name, SpanID string }
	RejectedSpanIDs     []string
	RejectedRequestLogs []struct {
		SpanID string
		Fields []wire.FieldError
	}
	Message string
}

// bulk posts a call of /spans-bulk.
func (s *scene) bulk(path, body string) (status int, d decoded, text string) {
	s.t.Helper()
	status, _, text, _ = s.export(path, body, "X-API-KEY", "app")
	plain := strings.NewReplacer("span_id", "spanid", "request_logs", "requestlogs", "_ids", "ids",
		"rejected_", "rejected").Replace(text)
	if err := json.Unmarshal([]byte(plain), &d); err != nil {
		s.t.Fatalf("%s: %v", text, err)
	}

	return status, d, text
}

// logRequest is logged, without its times and its key.
var logRequest = strings.Replace(strings.Replace(logged, `"api_key": "app",`, "", 1),
	`"request_start_time": "2026-01-02T03:04:05Z", "request_end_time": "2026-01-02T03:04:06Z",`,
	`"request_end_time": null,`, 1)

func TestARequestThatIsSentWithASpanIsLoggedOnce(t *testing.T) {
	s := start(t, nil)
	for range 2 {
		status, d, answer := s.bulk("/spans-bulk", bulkOf(`,"log_request":`+logRequest))
		if status != 201 || len(d.Spans) != 1 || len(d.RequestLogs) != 1 || d.RequestLogs[0].ID != d.Spans[0].ID ||
			d.RequestLogs[0].SpanID != "eee19b7ec3c1b174" || strings.Contains(answer, "rejected_request_logs") {
			t.Fatalf("%d %s", status, answer)
		}
	}

	e := s.recorder.events
	kinds := []wire.Kind{wire.KindSpan, wire.KindRequest, wire.KindScore}
	if len(e) != 6 {
		t.Fatalf("%d events", len(e))
	}
	for i, kind := range kinds {
		if e[i].Kind != kind || e[i].RequestID != e[0].RequestID || e[i].ID != e[i+3].ID {
			t.Errorf("event %d: %+v, and again %+v", i, e[i], e[i+3])
		}
	}
	if body := string(e[1].Body); !strings.Contains(body, `"request_start_time":"2023-11-14T22:13:20Z"`) ||
		!strings.Contains(body, `"request_end_time":"2023-11-14T22:13:20.75Z"`) || strings.Contains(body, "sk-secret") {
		t.Errorf("body %s", body)
	}
	if link := e[1].Link; link.Name != "greet" || link.Version != 2 {
		t.Errorf("link %+v", link)
	}
}

func TestABadRequestDoesNotCostItsSpan(t *testing.T) {
	s := start(t, nil)
	for _, bad := range []string{`{}`, `{"provider":"openai"}`, `{"request_id":"no id"}`} {
		status, d, answer := s.bulk("/spans-bulk", bulkOf(`,"log_request":`+bad))
		if status != 201 || len(d.Spans) != 1 || len(d.RequestLogs) > 0 || len(d.RejectedRequestLogs) != 1 ||
			len(d.RejectedSpanIDs) > 0 || !strings.HasPrefix(d.Message, "log_request: ") {
			t.Errorf("%s: %d %s", bad, status, answer)
		}
	}

	status, d, answer := s.bulk("/spans-bulk", `{"spans":[{"context":{"trace_id":"x","span_id":"y"}}]}`)
	if status != 201 || len(d.Spans) > 0 || !slices.Equal(d.RejectedSpanIDs, []string{"y"}) {
		t.Errorf("%d %s", status, answer)
	}
	for _, body := range []string{`{}`, `{"spans":{}}`, `{"spans":null}`} {
		if a := s.call("POST", "/spans-bulk", body, "X-API-KEY", "app"); a.Status != 422 {
			t.Errorf("%s: %+v", body, a)
		}
	}
}

// A key that may only log gives no score, by whatever road it comes.
func TestAKeyThatMayNotScoreSendsNone(t *testing.T) {
	s := start(t, nil)
	status, _, text, _ := s.export("/spans-bulk", bulkOf(`,"log_request":`+logRequest), "X-API-KEY", "log")
	if status != 201 || !strings.Contains(text, "This key's scope is log; the request needs score.") {
		t.Errorf("with a span: %d %s", status, text)
	}
	plain := strings.Replace(logged, `"api_key": "app",`, "", 1)
	for path, body := range map[string]string{"/log-request": plain, "/rest/track-score": `{"score":1}`} {
		if a := s.call("POST", path, body, "X-API-KEY", "log"); a.Status != 403 {
			t.Errorf("%s: %+v", path, a)
		}
	}
	for _, e := range s.recorder.events {
		if e.Kind != wire.KindSpan {
			t.Errorf("recorded is a %s", e.Kind)
		}
	}
}

// closed knows one closed trace.
type closed struct{ wire.Records }

func (closed) IsClosed(_ context.Context, _ wire.Identity, trace [16]byte) (bool, error) {
	return fmt.Sprintf("%x", trace) == "5b8efff798038103d269b633813fc60c", nil
}

func TestAServerRefusesSpansOfAClosedTrace(t *testing.T) {
	s := start(t, func(c *api.Config) { c.Records = closed{} })
	const ids = `"trace_ids":["5b8efff798038103d269b633813fc60c"]`
	for path, body := range map[string]string{"/v1/traces": oneSpan, "/spans-bulk": bulkOf("")} {
		status, _, answer, _ := s.export(path, body, "X-API-KEY", "app")
		if status != 409 || !strings.Contains(answer, ids) || !strings.Contains(answer, `"error":"conflict"`) {
			t.Errorf("%s: %d %s", path, status, answer)
		}
	}
	if len(s.recorder.events) > 0 {
		t.Fatalf("events: %+v", s.recorder.events)
	}

	// A trace that is closed does not cost the others.
	other := strings.Replace(oneSpan, `{"traceId"`, `{"traceId":"0000000000000000000000000000000a",
		"spanId":"eee19b7ec3c1b174","name":"x"},{"traceId"`, 1)
	status, _, answer, _ := s.export("/v1/traces", other, "X-API-KEY", "app")
	if status != 200 || !strings.Contains(answer, `"rejectedSpans":"1"`) || len(s.recorder.events) != 1 {
		t.Errorf("%d %s, %d events", status, answer, len(s.recorder.events))
	}
}

func TestATraceIsClosedByAnEventBehindItsSpans(t *testing.T) {
	s := start(t, nil)
	s.export("/v1/traces?close_after=true", oneSpan, "X-API-KEY", "app")
	s.bulk("/spans-bulk?close_after=true", bulkOf(""))
	s.bulk("/spans-bulk", strings.Replace(bulkOf(""), `{"spans"`, `{"close_after":true,"spans"`, 1))
	const path = "/api/public/v2/traces/5b8efff798038103d269b633813fc60c/close"
	if a := s.call("POST", path, "", "X-API-KEY", "app"); a.Status != 201 || !a.Success {
		t.Errorf("%+v", a)
	}

	e := s.recorder.events
	if len(e) != 7 {
		t.Fatalf("%d events", len(e))
	}
	for _, i := range []int{1, 3, 5, 6} {
		if e[i].ID != e[6].ID || e[i].RequestID != wire.CloseRecordID([16]byte{0x5b, 0x8e, 0xff, 0xf7, 0x98, 0x03,
			0x81, 0x03, 0xd2, 0x69, 0xb6, 0x33, 0x81, 0x3f, 0xc6, 0x0c}) {
			t.Errorf("event %d: %+v", i, e[i])
		}
	}

	if a := s.call("POST", "/api/public/v2/traces/short/close", "", "X-API-KEY", "app"); a.Status != 404 {
		t.Errorf("no trace: %+v", a)
	}
}

func TestATraceIsClosedOnce(t *testing.T) {
	code := wire.ResultAccepted
	do := func(events []wire.Event) ([]wire.Result, error) {
		return []wire.Result{{ID: events[0].ID, Code: code}}, nil
	}
	const path = "/api/public/v2/traces/0000000000000000000000000000000a/close"
	server := start(t, func(c *api.Config) { c.Records, c.Recorder = closed{}, &recorder{do: do} })
	for want, result := range map[int]wire.ResultCode{201: wire.ResultAccepted, 409: wire.ResultDuplicate} {
		code = result
		if a := server.call("POST", path, "", "X-API-KEY", "app"); a.Status != want {
			t.Errorf("%s: %+v, want %d", result, a, want)
		}
	}
}

// refusing refuses the events whose body contains a text.
func refusing(text string) *recorder {
	return &recorder{do: func(events []wire.Event) ([]wire.Result, error) {
		results := make([]wire.Result, len(events))
		for i, e := range events {
			results[i] = wire.Result{ID: e.ID, Code: wire.ResultAccepted}
			if strings.Contains(string(e.Body), text) {
				results[i] = wire.Result{ID: e.ID, Code: wire.ResultInvalid, Reason: "it is full"}
			}
		}
		return results, nil
	}}
}

// The last span of a batch is recorded before the answer has it.
func TestTheLastSpanOfABatchCanBeRefused(t *testing.T) {
	s := start(t, func(c *api.Config) { c.Recorder = refusing("refused") })
	spans := make([]string, wire.BatchEventsMax+1)
	for i := range spans {
		name := "kept"
		if i == wire.BatchEventsMax-1 {
			name = "refused"
		}
		spans[i] = fmt.Sprintf(`{"name":"%s","context":{"trace_id":"5b8efff798038103d269b633813fc60c",
			"span_id":"%016x"}}`, name, i+1)
	}

	status, d, _ := s.bulk("/spans-bulk", `{"spans":[`+strings.Join(spans, ",")+`]}`)
	refused := []string{fmt.Sprintf("%016x", wire.BatchEventsMax)}
	if status != 201 || len(d.Spans) != wire.BatchEventsMax || !slices.Equal(d.RejectedSpanIDs, refused) ||
		d.Message != "it is full" {
		t.Errorf("%d, %d spans, rejected %v, %s", status, len(d.Spans), d.RejectedSpanIDs, d.Message)
	}
}

func TestOnlyWhatIsRefusedOfARecordIsTakenBack(t *testing.T) {
	s := start(t, func(c *api.Config) { c.Recorder = refusing("refused") })
	const id = "0192f0c1-2d3e-7abc-8def-0123456789ab"
	request := func(name string) string {
		return `,"log_request":{"request_id":"` + id + `","function_name":"` + name + `",` + logRequest[1:]
	}
	one := func(name, spanID, members string) string {
		return fmt.Sprintf(`{"name":"%s","context":{"trace_id":"5b8efff798038103d269b633813fc60c","span_id":"%s"},
			"start_time":"1700000000000000000","end_time":"1700000001000000000"%s}`, name, spanID, members)
	}
	const first, second = "00000000000000a1", "00000000000000a2"
	status, d, answer := s.bulk("/spans-bulk", `{"spans":[`+strings.Join([]string{
		one("kept", first, ""), one("refused", first, ""),
		one("a", second, request("refused")), one("b", second, request("kept")),
	}, ",")+`]}`)

	if status != 201 || len(d.Spans) != 3 || d.Spans[0].Name != "kept" ||
		!slices.Equal(d.RejectedSpanIDs, []string{first}) {
		t.Errorf("spans: %d %s", status, answer)
	}
	if len(d.RequestLogs) != 1 || d.RequestLogs[0].ID != id || len(d.RejectedRequestLogs) != 1 ||
		d.RejectedRequestLogs[0].Fields[0].Reason != "it is full" {
		t.Errorf("requests: %d %s", status, answer)
	}
}

// What was not sent in the unit that it should have is read, and said.
func TestTimesInAnotherUnitAreReadAndSaid(t *testing.T) {
	const started, ended = `"start_time":"1700000000000000000"`, `"end_time":1700000000750000000`
	for as, sent := range map[string][]string{
		"seconds":      {`"1700000000"`, `1700000000.75`},
		"milliseconds": {`1700000000000`, `"1700000000750"`},
		"microseconds": {`1.7e15`, `1700000000750000`},
	} {
		s := start(t, nil)
		body := strings.NewReplacer(started, `"start_time":`+sent[0], ended, `"end_time":`+sent[1]).
			Replace(bulkOf(`,"log_request":` + logRequest))
		status, d, answer := s.bulk("/spans-bulk", body)
		if status != 201 || len(d.Spans) != 1 || !strings.Contains(d.Message, "was read as "+as) {
			t.Fatalf("%s: %d %s", as, status, answer)
		}
		e := s.recorder.events
		if span := string(e[0].Body); !strings.Contains(span, `"startTimeUnixNano":"1700000000000000000"`) ||
			!strings.Contains(span, `"endTimeUnixNano":"1700000000750000000"`) {
			t.Errorf("%s: %s", as, span)
		}
		if call := string(e[1].Body); !strings.Contains(call, `"request_end_time":"2023-11-14T22:13:20.75Z"`) {
			t.Errorf("%s: %s", as, call)
		}
	}

	s := start(t, nil)
	for _, none := range []string{"0", "0.0", "-0", `""`, "null"} { // the time is not known
		status, d, answer := s.bulk("/spans-bulk", strings.Replace(bulkOf(""), started, `"start_time":`+none, 1))
		if status != 201 || len(d.Spans) != 1 {
			t.Errorf("%s: %d %s", none, status, answer)
		}
	}
	for _, time := range []string{`"soon"`, `-5`, `1e300`} {
		status, d, answer := s.bulk("/spans-bulk", strings.Replace(bulkOf(""), started, `"start_time":`+time, 1))
		if status != 201 || len(d.RejectedSpanIDs) != 1 || !strings.Contains(d.Message, "is not a time") {
			t.Errorf("%s: %d %s", time, status, answer)
		}
	}

	inMillis := strings.NewReplacer(`"2026-01-02T03:04:05Z"`, "1767323045000",
		`"2026-01-02T03:04:06Z"`, "1767323046000")
	a := s.call("POST", "/log-request", inMillis.Replace(logged))
	if a.Status != 201 || !strings.Contains(a.Message, "request_start_time was read as milliseconds") {
		t.Errorf("%d %s", a.Status, a.Message)
	}
	_, _, answer := s.bulk("/spans-bulk", bulkOf(`,"log_request":`+inMillis.Replace(logged)))
	if !strings.Contains(answer, "request_start_time was read as milliseconds") {
		t.Error(answer)
	}
	const tracked = `{"api_key":"app","function_name":"f","kwargs":{},"request_response":{},"request_start_time":%s,
		"request_end_time":1767323046000000}`
	for _, path := range []string{"/track-request", "/rest/track-request"} {
		a := s.call("POST", path, fmt.Sprintf(tracked, "1767323045000000"))
		if a.Status != 200 || !strings.Contains(a.Message, "request_end_time was read as microseconds; send seconds") {
			t.Errorf("%s: %d %s %v", path, a.Status, a.Message, a.Fields)
		}
		a = s.call("POST", path, fmt.Sprintf(tracked, "1e30"))
		if a.Status != 422 || !strings.Contains(fmt.Sprint(a.Fields), "is not a time of a call") {
			t.Errorf("%s: %d %s %v", path, a.Status, a.Message, a.Fields)
		}
	}
}
