package otel_test

import (
	"bytes"
	"encoding/json"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"promptspool/api/calls"
	"promptspool/api/calls/otel"
	"promptspool/api/wire"
	"promptspool/metrics/cputimetest"
)

// hostile are spans of n pieces that could cost more than in proportion to their bytes.
var hostile = map[string]func(n int) map[string]any{
	"many attributes of metadata": func(n int) map[string]any {
		return each(n, func(i string) (string, any) { return "promptlayer.metadata." + i, i })
	},
	"many flattened messages": func(n int) map[string]any {
		return each(n, func(i string) (string, any) { return "gen_ai.prompt." + i + ".content", "abcdefgh" })
	},
	"many calls of tools in one message": func(n int) map[string]any {
		return each(n, func(i string) (string, any) { return "gen_ai.prompt.0.tool_calls." + i + ".name", "f" })
	},
	"many calls of tools among the contents of a message": func(n int) map[string]any {
		return each(n, func(i string) (string, any) {
			return "llm.output_messages.0.message.contents." + i + ".tool_call.function.name", "f"
		})
	},
	"calls of tools beside a text": func(n int) map[string]any {
		return map[string]any{"response_data": `{"message":{"tool_calls":[` +
			strings.Repeat(`{"function":{"name":"f","arguments":"{\"input\":{}}"}},`, n) + `{}]}}`}
	},
	"members of Braintrust's metadata": func(n int) map[string]any {
		object, _ := json.Marshal(each(n, func(i string) (string, any) { return "m" + i, i }))
		return map[string]any{"braintrust.metadata": string(object)}
	},
	"many parts in one message": func(n int) map[string]any {
		return map[string]any{"gen_ai.output.messages": `[{"role":"assistant","parts":[` +
			strings.Repeat(`{"type":"tool_call_response","response":"x"},{"type":"text","content":"y"},`, n) + `"z"]}]`}
	},
	"JSON within JSON": func(n int) map[string]any {
		text := strings.Repeat("\\", n)
		return map[string]any{"gen_ai.input.messages": "[" + strconv.Quote(strconv.Quote(text)) + "]"}
	},
	"nested lists": func(n int) map[string]any {
		return map[string]any{"gen_ai.input.messages": strings.Repeat("[", n) + strings.Repeat("]", n)}
	},
	"tags": func(n int) map[string]any {
		return map[string]any{"tag.tags": strings.Repeat("tag,", n)}
	},
	"variables of a prompt": func(n int) map[string]any {
		all := each(n, func(i string) (string, any) { return "gen_ai.prompt.variable." + i, i })
		all["gen_ai.prompt.name"] = "p"
		return all
	},
	"annotations": func(n int) map[string]any {
		return each(n, func(i string) (string, any) { return "annotations." + i + ".annotation.label", "x" })
	},
}

// each returns n attributes of a call.
func each(n int, attribute func(i string) (string, any)) map[string]any {
	all := map[string]any{}
	for i := range n {
		key, v := attribute(strconv.Itoa(i))
		all[key] = v
	}

	return all
}

// The server that reads a span serves all accounts.
func TestReadingASpanCostsInProportionToItsBytes(t *testing.T) {
	for name, attributes := range hostile {
		t.Run(name, func(t *testing.T) {
			body := func(n int) json.RawMessage {
				all := attributes(n)
				all["gen_ai.operation.name"], all["gen_ai.request.model"] = "chat", "m"
				return encode(t, spanWith(all))
			}
			small, large := body(300), body(4800)
			times := float64(len(large)) / float64(len(small))

			// The least of several measurements is that with the least of other work in it.
			measure := func(raw json.RawMessage) (spent, bytes float64) {
				spent, bytes = 1e18, 1e18
				for range 3 {
					s, b := cost(t, raw)
					spent, bytes = min(spent, s), min(bytes, b)
				}
				return spent, bytes
			}
			spentSmall, bytesSmall := measure(small)
			spentLarge, bytesLarge := measure(large)
			const slack = 4 // of caches, of sorting, and of tables that grow by doubling
			if bytesLarge > slack*times*bytesSmall {
				t.Errorf("%.0f times the bytes took %.0f times the memory", times, bytesLarge/bytesSmall)
			}
			if spentLarge > slack*times*max(spentSmall, 1e5) {
				t.Errorf("%.0f times the bytes took %.0f times the time", times, spentLarge/spentSmall)
			}
		})
	}
}

// cost returns what it takes to read a span as the archive does: nanoseconds of the
// processor, and bytes. The collector does not run meanwhile: it would work for what was allocated before.
func cost(t *testing.T, raw json.RawMessage) (spent, bytes float64) {
	t.Helper()
	runtime.GC()
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	spent = float64(cputimetest.Of(func() { calls.Read(raw) }))
	runtime.ReadMemStats(&after)

	return spent, float64(after.TotalAlloc - before.TotalAlloc)
}

// A batch holds the tags of all its spans.
func TestTagsDoNotKeepTheListThatTheyAreFrom(t *testing.T) {
	heap := func() uint64 {
		var stats runtime.MemStats
		for range 3 { // the pools of packages keep what they have for a while
			runtime.GC()
		}
		runtime.ReadMemStats(&stats)
		return stats.HeapAlloc
	}

	before := heap()
	tags := otel.Read(encode(t, spanWith(map[string]any{
		"gen_ai.operation.name": "chat",
		"langsmith.span.tags":   "a," + strings.Repeat("x", 16<<20) + ",b",
	}))).Tags
	if kept := int64(heap()) - int64(before); kept > 4<<20 || len(tags) != 2 {
		t.Errorf("%d tags keep %d bytes", len(tags), kept)
	}
	runtime.KeepAlive(tags)
}

// strconv takes some 20 us for such a number, which a caller may repeat for each 6 bytes.
func TestNumbersNextToZeroCostNoMoreThanOthers(t *testing.T) {
	list := func(number string) []byte {
		values := strings.TrimSuffix(strings.Repeat(`{"doubleValue":`+number+`},`, 50_000), ",")
		return []byte(`{"resource":{},"scope":{},"span":{"traceId":"0123456789abcdef0123456789abcdef",` +
			`"spanId":"0123456789abcdef","name":"n","attributes":[` +
			`{"key":"gen_ai.operation.name","value":{"stringValue":"chat"}},` +
			`{"key":"a","value":{"arrayValue":{"values":[` + values + `]}}}]}}`)
	}
	took := func(number string) time.Duration {
		least := time.Hour
		for range 3 {
			least = min(least, cputimetest.Of(func() { otel.Read(list(number)) }))
		}
		return least
	}
	if usual, least := took("1.5e-24"), took("5e-324"); least > 5*usual {
		t.Errorf("50,000 numbers 5e-324 take %v, others %v", least, usual)
	}
}

// Elements that say nothing are not made into calls of tools, or parts, of many times their bytes.
func TestElementsThatSayNothingAreNotRead(t *testing.T) {
	for _, key := range []string{"ai.response.toolCalls", "gen_ai.output.messages", "gen_ai.input.messages"} {
		for _, element := range []string{"{}", "[]", `""`, "null", "0"} {
			span := otel.Read(encode(t, spanWith(map[string]any{
				"gen_ai.operation.name": "chat",
				key:                     "[" + strings.TrimSuffix(strings.Repeat(element+",", 1000), ",") + "]",
			})))
			if n := len(span.Request()); n > 10_000 {
				t.Errorf("%s of a thousand %s becomes %d bytes", key, element, n)
			}
		}
	}
}

func TestOfALongListOnlyTheFirstElementsAreRead(t *testing.T) {
	span := otel.Read(encode(t, spanWith(map[string]any{
		"gen_ai.operation.name": "chat",
		"ai.response.toolCalls": "[" + strings.Repeat(`{"name":"f"},`, 200_000) + "{}]",
	})))
	if n := strings.Count(string(span.Request()), `"name":"f"`); n != 1<<17 {
		t.Errorf("%d calls of tools are read, want %d", n, 1<<17)
	}
}

// Whatever a span holds, its request follows the contract and says so the second time too.
func FuzzRead(f *testing.F) {
	for _, p := range payloads(f) {
		spans, _ := stored(f, p)
		for _, body := range spans {
			f.Add([]byte(body))
		}
	}
	for _, attributes := range hostile {
		f.Add([]byte(encode(f, spanWith(attributes(3)))))
	}

	f.Fuzz(func(t *testing.T, body []byte) {
		span := otel.Read(body)
		joined := otel.Join(body, []json.RawMessage{body})
		otel.Read(joined)
		request := span.Request()
		if again := otel.Read(body); string(again.Request()) != string(request) {
			t.Errorf("read again it becomes %s, not %s", again.Request(), request)
		}

		if _, err := wire.ParseObject(body); err != nil || !span.IsCall() {
			return // such a body is never stored
		}
		object, err := wire.ParseObject(request)
		if err != nil {
			t.Fatalf("%v: %s", err, request)
		}
		decoded, err := wire.DecodeRequest(object, true, time.Now())
		if err != nil && !bytes.Contains(request, []byte(`_time":1e300`)) {
			t.Errorf("%v: %s", err, request)
		}

		// The archive does not decode what it has made itself.
		decoded.SpanID, decoded.Kwargs, decoded.Response = "", nil, nil
		if diff := cmp.Diff(decoded, span.Write()); diff != "" {
			t.Errorf("decoded (-) it is not what the span says (+):\n%s", diff)
		}
		ctx := t.Context()
		want, got := calls.ReadObject(ctx, object), calls.ReadTraced(ctx, &span)
		// The response of a span that ended well may hold an error.
		if got.Failure != nil && want.Status == "SUCCESS" {
			want.Status = "ERROR"
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("written and read (-) it is not the call that the span is (+):\n%s", diff)
		}
	})
}
