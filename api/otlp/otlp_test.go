package otlp_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"

	"promptspool/api/otlp"
	"promptspool/api/otlp/otlptest"
	"promptspool/api/wire"
)

// vector is a span of OTLP in protobuf; vectorBody is what is stored of it.
const (
	vector = "0ab1020a170a150a0c736572766963652e6e616d6512050a037376631295020a080a036c69621201311288020a105b8efff7" +
		"98038103d269b633813fc60c1208eee19b7ec3c1b1742a0663686174206d30033900002a36fe9c971741002f928ffe9c97174a1f" +
		"0a1567656e5f61692e6f7065726174696f6e2e6e616d6512060a04636861744a200a1467656e5f61692e70726f76696465722e6e" +
		"616d6512080a066f70656e61694a1b0a1467656e5f61692e726571756573742e6d6f64656c12030a016d4a1f0a1967656e5f6169" +
		"2e75736167652e696e7075745f746f6b656e73120218194a200a1a67656e5f61692e75736167652e6f75747075745f746f6b656e" +
		"73120218784a270a1a67656e5f61692e726571756573742e74656d7065726174757265120921000000000000e03f7a021801"

	vectorJSON = `{"resourceSpans":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"svc"}}]},
		"scopeSpans":[{"scope":{"name":"lib","version":"1"},"spans":[{"traceId":"5B8EFFF798038103D269B633813FC60C",
		"spanId":"7uGbfsPBsXQ=","parentSpanId":"","name":"chat m","kind":"SPAN_KIND_CLIENT",
		"startTimeUnixNano":1700000000000000000,"end_time_unix_nano":"2023-11-14T22:13:21.5Z","attributes":[
		{"key":"gen_ai.operation.name","value":{"stringValue":"chat"}},
		{"key":"gen_ai.provider.name","value":{"stringValue":"openai"}},
		{"key":"gen_ai.request.model","value":{"string_value":"m"}},
		{"key":"gen_ai.usage.input_tokens","value":{"intValue":25.0}},
		{"key":"gen_ai.usage.output_tokens","value":{"intValue":"120"}},
		{"key":"gen_ai.request.temperature","value":{"doubleValue":0.50}}],"status":{"code":1},"x":[{}]}]}]}]}`

	vectorBody = `{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"svc"}}]},` +
		`"scope":{"name":"lib","version":"1"},"span":{"traceId":"5b8efff798038103d269b633813fc60c",` +
		`"spanId":"eee19b7ec3c1b174","name":"chat m","kind":3,"startTimeUnixNano":"1700000000000000000",` +
		`"endTimeUnixNano":"1700000001500000000","attributes":[` +
		`{"key":"gen_ai.operation.name","value":{"stringValue":"chat"}},` +
		`{"key":"gen_ai.provider.name","value":{"stringValue":"openai"}},` +
		`{"key":"gen_ai.request.model","value":{"stringValue":"m"}},` +
		`{"key":"gen_ai.usage.input_tokens","value":{"intValue":"25"}},` +
		`{"key":"gen_ai.usage.output_tokens","value":{"intValue":"120"}},` +
		`{"key":"gen_ai.request.temperature","value":{"doubleValue":0.5}}],"status":{"code":1}}}`
)

// decode returns the bodies of all spans of a request.
func decode(t testing.TB, body []byte, form otlp.Form) (bodies []string, refused otlp.Refused) {
	t.Helper()
	refused, err := otlp.Traces(t.Context(), body, form, func(s otlp.Span) error {
		bodies = append(bodies, string(s.Body))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}

	return bodies, refused
}

func unhex(t testing.TB, digits string) []byte {
	t.Helper()
	b, err := hex.DecodeString(digits)
	if err != nil {
		t.Fatal(err)
	}

	return b
}

func TestBothEncodingsOfASpanGiveTheSameBody(t *testing.T) {
	fromProtobuf, _ := decode(t, unhex(t, vector), otlp.Protobuf)
	fromJSON, _ := decode(t, []byte(vectorJSON), otlp.JSON)
	want := []string{vectorBody}
	if diff := cmp.Diff(want, fromProtobuf); diff != "" {
		t.Errorf("protobuf (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want, fromJSON); diff != "" {
		t.Errorf("JSON (-want +got):\n%s", diff)
	}
}

// payloads returns the recorded requests for a path.
func payloads(t testing.TB, path string) []otlptest.Payload {
	t.Helper()
	return slices.DeleteFunc(otlptest.Payloads(t, "testdata"), func(p otlptest.Payload) bool {
		return !strings.HasSuffix(p.Path, path) && !strings.Contains(p.Path, path+"?")
	})
}

func TestEveryRecordedRequestKeepsItsSpans(t *testing.T) {
	seen := 0
	for _, p := range payloads(t, "/v1/traces") {
		bodies, refused := decode(t, p.Body, p.Form)
		if refused.Spans > 0 {
			t.Errorf("%s: %d spans are refused: %s", p.Name, refused.Spans, refused.Reason)
		}
		if p.Form == otlp.JSON {
			if want := bytes.Count(p.Body, []byte(`"spanId"`)); len(bodies) != want {
				t.Errorf("%s: %d spans, want %d", p.Name, len(bodies), want)
			}
		}

		for _, b := range bodies {
			seen++
			if _, err := wire.ParseObject([]byte(b)); err != nil {
				t.Errorf("%s: %v in %s", p.Name, err, b)
			}

			// What is stored is itself OTLP, and decoding it again changes nothing.
			again, _ := decode(t, asRequest(t, b), otlp.JSON)
			if diff := cmp.Diff([]string{b}, again); diff != "" {
				t.Errorf("%s: decoded again (-want +got):\n%s", p.Name, diff)
			}
		}
	}
	if seen < 60 {
		t.Errorf("only %d spans were seen", seen)
	}
}

// asRequest returns the OTLP/JSON request of a stored body.
func asRequest(t testing.TB, body string) []byte {
	t.Helper()
	var b struct {
		Resource, Scope, Span json.RawMessage
		ResourceSchemaURL     string
		ScopeSchemaURL        string
	}
	if err := json.Unmarshal([]byte(body), &b); err != nil {
		t.Fatal(err)
	}
	request, err := json.Marshal(map[string]any{"resourceSpans": []any{map[string]any{
		"resource": b.Resource, "schemaUrl": b.ResourceSchemaURL, "scopeSpans": []any{map[string]any{
			"scope": b.Scope, "schemaUrl": b.ScopeSchemaURL, "spans": []any{b.Span},
		}},
	}}})
	if err != nil {
		t.Fatal(err)
	}

	return request
}

// message appends a field with a length.
func message(number protowire.Number, content ...[]byte) []byte {
	b := protowire.AppendTag(nil, number, protowire.BytesType)
	return protowire.AppendBytes(b, slices.Concat(content...))
}

// request returns a request with spans that have an id and these fields besides.
func request(spans ...[]byte) []byte {
	var all []byte
	for i, s := range spans {
		id := []byte{0, 0, 0, 0, 0, 0, 0, byte(i + 1)}
		all = append(all, message(2, message(1, bytes.Repeat([]byte{1}, 16)), message(2, id), s)...)
	}

	return message(1, message(2, all))
}

// attribute returns a KeyValue of a span.
func attribute(key string, value []byte) []byte {
	return message(9, message(1, []byte(key)), message(2, value))
}

func TestABadValueIsKept(t *testing.T) {
	of := func(value string) string {
		return `{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"01010101010101010101010101010101",
			"spanId":"0000000000000001","name":"n","attributes":` + value + `}]}]}]}`
	}

	const before = `{"resource":{},"scope":{},"span":{"traceId":"01010101010101010101010101010101",` +
		`"spanId":"0000000000000001","name":"n","attributes":[`
	for _, c := range []struct{ attributes, want string }{
		{`[{"key":"k","value":{"intValue":"abc"}}]`, `{"key":"k","value":{"stringValue":"abc"}}`},
		{`[{"key":"k","value":{"intValue":1e300}}]`, `{"key":"k","value":{"doubleValue":1e+300}}`},
		{`[{"key":"k","value":{"intValue":9007199254740993}}]`, `{"key":"k","value":{"intValue":"9007199254740993"}}`},
		{`[{"key":"k","value":{"doubleValue":null}}]`, `{"key":"k","value":{"doubleValue":null}}`},
		{`[{"key":"k","value":{"doubleValue":"NaN"}}]`, `{"key":"k","value":{"doubleValue":"NaN"}}`},
		{`[{"key":"k","value":{"doubleValue":"-Infinity"}}]`, `{"key":"k","value":{"doubleValue":"-Infinity"}}`},
		{`[{"key":"k","value":{"stringValue":null}},{"key":"l"}]`, `{"key":"k","value":{}},{"key":"l","value":{}}`},
		{`[{"key":"k","value":{"stringValue":"a\udce4b"}}]`,
			`{"key":"k","value":{"stringValue":"a\ufffdb"}}`},
		{`[{"key":"k","value":{"stringValue":"\ud83d\ude00\ud83d"}}]`,
			`{"key":"k","value":{"stringValue":"😀\ufffd"}}`},
		{"[{\"key\":\"k\xff\",\"value\":{\"boolValue\":true}}]",
			`{"key":"k\ufffd","value":{"boolValue":true}}`},
		{`{"a":1,"b":{"c":[1.5,{"d":null}]},"e":{"stringValue":"s"}}`,
			`{"key":"a","value":{"intValue":"1"}},{"key":"b","value":{"kvlistValue":{"values":[{"key":"c",` +
				`"value":{"arrayValue":{"values":[{"doubleValue":1.5},{"kvlistValue":{"values":[` +
				`{"key":"d","value":{}}]}}]}}}]}}},{"key":"e","value":{"stringValue":"s"}}`},
		{`[{"key":"k","value":{"bytesValue":"-_8"}}]`, `{"key":"k","value":{"bytesValue":"-_8"}}`},
	} {
		got, _ := decode(t, []byte(of(c.attributes)), otlp.JSON)
		if len(got) != 1 {
			t.Fatalf("%s gives %d spans", c.attributes, len(got))
		}
		shown, want := strings.ReplaceAll(got[0], "\uFFFD", `\ufffd`), before+c.want+"]}}"
		if shown != want {
			t.Errorf("%s\ngives %s\nwant  %s", c.attributes, shown, want)
		}
		if _, err := wire.ParseObject([]byte(got[0])); err != nil {
			t.Errorf("%s gives %v", c.attributes, err)
		}
	}
}

func TestABadSpanDoesNotCostTheOthers(t *testing.T) {
	bad := message(1, message(2, slices.Concat(
		message(2, message(1, make([]byte, 16)), message(2, []byte{0, 0, 0, 0, 0, 0, 0, 1})),
		message(2, message(1, bytes.Repeat([]byte{1}, 16)), message(2, []byte{1, 2})),
		message(2, []byte{0xff}),
	)))

	bodies, refused := decode(t, slices.Concat(request(nil), bad, request(nil, nil)), otlp.Protobuf)
	if len(bodies) != 3 || refused.Spans != 3 || !strings.Contains(refused.Reason, "traceId") {
		t.Errorf("%d spans are taken, and refused %+v", len(bodies), refused)
	}
}

func TestNestingIsKeptAndNeverTooDeepForReaders(t *testing.T) {
	for _, levels := range []int{98, 99, 100, 1000} {
		value := message(1, []byte("x"))
		text := `{"stringValue":"x"}`
		for range levels {
			value = message(5, message(1, value))
			text = `{"arrayValue":{"values":[` + text + `]}}`
		}

		// Beside the deep span there is one without attributes.
		fromProtobuf, refused := decode(t, request(nil, attribute("k", value)), otlp.Protobuf)
		asJSON := `{"resourceSpans":[{"scopeSpans":[{"spans":[
			{"spanId":"0000000000000001","traceId":"01010101010101010101010101010101"},
			{"spanId":"0000000000000002","traceId":"01010101010101010101010101010101",
			"attributes":[{"key":"k","value":` + text + `}]}]}]}]}`
		fromJSON, refusedJSON := decode(t, []byte(asJSON), otlp.JSON)
		if refused != refusedJSON || !slices.Equal(fromProtobuf, fromJSON) {
			t.Fatalf("%d levels: the encodings differ: %+v and %+v refused", levels, refused, refusedJSON)
		}
		for _, body := range fromProtobuf {
			if _, err := wire.ParseObject([]byte(body)); err != nil {
				t.Errorf("%d levels: %v", levels, err)
			}
		}

		tooDeep := 0
		if levels > 99 {
			tooDeep = 1
		}
		if refused.Spans != tooDeep || len(fromProtobuf) != 2-tooDeep {
			t.Errorf("%d levels: %d are taken, and refused %+v", levels, len(fromProtobuf), refused)
		}
		if tooDeep > 0 && !strings.Contains(refused.Reason, "deeper than 100") {
			t.Errorf("the reason is %q", refused.Reason)
		}
	}
}

func TestASpanIsMeasuredAsItIsWritten(t *testing.T) {
	// Six times as long as JSON, and so too long.
	control := bytes.Repeat([]byte{1}, wire.BodyBytesMax/5)
	bodies, refused := decode(t, request(message(5, control), nil), otlp.Protobuf)
	if len(bodies) != 1 || refused.Spans != 1 || !strings.Contains(refused.Reason, "is larger than") {
		t.Errorf("%d spans are taken, and refused %+v", len(bodies), refused)
	}
}

// As a collector sends them that groups by trace.
func TestSpansMayHaveAResourceEach(t *testing.T) {
	one := request(nil)
	bodies, refused := decode(t, bytes.Repeat(one, otlp.ItemsMax+2), otlp.Protobuf)
	if len(bodies) != otlp.ItemsMax || refused.Spans != 2 {
		t.Errorf("%d spans are taken, and refused %+v", len(bodies), refused)
	}
}

// Who has left waits for nothing, whatever the request is full of.
func TestDecodingEndsWithItsRequest(t *testing.T) {
	ctx, leave := context.WithCancel(t.Context())
	leave()
	nothing := func(numbers ...protowire.Number) []byte {
		b := bytes.Repeat(message(numbers[len(numbers)-1]), 2000)
		for _, n := range slices.Backward(numbers[:len(numbers)-1]) {
			b = message(n, b)
		}
		return b
	}
	for what, body := range map[string][]byte{
		"resources": nothing(1), "scopes": nothing(1, 2), "spans": nothing(1, 2, 2),
	} {
		if _, err := otlp.Traces(ctx, body, otlp.Protobuf, nil); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// What escaping adds counts, too.
func TestAResourceIsNotRepeatedWithoutEnd(t *testing.T) {
	resource := message(1, message(1, message(1, []byte("k")), message(2, message(1, make([]byte, 1<<20)))))
	spans := bytes.Repeat(message(2, message(1, bytes.Repeat([]byte{1}, 16)), message(2, bytes.Repeat([]byte{2}, 8)),
		message(5, make([]byte, 1<<10))), 200)
	body := message(1, resource, message(2, spans))
	written := 0
	refused, err := otlp.Traces(t.Context(), body, otlp.Protobuf, func(s otlp.Span) error {
		written += len(s.Body)
		return nil
	})
	if err != nil || refused.Spans == 0 || written > 4<<20+16*len(body) {
		t.Errorf("%d bytes of bodies, refused %+v, %v", written, refused, err)
	}
}

func TestATextThatIsTooLongIsNotWrittenToItsEnd(t *testing.T) {
	control := bytes.Repeat([]byte{1}, wire.BodyBytesMax-1<<10)
	for name, body := range map[string][]byte{
		"name": request(message(5, control)), "value": request(attribute("k", message(1, control))),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, refused := decode(t, body, otlp.Protobuf); refused.Spans != 1 {
			t.Errorf("%s: refused %+v", name, refused)
		}
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; took > 8*wire.BodyBytesMax {
			t.Errorf("%s: %d MiB are allocated", name, took>>20)
		}
	}

	// Written in steps, no character is torn apart.
	text := strings.Repeat("x", 64<<10-2) + "😀" + strings.Repeat("é", 64<<10)
	got, _ := decode(t, request(message(5, []byte(text))), otlp.Protobuf)
	if len(got) != 1 || !strings.Contains(got[0], `"`+text+`"`) {
		t.Error("a long text is not kept as it is")
	}
}

func TestIDsAndEnumsOfAnyLengthAreLeftOut(t *testing.T) {
	long := `"` + strings.Repeat("x", 65) + `"`
	body := `{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"01010101010101010101010101010101",
		"spanId":"0000000000000001","name":"n","parentSpanId":` + long + `,"kind":` + long + `,
		"links":[{"traceId":` + long + `,"spanId":"short"}],"status":{"code":` + long + `,"message":"m"}}]}]}]}`
	got, _ := decode(t, []byte(body), otlp.JSON)
	want := []string{`{"resource":{},"scope":{},"span":{"traceId":"01010101010101010101010101010101",` +
		`"spanId":"0000000000000001","name":"n","links":[{"spanId":"short"}],"status":{"message":"m"}}}`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}

	got, _ = decode(t, request(message(4, bytes.Repeat([]byte{1}, 33))), otlp.Protobuf)
	if len(got) != 1 || strings.Contains(got[0], "parentSpanId") {
		t.Errorf("a parent of 33 bytes: %s", got)
	}
}

func TestManySmallSpansHaveRoomForTheirResource(t *testing.T) {
	var attributes []byte
	for range 60 {
		value := message(2, message(1, bytes.Repeat([]byte("v"), 86)))
		attributes = append(attributes, message(1, message(1, []byte("some.key")), value)...)
	}
	ids := slices.Concat(message(1, bytes.Repeat([]byte{1}, 16)), message(2, bytes.Repeat([]byte{2}, 8)))
	spans := bytes.Repeat(message(2, ids, message(5, bytes.Repeat([]byte("n"), 170))), 512)
	bodies, refused := decode(t, message(1, message(1, attributes), message(2, spans)), otlp.Protobuf)
	if len(bodies) != 512 || refused.Spans > 0 {
		t.Errorf("%d spans are taken, and refused %+v", len(bodies), refused)
	}
}

func TestHostileNamesAndNestingTakeLinearTime(t *testing.T) {
	// Quadratic, this would take minutes.
	name := `{"` + strings.Repeat("_a", 1<<19) + `":1,"resourceSpans":[]}`
	if bodies, refused := decode(t, []byte(name), otlp.JSON); len(bodies)+refused.Spans > 0 {
		t.Errorf("%d spans", len(bodies))
	}

	const levels = 6_000
	nested := strings.Repeat(`{"resourceLogs":[`, levels) + `{"scopeLogs":[{"logRecords":[{},{}]}]}` +
		strings.Repeat(`]}`, levels)
	for body, want := range map[string]int{
		nested: 0,
		`{"resource_logs":[{"scope_logs":[{"log_records":[{},{}]},{"logRecords":[1]}]}],"logRecords":[1]}`: 3,
	} {
		if _, refused := decodeLogs(t, []byte(body), otlp.JSON); refused.Dropped != want {
			t.Errorf("%.40s: refused %+v, want %d dropped", body, refused, want)
		}
	}
}

func TestWhatIsNoRequestIsMalformed(t *testing.T) {
	for _, c := range []struct {
		body string
		form otlp.Form
	}{
		{"{", otlp.JSON}, {"[]", otlp.JSON}, {"", otlp.JSON}, {"{} {}", otlp.JSON},
		{strings.Repeat("[", 30_000), otlp.JSON}, {"\x0a\x05\x01", otlp.Protobuf}, {"{}", otlp.Protobuf},
	} {
		_, err := otlp.Traces(t.Context(), []byte(c.body), c.form, func(otlp.Span) error { return nil })
		if !errors.Is(err, otlp.ErrMalformed) {
			t.Errorf("%.20q: %v", c.body, err)
		}
	}

	for body, form := range map[string]otlp.Form{
		"{}": otlp.JSON, `{"resourceSpans":[]}`: otlp.JSON, `{"resourceLogs":[{}]}`: otlp.JSON, "": otlp.Protobuf,
	} {
		if bodies, refused := decode(t, []byte(body), form); len(bodies) > 0 || refused.Spans > 0 {
			t.Errorf("%q gives %d spans", body, len(bodies))
		}
	}
}

// FuzzTraces decodes hostile requests. Each span must be JSON that every reader takes, and
// the same when it is decoded again.
func FuzzTraces(f *testing.F) {
	for _, p := range payloads(f, "") {
		f.Add(p.Body, p.Form == otlp.JSON)
	}
	f.Add(unhex(f, vector), false)
	f.Add([]byte(vectorJSON), true)

	f.Fuzz(func(t *testing.T, body []byte, isJSON bool) {
		form := otlp.Protobuf
		if isJSON {
			form = otlp.JSON
		}
		otlp.KindOf(body, form)
		_, err := otlp.Traces(t.Context(), body, form, func(s otlp.Span) error {
			if _, err := wire.ParseObject(s.Body); err != nil {
				t.Fatalf("%v in %s", err, s.Body)
			}
			var read struct {
				Span struct{ TraceID, SpanID, Name *string }
			}
			if err := json.Unmarshal(s.Body, &read); err != nil {
				t.Fatalf("%v in %s", err, s.Body)
			}
			if read.Span.TraceID == nil || *read.Span.TraceID != hex.EncodeToString(s.TraceID[:]) ||
				read.Span.SpanID == nil || read.Span.Name == nil {
				t.Fatalf("no ids or name in %s", s.Body)
			}
			return nil
		})
		if err != nil && !errors.Is(err, otlp.ErrMalformed) {
			t.Fatal(err)
		}
	})
}
