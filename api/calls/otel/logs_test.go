package otel_test

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"promptspool/api/calls/otel"
)

// The messages of a call come in log records, before the span or after it, and some twice.
// Exporters give all of them the same moment.
func TestLogRecordsJoinTheirSpanInAnyOrder(t *testing.T) {
	span := stored(t, readPayload(t, "otel-openai-multi-turn"))[1]
	id := otel.Read(span).SpanID
	var logs []json.RawMessage
	for _, log := range stored(t, readPayload(t, "otel-openai-multi-turn-logs")) {
		if otel.SpanOf(log) == id {
			logs = append(logs, log)
		}
	}
	want := otel.Read(otel.Join(span, logs))
	if len(logs) != 7 || len(readRequest(t, want.Request()).Input) != 6 {
		t.Fatalf("%d logs: %s", len(logs), want.Request())
	}

	mixed := slices.Concat(logs[3:], logs[:5])
	slices.Reverse(mixed)
	got := otel.Read(otel.Join(span, mixed))
	if string(got.Request()) != string(want.Request()) {
		t.Errorf("in another order it becomes\n%s\nand not\n%s", got.Request(), want.Request())
	}
}

// Two equal messages of one call are not one message.
func TestEqualLogRecordsOfOnePostAreBothKept(t *testing.T) {
	span := encode(t, spanWith(map[string]any{"gen_ai.operation.name": "chat"}))
	log := func(index int) json.RawMessage {
		return encode(t, map[string]any{
			"resource": map[string]any{}, "scope": map[string]any{}, "index": index,
			"log": map[string]any{
				"eventName": "gen_ai.user.message",
				"body":      map[string]any{"stringValue": `{"content":"Yes."}`},
			},
		})
	}

	joined := otel.Read(otel.Join(span, []json.RawMessage{log(0), log(1), log(0)}))
	if got := readRequest(t, joined.Request()); len(got.Input) != 2 {
		t.Errorf("%d messages of two", len(got.Input))
	}
}

// Of too many, the first messages are kept, and the last evaluations, which are the scores.
func TestMessagesAndEvaluationsAreBoundedApart(t *testing.T) {
	span := encode(t, spanWith(map[string]any{"gen_ai.operation.name": "chat"}))
	var logs []json.RawMessage
	for n := range otel.JoinedMax + 10 {
		for _, name := range []string{"gen_ai.user.message", "gen_ai.evaluation.result"} {
			logs = append(logs, encode(t, map[string]any{
				"resource": map[string]any{}, "scope": map[string]any{}, "index": 0,
				"log": map[string]any{"eventName": name, "timeUnixNano": strconv.Itoa(n + 1)},
			}))
		}
	}

	got := otel.Join(span, logs)
	if n := otel.Joined(got); n != 2*otel.JoinedMax {
		t.Errorf("%d are joined, want %d of each", n, otel.JoinedMax)
	}
	if again := otel.Join(got, logs[len(logs)-1:]); string(again) != string(got) {
		t.Errorf("joined again, the last evaluation changes the span")
	}
	last, first := `"timeUnixNano":"`+strconv.Itoa(otel.JoinedMax+10)+`"`, `"timeUnixNano":"1"`
	if !strings.Contains(string(got), last) || !strings.Contains(string(got), first) {
		t.Errorf("the first message or the last evaluation is missing")
	}
}

// protobufLogs returns the log records of a request in protobuf as OTLP/JSON. It knows only
// what the recorded payloads have.
func protobufLogs(t testing.TB, raw []byte) (records []map[string]any) {
	t.Helper()
	for _, resource := range fields(t, raw, 1) {
		for _, scope := range fields(t, resource, 2) {
			for _, log := range fields(t, scope, 2) {
				record := map[string]any{"attributes": keyValues(t, fields(t, log, 6))}
				for _, body := range fields(t, log, 5) {
					record["body"] = anyValue(t, body)
				}
				for _, id := range fields(t, log, 9) {
					record["traceId"] = hex.EncodeToString(id)
				}
				for _, id := range fields(t, log, 10) {
					record["spanId"] = hex.EncodeToString(id)
				}
				for name, number := range map[string]protowire.Number{
					"timeUnixNano": 1, "observedTimeUnixNano": 11,
				} {
					for _, at := range fields(t, log, number) {
						record[name] = strconv.FormatUint(binary.LittleEndian.Uint64(at), 10)
					}
				}
				records = append(records, record)
			}
		}
	}

	return records
}

// fields returns the contents of all fields of a message with a number.
func fields(t testing.TB, message []byte, number protowire.Number) (all [][]byte) {
	t.Helper()
	for len(message) > 0 {
		n, kind, tag := protowire.ConsumeTag(message)
		length := protowire.ConsumeFieldValue(n, kind, message[max(tag, 0):])
		if tag < 0 || length < 0 {
			t.Fatal("not protobuf")
		}
		content := message[tag : tag+length]
		if kind == protowire.BytesType {
			content, _ = protowire.ConsumeBytes(content)
		}
		if n == number {
			all = append(all, content)
		}
		message = message[tag+length:]
	}

	return all
}

func keyValues(t testing.TB, raw [][]byte) []any {
	t.Helper()
	list := []any{}
	for _, kv := range raw {
		held := map[string]any{}
		for _, v := range fields(t, kv, 2) {
			held = anyValue(t, v)
		}
		list = append(list, map[string]any{"key": string(fields(t, kv, 1)[0]), "value": held})
	}

	return list
}

func anyValue(t testing.TB, raw []byte) map[string]any {
	t.Helper()
	one := func(number protowire.Number) ([]byte, bool) {
		all := fields(t, raw, number)
		return slices.Concat(all...), len(all) > 0
	}

	if v, ok := one(1); ok {
		return map[string]any{"stringValue": string(v)}
	}
	if v, ok := one(3); ok {
		n, _ := protowire.ConsumeVarint(v)
		return map[string]any{"intValue": strconv.FormatInt(int64(n), 10)}
	}
	if v, ok := one(4); ok {
		return map[string]any{"doubleValue": math.Float64frombits(binary.LittleEndian.Uint64(v))}
	}
	if v, ok := one(5); ok {
		values := []any{}
		for _, e := range fields(t, v, 1) {
			values = append(values, anyValue(t, e))
		}
		return map[string]any{"arrayValue": map[string]any{"values": values}}
	}
	if v, ok := one(6); ok {
		return map[string]any{"kvlistValue": map[string]any{"values": keyValues(t, fields(t, v, 1))}}
	}

	return map[string]any{}
}
