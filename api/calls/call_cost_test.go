package calls_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"promptspool/api/calls"
	"promptspool/api/wire"
	"promptspool/spool/archive/query"
)

// The server that reads a call serves all accounts: no call may cost more than in proportion
// to its bytes.
func TestReadingACallCostsInProportionToItsBytes(t *testing.T) {
	for name, c := range map[string]struct{ around, element string }{
		"many parts of a text": {
			`{"request_response":{"choices":[{"message":{"role":"assistant","content":[%s]}}]}}`,
			`{"type":"text","text":"abcdefghijklmnopqrstuvwxyz"}`,
		},
		"many pieces of a tool's arguments": {
			`{"request_response":[%s]}`,
			`{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"abcdefghijklmnop"}}]}}]}`,
		},
		"text and reasoning in turn": {
			`{"request_response":[%s]}`,
			`{"choices":[{"delta":{"reasoning":"abcdefgh"}}]},{"choices":[{"delta":{"content":"abcdefgh"}}]}`,
		},
		"many pieces of Anthropic's": {
			`{"request_response":[{"type":"message_start"},%s]}`,
			`{"type":"content_block_delta","index":0,"delta":{"partial_json":"abcdefgh"}}`,
		},
		"many events of OpenAI's responses": {
			`{"request_response":[%s]}`, `{"type":"response.output_text.delta","output_index":1,"delta":"abcdefgh"}`,
		},
		"many texts so far": {`{"request_response":[%s]}`, `{"output":{"text":"abcdefgh"}}`},
		"many whole answers": {
			`{"request_response":[%s]}`, `{"choices":[{"message":{"content":"abcd"}}],"usage":{"prompt_tokens":1}}`,
		},
		"many lines of events": {
			`{"request_response":"data: {}%s"}`, `\ndata: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n:`,
		},
		"many tools of one answer": {
			`{"request_response":[%s]}`,
			`{"candidates":[{"content":{"parts":[{"functionCall":{"name":"a","args":{}}}]}}]}`,
		},
		"many choices": {
			`{"request_response":{"choices":[%s]}}`,
			`{"message":{"role":"assistant","content":"abcd"},"finish_reason":"stop"}`,
		},
		"many messages":  {`{"kwargs":{"messages":[%s]}}`, `{"role":"user","content":"abcd"}`},
		"many variables": {`{"prompt_input_variables":{%s}}`, `"b":"abcdefgh"`},
	} {
		// Memory, not time: it is the same however busy the machine is, and code that joins
		// texts piece by piece allocates as much as it copies.
		cost := func(n int) uint64 {
			text := []byte(strings.Replace(c.around, "%s", repeated(n, c.element), 1))
			before := allocated()

			call := calls.Read(text)
			call.Shape()
			query.ReadContent(t.Context(), text)

			return allocated() - before
		}

		if once, fourfold := cost(1000), cost(4000); fourfold > 8*once {
			t.Errorf("%s: four times as many allocate %d bytes, want about four times %d", name, fourfold, once)
		}
	}
}

func TestToolsOfAStreamThatBringsItsWholeAnswer(t *testing.T) {
	call := calls.Read([]byte(`{"request_response":[
		{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"name":"a","arguments":"{"}},` +
		`{"index":1,"function":{"name":"b"}}]}}]},
		{"type":"response.completed","response":{"output":[{"type":"message","content":[{"type":"output_text",` +
		`"text":"hello"}]}]}},
		{"choices":[{"delta":{"tool_calls":[{"index":1,"function":{"name":"c","arguments":"{}"}}]}}]}]}`))

	if len(call.Output) != 1 || len(call.Output[0].ToolCalls) != 1 || call.Output[0].ToolCalls[0].Arguments != "{}" {
		t.Errorf("the output is %+v, want one tool call with the arguments {}", call.Output)
	}
}

// repeated returns n equal elements of an array.
func repeated(n int, element string) string {
	return strings.TrimSuffix(strings.Repeat(element+",", n), ",")
}

// allocated returns how many bytes this process has ever allocated.
func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)

	return m.TotalAlloc
}

// The smallest elements of each list take a few bytes, and may not become many times as many.
func TestTheSmallestElementsAllocateInProportionToTheirBytes(t *testing.T) {
	const bodyBytes, most = 512 << 10, 100
	lists := map[string]string{
		"messages":           `{"kwargs":{"messages":[%s]}}`,
		"input":              `{"kwargs":{"input":[%s]}}`,
		"prompts":            `{"kwargs":{"prompt":[%s]}}`,
		"parts":              `{"kwargs":{"messages":[{"role":"user","content":[%s]}]}}`,
		"tool calls":         `{"request_response":{"choices":[{"message":{"role":"assistant","tool_calls":[%s]}}]}}`,
		"results":            `{"kwargs":{"messages":[{"content":[{"type":"tool_result","content":[%s]}]}]}}`,
		"a stream's choices": `{"request_response":[{"choices":[%s]}]}`,
		"a stream's calls":   `{"request_response":[{"choices":[{"delta":{"tool_calls":[%s]}}]}]}`,
		"a stream's content": `{"request_response":[{"choices":[{"delta":{"content":[%s]}}]}]}`,
		"elements":           `{"request_response":[%s]}`,
		"documents":          `{"kwargs":{"messages":[{"content":[{"type":"document","source":{"content":[%s]}}]}]}}`,
		"blocks":             `{"kwargs":{"messages":[{"blocks":[%s]}]}}`,
		"items":              `{"request_response":{"output":[{"type":"shell_call_output","output":[%s]}]}}`,
		"tools":              `{"kwargs":{"tools":[%s]}}`, "generations": `{"request_response":{"generations":[%s]}}`,
		"a log's messages": `{"input":{"type":"chat","messages":[%s]},"output":{},"provider":"p","model":"m"}`,
	}
	for list, around := range lists {
		for _, element := range []string{"[]", `"a"`, `{"a":0}`, `{"index":1,"id":"a"}`, `{"text":"a"}`} {
			body := []byte(strings.Replace(around, "%s", repeated(bodyBytes/(len(element)+1), element), 1))
			object, err := wire.ParseObject(body)
			if err != nil {
				t.Fatal(err)
			}
			before := allocated()
			call := calls.ReadObject(t.Context(), object)
			calls.Blueprint(&call, "p", object)
			if took := allocated() - before; took > most*bodyBytes {
				t.Errorf("%s of %s allocate %.1f bytes for each", list, element, float64(took)/bodyBytes)
			}
		}
	}
}

// Each level around a part reads its bytes again, so there is a bound on them. What is deeper is JSON.
func TestPartsAreTakenApartToABoundedDepth(t *testing.T) {
	for levels, isDeep := range map[int]bool{1: false, 5: false, 200: true} {
		call := calls.Read([]byte(`{"kwargs":{"messages":[{"role":"user","content":[` +
			strings.Repeat(`{"type":"tool_result","content":[`, levels) + `{"type":"text","text":"words"}` +
			strings.Repeat("]}", levels) + `]}]}}`))
		in, _ := call.Texts()
		if !strings.Contains(in, "words") || strings.Contains(in, "tool_result") != isDeep {
			t.Errorf("%d levels are read as %.80s", levels, in)
		}
	}
}

func TestABlueprintHasAThousandParametersAtMost(t *testing.T) {
	object, err := wire.ParseObject([]byte(`{"kwargs":{"a":{}` + numbered(100_000) + `,"temperature":0}}`))
	if err != nil {
		t.Fatal(err)
	}
	call := calls.ReadObject(t.Context(), object)
	if text := string(calls.Blueprint(&call, "p", object)); strings.Count(text, ":0") != 1000 || len(text) > 20_000 {
		t.Errorf("%d parameters in %d bytes", strings.Count(text, ":0"), len(text))
	}
}

// numbered returns n more members of an object.
func numbered(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `,"p%d":0`, i)
	}

	return b.String()
}
