package archive_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"promptspool/api/wire"
	"promptspool/spool/archive"
	"promptspool/spool/database/databasetest"
)

// The documented examples.
const (
	chat = `{"function_name":"openai.ChatCompletion.create",
		"kwargs":{"engine":"gpt-3.5-turbo","messages":[{"role":"user","content":"What is the weather?"}],
			"functions":[{"name":"get_current_weather","parameters":{"type":"object"}}],"function_call":"auto"},
		"request_response":{"id":"chatcmpl-1","object":"chat.completion","created":1697495400,` +
		`"model":"gpt-3.5-turbo-0613",
			"choices":[{"index":0,"message":{"role":"assistant","content":null,
				"function_call":{"name":"get_current_weather","arguments":"{\"location\":\"Boston\"}"}},` +
		`"finish_reason":"function_call"}],
			"usage":{"prompt_tokens":82,"completion_tokens":18,"total_tokens":100}},
		"request_start_time":1697495400.25,"request_end_time":1697495402.75,"tags":["weather"]}`
	completion = `{"function_name":"openai.Completion.create","kwargs":{"engine":"text-ada-001","prompt":"My name is"},
		"request_response":{"id":"cmpl-1","object":"text_completion","created":1679611202,"model":"text-ada-001",
			"choices":[{"text":" Ada","index":0,"logprobs":null,"finish_reason":"stop"}]},
		"request_start_time":1679611200,"request_end_time":1679611201}`
)

// derived has the fields of a record that are computed from the body. An absent number is -1.
type derived struct {
	Provider, Model, Status string
	In, Out, Total          int64
	LatencyMS               float64
}

func number[T int64 | float64](v *T) T {
	if v == nil {
		return -1
	}

	return *v
}

func TestDerivedFields(t *testing.T) {
	// body returns a request with these members.
	body := func(members string) string {
		return `{"function_name":"openai.ChatCompletion.create",` +
			`"request_start_time":10,"request_end_time":11.5,` + members + `}`
	}
	usual := derived{Provider: "openai", Status: "SUCCESS", In: -1, Out: -1, Total: -1, LatencyMS: 1500}
	with := func(change func(d *derived)) derived {
		d := usual
		change(&d)
		return d
	}

	for _, c := range []struct {
		name, body string
		want       derived
	}{
		{"the documented chat with a function call", chat,
			derived{"openai", "gpt-3.5-turbo-0613", "SUCCESS", 82, 18, 100, 2500}},
		{"the documented completion, without usage", completion,
			derived{"openai", "text-ada-001", "SUCCESS", -1, -1, -1, 1000}},
		{"usage as Anthropic says it", body(`"request_response":{"usage":{"input_tokens":3,"output_tokens":4}}`),
			with(func(d *derived) { d.In, d.Out, d.Total = 3, 4, 7 })},
		{"half a usage", body(`"request_response":{"usage":{"prompt_tokens":3,"completion_tokens":null}}`),
			with(func(d *derived) { d.In = 3 })},
		{"a usage that makes no sense",
			body(`"request_response":{"usage":{"prompt_tokens":-1,"completion_tokens":1.5}}`), usual},
		{"a usage of texts and huge numbers",
			body(`"request_response":{"usage":{"prompt_tokens":"3","completion_tokens":1e30}}`), usual},
		{"a usage that is a list", body(`"request_response":{"usage":[1,2],"model":["x"]}`), usual},
		{"a response that is a list",
			body(`"request_response":[{"role":"assistant","content":"hi"}],"kwargs":{"model":"m","engine":"e"}`),
			with(func(d *derived) { d.Model = "m" })},
		{"a response that is a text", body(`"request_response":"hi","kwargs":{"engine":"e"}`),
			with(func(d *derived) { d.Model = "e" })},
		{"no response at all", body(`"request_response":null,"kwargs":null`), usual},
		{"a model that is empty or no text", body(`"request_response":{"model":""},"kwargs":{"model":7,"engine":"e"}`),
			with(func(d *derived) { d.Model = "e" })},
		{"a model without end", body(`"request_response":{"model":"` + strings.Repeat("ä", 600) + `"}`),
			with(func(d *derived) { d.Model = strings.Repeat("ä", 512) })},
		{"a provider that the caller names", body(`"provider_type":"openai.azure"`),
			with(func(d *derived) { d.Provider = "openai.azure" })},
		{"a function's name in capitals",
			`{"function_name":"LangChain.PromptLayerChatOpenAI","request_start_time":10,"request_end_time":11.5}`,
			with(func(d *derived) { d.Provider = "langchain" })},
		{"a status that the caller names", body(`"status":"WARNING","error_type":"X"`),
			with(func(d *derived) { d.Status = "WARNING" })},
		{"an error without a status", body(`"error_type":"TIMEOUT"`), with(func(d *derived) { d.Status = "ERROR" })},
		{"an end before its start", `{"function_name":"openai.x","request_start_time":11,"request_end_time":10}`,
			with(func(d *derived) { d.LatencyMS = -1 })},
		{
			"a call of more than a day",
			`{"function_name":"openai.x","request_start_time":0,"request_end_time":86400.001}`,
			with(func(d *derived) { d.LatencyMS = -1 }),
		},
		{"a call of exactly a day", `{"function_name":"openai.x","request_start_time":0,"request_end_time":86400}`,
			with(func(d *derived) { d.LatencyMS = 86400000 })},
		{
			"times that are no moments",
			`{"function_name":"openai.x","request_start_time":"soon","request_end_time":1e300}`,
			with(func(d *derived) { d.LatencyMS = -1 }),
		},
		{"times as ISO-8601", `{"function_name":"openai.x","request_start_time":"2026-03-01T12:00:00Z",` +
			`"request_end_time":"2026-03-01T12:00:00.25Z"}`,
			with(func(d *derived) { d.LatencyMS = 250 })},
	} {
		t.Run(c.name, func(t *testing.T) {
			rec := record(event(t, 1, wire.KindRequest, c.body))
			got := derived{
				rec.Provider, rec.Model, rec.Status,
				number(rec.InputTokens), number(rec.OutputTokens), number(rec.Tokens),
				number(rec.LatencyMS),
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("derived (-want +got):\n%s", diff)
			}
			if string(rec.Request) != c.body {
				t.Errorf("the request differs from what was sent: %s", rec.Request)
			}
		})
	}
}

func TestARowSaysWhatTheRecordSays(t *testing.T) {
	states, _ := databasetest.Fold([]archive.Event{
		event(t, 1, wire.KindRequest, chat),
		event(t, 2, wire.KindMetadata, `{"metadata":{"b":"2","a":"1"}}`),
		event(t, 3, wire.KindScore, `{"score":90}`),
		event(t, 4, wire.KindPrompt, `{"prompt_name":"weather","version":3,"label":null,"prompt_input_variables":{}}`),
	})
	row, ok := states[databasetest.ID(1000)].Row()
	if !ok {
		t.Fatal("a record with its request has no row")
	}

	rec := record(event(t, 1, wire.KindRequest, chat))
	in, out, latency, three, name := int64(82), int64(18), 2.5, int64(3), "weather"
	want := wire.Row{
		ID:            databasetest.ID(1000),
		RequestID:     databasetest.ID(1000),
		ListTime:      *rec.StartTime,
		AcceptedAt:    rec.AcceptedAt,
		FunctionName:  "openai.ChatCompletion.create",
		Engine:        "gpt-3.5-turbo-0613",
		Provider:      "openai",
		InputTokens:   &in,
		OutputTokens:  &out,
		StartTime:     rec.StartTime,
		EndTime:       rec.EndTime,
		Latency:       &latency,
		Status:        "SUCCESS",
		Tags:          []string{"weather"},
		Metadata:      []wire.MetadataRow{{Key: "a", Value: "1"}, {Key: "b", Value: "2"}},
		Scores:        []wire.Score{wire.IntegerScore("default", 90)},
		PromptName:    &name,
		PromptVersion: &three,
		Sidecar:       "host-a",
		FinishReason:  "function_call",
		ToolNames:     []string{"get_current_weather"},
		Turns:         1,
		OutputShape:   "tool_call",
		Readable:      true,
		InputExcerpt:  "What is the weather?",
		OutputExcerpt: `get_current_weather {"location":"Boston"}`,
	}
	if row.TextHash == 0 {
		t.Error("the row does not know its text")
	}
	row.TextHash = 0
	if diff := cmp.Diff(want, row); diff != "" {
		t.Errorf("row (-want +got):\n%s", diff)
	}
}
