package otlp_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"promptspool/api/otlp"
	"promptspool/api/wire"
)

// decodeLogs returns the bodies of all log records of a request that are taken.
func decodeLogs(t testing.TB, body []byte, form otlp.Form) (bodies []string, refused otlp.Refused) {
	t.Helper()
	refused, err := otlp.Logs(t.Context(), body, form, func(l otlp.Log) error {
		bodies = append(bodies, string(l.Body))
		return nil
	}, func(s otlp.Span) error {
		t.Errorf("a span of a log record: %s", s.Body)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}

	return bodies, refused
}

// logRequest returns a request with log records of one resource and scope.
func logRequest(records ...[]byte) []byte {
	var all []byte
	for _, r := range records {
		all = append(all, message(2, r)...)
	}
	resource := message(1, message(1, message(1, []byte("service.name")), message(2, message(1, []byte("svc")))))

	return message(1, resource, message(2, message(1, message(1, []byte("lib"))), all))
}

func TestBothEncodingsOfALogRecordGiveTheSameBody(t *testing.T) {
	time := func(tag byte) []byte { return []byte{tag, 0, 0, 0x2a, 0x36, 0xfe, 0x9c, 0x97, 0x17} }
	text := func(s string) []byte { return message(1, []byte(s)) }
	ids := slices.Concat(message(9, bytes.Repeat([]byte{1}, 16)), message(10, bytes.Repeat([]byte{2}, 8)))
	content := message(5, message(6, message(1, text("content"), message(2, text("Hi")))))
	named := message(6, text("event.name"), message(2, text("gen_ai.user.message")))

	fromProtobuf, refused := decodeLogs(t, logRequest(
		slices.Concat(time(0x09), []byte{0x10, 9}, message(3, []byte("INFO")), message(12, []byte("gen_ai.choice")),
			content, message(6, text("n"), message(2, []byte{0x18, 5})), []byte{0x38, 1, 0x45, 1, 0, 0, 0},
			ids, time(0x59)),
		slices.Concat(named, ids),
		slices.Concat(message(12, []byte("exception")), ids),
		message(5, text("a line of the app")),
	), otlp.Protobuf)

	const spanIDs = `"traceId":"01010101010101010101010101010101","spanId":"0202020202020202"`
	fromJSON, same := decodeLogs(t, []byte(`{"resource_logs":[{"resource":{"attributes":[{"key":"service.name",
		"value":{"stringValue":"svc"}}]},"scopeLogs":[{"scope":{"name":"lib"},"logRecords":[
		{"timeUnixNano":1700000000000000000,"severityNumber":9,"severityText":"INFO",
		"event_name":"gen_ai.choice","body":{"kvlistValue":{"values":[{"key":"content","value":{"stringValue":"Hi"}}]}},
		"attributes":{"n":5},"droppedAttributesCount":1,"flags":1,`+spanIDs+`,
		"observedTimeUnixNano":"1700000000000000000"},
		{"attributes":[{"key":"event.name","value":{"stringValue":"gen_ai.user.message"}}],`+spanIDs+`},
		{"eventName":"exception",`+spanIDs+`},
		{"body":{"stringValue":"a line of the app"}}]}]}]}`), otlp.JSON)

	const head = `{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"svc"}}]},` +
		`"scope":{"name":"lib"},"log":{`
	want := []string{
		head + `"timeUnixNano":"1700000000000000000","observedTimeUnixNano":"1700000000000000000","severityNumber":9,` +
			`"severityText":"INFO","eventName":"gen_ai.choice","body":{"kvlistValue":{"values":[{"key":"content",` +
			`"value":{"stringValue":"Hi"}}]}},"attributes":[{"key":"n","value":{"intValue":"5"}}],` +
			`"droppedAttributesCount":1,"flags":1,` + spanIDs + `},"index":0}`,
		head + `"attributes":[{"key":"event.name","value":{"stringValue":"gen_ai.user.message"}}],` +
			spanIDs + `},"index":1}`,
	}
	if diff := cmp.Diff(want, fromProtobuf); diff != "" || refused != (otlp.Refused{Dropped: 2}) {
		t.Errorf("protobuf: refused %+v (-want +got):\n%s", refused, diff)
	}
	if diff := cmp.Diff(want, fromJSON); diff != "" || same != refused {
		t.Errorf("JSON: refused %+v (-want +got):\n%s", same, diff)
	}
}

func TestEveryRecordedLogRecordIsKept(t *testing.T) {
	seen := 0
	for _, p := range payloads(t, "/v1/logs") {
		bodies, refused := decodeLogs(t, p.Body, p.Form)
		if refused != (otlp.Refused{}) {
			t.Errorf("%s: refused %+v", p.Name, refused)
		}

		for _, b := range bodies {
			seen++
			if _, err := wire.ParseObject([]byte(b)); err != nil {
				t.Errorf("%s: %v in %s", p.Name, err, b)
			}

			// What is stored is itself OTLP. It was not alone in its request, so its place is another.
			again, _ := decodeLogs(t, asLogRequest(t, b), otlp.JSON)
			cut := func(s string) string { return s[:strings.LastIndex(s, `,"index":`)] }
			if len(again) != 1 || cut(again[0]) != cut(b) {
				t.Errorf("%s: %s\ndecoded again: %s", p.Name, b, again)
			}
		}
	}
	if seen < 15 {
		t.Errorf("only %d log records were seen", seen)
	}
}

// asLogRequest returns the OTLP/JSON request of a stored log record.
func asLogRequest(t testing.TB, body string) []byte {
	t.Helper()
	var b struct {
		Resource, Scope, Log json.RawMessage
	}
	if err := json.Unmarshal([]byte(body), &b); err != nil {
		t.Fatal(err)
	}

	return fmt.Appendf(nil, `{"resourceLogs":[{"resource":%s,"scopeLogs":[{"scope":%s,"logRecords":[%s]}]}]}`,
		b.Resource, b.Scope, b.Log)
}

// A record's place must not depend on what a Collector sends along, or a retry through one
// would double it.
func TestThePlaceOfALogRecordCountsWithinItsSpan(t *testing.T) {
	record := func(span, event string) string {
		return `{"eventName":"` + event + `","traceId":"01010101010101010101010101010101","spanId":"` + span + `"}`
	}
	const one, other = "0000000000000001", "0000000000000002"
	request := func(records ...string) []byte {
		return []byte(`{"resourceLogs":[{"scopeLogs":[{"logRecords":[` + strings.Join(records, ",") + `]}]}]}`)
	}

	said := record(one, "gen_ai.user.message")
	alone, _ := decodeLogs(t, request(said, said), otlp.JSON)
	mixed, _ := decodeLogs(t, request(record(other, "gen_ai.choice"), said, record(one, "http"),
		record("00", "gen_ai.choice"), said), otlp.JSON)
	if len(alone) != 2 || len(mixed) != 3 || alone[0] == alone[1] || !slices.Equal(alone, mixed[1:]) {
		t.Errorf("alone\n%s\nand mixed\n%s", alone, mixed)
	}
}

func TestAnEventWithoutItsSpanIsRefused(t *testing.T) {
	ids := slices.Concat(message(9, bytes.Repeat([]byte{1}, 16)), message(10, bytes.Repeat([]byte{2}, 8)))
	choice := message(12, []byte("gen_ai.choice"))
	bodies, refused := decodeLogs(t, logRequest(
		choice,
		slices.Concat(choice, message(9, make([]byte, 16)), message(10, bytes.Repeat([]byte{2}, 8))),
		slices.Concat(choice, message(9, bytes.Repeat([]byte{1}, 16)), message(10, []byte{1})),
		[]byte{0xff},
		slices.Concat(choice, ids),
	), otlp.Protobuf)
	if len(bodies) != 1 || refused.Spans != 4 || !strings.Contains(refused.Reason, "spanId of the call") {
		t.Errorf("%d log records are taken, and refused %+v", len(bodies), refused)
	}
}

// FuzzLogs decodes hostile requests. Each log record must be JSON that every reader takes.
func FuzzLogs(f *testing.F) {
	for _, p := range payloads(f, "") {
		f.Add(p.Body, p.Form == otlp.JSON)
	}
	f.Add([]byte(`{"resourceLogs":[{"scopeLogs":[{"logRecords":[`+agentRecord(fmt.Sprintf(claudeBody, "api_error"),
		"session.id", "s", "prompt.id", "p", "duration_ms", "1500", "error", "529")+`]}]}]}`), true)

	f.Fuzz(func(t *testing.T, body []byte, isJSON bool) {
		form := otlp.Protobuf
		if isJSON {
			form = otlp.JSON
		}
		otlp.KindOf(body, form)
		_, err := otlp.Logs(t.Context(), body, form, func(l otlp.Log) error {
			var read struct {
				Log   struct{ TraceID, SpanID string }
				Index *int
			}
			if _, err := wire.ParseObject(l.Body); err != nil {
				t.Fatalf("%v in %s", err, l.Body)
			}
			if err := json.Unmarshal(l.Body, &read); err != nil || read.Index == nil ||
				read.Log.TraceID != fmt.Sprintf("%x", l.TraceID) || read.Log.SpanID != fmt.Sprintf("%x", l.SpanID) {
				t.Fatalf("%v, or no ids or place, in %s", err, l.Body)
			}
			return nil
		}, func(s otlp.Span) error {
			if span := s.Body; !bytes.Contains(span, fmt.Appendf(nil, `"span":{"traceId":"%x"`, s.TraceID)) ||
				s.SpanID == [8]byte{} {
				t.Fatalf("no ids in %s", span)
			}
			if _, err := wire.ParseObject(s.Body); err != nil {
				t.Fatalf("%v in %s", err, s.Body)
			}
			return nil
		})
		if err != nil && !errors.Is(err, otlp.ErrMalformed) {
			t.Fatal(err)
		}
	})
}
