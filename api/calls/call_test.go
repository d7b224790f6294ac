package calls_test

import (
	"fmt"
	"strings"
	"testing"

	"promptspool/api/calls"
	"promptspool/api/wire"
	"promptspool/spool/archive"
	"promptspool/spool/database/databasetest"
)

// families has a call of each provider's API, as its documentation shows it, and what is
// read from it, in one line:
//
//	texts in > texts out | model | input/output tokens c=cached w=written to a cache
//	r=reasoning | finish reason | shape
var families = []struct{ name, kwargs, response, want string }{
	// https://platform.openai.com/docs/api-reference/chat/object
	{
		"openai chat",
		`{"model":"gpt-5","messages":[{"role":"developer","content":"Be brief."},{"role":"user",` +
			`"content":[{"type":"text","text":"Hi"},{"type":"image_url",` +
			`"image_url":{"url":"data:image/png;base64,AA"}}]}]}`,
		`{"object":"chat.completion","model":"gpt-5-2025-08-07","choices":[{"index":0,` +
			`"message":{"role":"assistant","content":"Hello!","refusal":null,"annotations":[]},` +
			`"logprobs":null,"finish_reason":"stop"}],
		"usage":{"prompt_tokens":19,"completion_tokens":110,"total_tokens":129,` +
			`"prompt_tokens_details":{"cached_tokens":4,"audio_tokens":0},` +
			`"completion_tokens_details":{"reasoning_tokens":64}},"service_tier":"flex"}`,
		"Be brief. Hi > Hello! | gpt-5-2025-08-07 | 19/110 c=4 r=64 | stop | plain_text",
	},
	{
		"openai chat with tool calls",
		`{"model":"gpt-4o","messages":[{"role":"tool","tool_call_id":"c0","content":"22"}]}`,
		`{"choices":[{"message":{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function",` +
			`"function":{"name":"weather","arguments":"{\"city\":\"Rome\"}"}}]},"finish_reason":"tool_calls"}]}`,
		`22 > weather {"city":"Rome"} | gpt-4o | ?/? | tool_calls | tool_call`,
	},
	// A stream that a client put together: the message's fields are directly in the choice.
	{"openai stream, put together", `{"model":"gpt-4o","stream":true,"messages":[{"role":"user","content":"Hi"}]}`,
		`{"choices":[{"role":"assistant","content":"Hello"}]}`, "Hi > Hello | gpt-4o | ?/? |  | plain_text"},
	// https://platform.openai.com/docs/api-reference/chat-streaming
	{
		"openai stream, chunk by chunk",
		`{"messages":[{"role":"user","content":"Hi"}]}`,
		`[{"object":"chat.completion.chunk","model":"gpt-4o","choices":[{"index":0,` +
			`"delta":{"role":"assistant","content":""}}]},{"choices":[{"delta":{"content":"Hel"}}]},` +
			`{"choices":[{"delta":{"content":"lo"}}]},
		{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":""}}]}}]},` +
			`{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{}"}}]}}]},
		{"choices":[{"delta":{},"finish_reason":"tool_calls"}]},{"choices":[],"usage":{"prompt_tokens":1,` +
			`"completion_tokens":2}}]`,
		"Hi > Hello f {} | gpt-4o | 1/2 | tool_calls | tool_call",
	},
	// https://platform.openai.com/docs/api-reference/completions/object
	{
		"openai completion",
		`{"engine":"text-ada-001","prompt":["My name is","I am"]}`,
		`{"object":"text_completion","model":"gpt-3.5-turbo-instruct","choices":[{"text":" Ada","index":0,` +
			`"logprobs":null,"finish_reason":"length"}],"usage":{"prompt_tokens":5,"completion_tokens":7,` +
			`"total_tokens":12}}`,
		"My name is I am >  Ada | gpt-3.5-turbo-instruct | 5/7 | length | plain_text",
	},
	// https://platform.openai.com/docs/api-reference/responses/object
	{
		"openai responses",
		`{"model":"gpt-5","instructions":"Be brief.","input":[{"role":"user","content":[{"type":"input_text",` +
			`"text":"Hi"}]},{"type":"function_call_output","call_id":"c0","output":"22"}]}`,
		`{"object":"response","status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},` +
			`"model":"gpt-5","output":[{"type":"reasoning","summary":[{"type":"summary_text","text":"Hm."}]},
		{"type":"web_search_call","id":"w","status":"completed","action":{"query":"q"}},{"type":"message",` +
			`"role":"assistant","content":[{"type":"output_text","text":"Hello","annotations":[]}]},` +
			`{"type":"function_call","call_id":"c1","name":"f","arguments":"{}"}],
		"usage":{"input_tokens":36,"input_tokens_details":{"cached_tokens":6},"output_tokens":87,` +
			`"output_tokens_details":{"reasoning_tokens":7},"total_tokens":123}}`,
		`Be brief. Hi 22 > Hm. Hello web_search {"query":"q"} f {} | gpt-5 | 36/87 c=6 r=7 | ` +
			`max_output_tokens | tool_call`,
	},
	// https://docs.anthropic.com/en/api/messages
	{
		"anthropic",
		`{"model":"claude-sonnet-4-5","system":[{"type":"text","text":"Be kind."}],"messages":[{"role":"user",` +
			`"content":[{"type":"tool_result","tool_use_id":"t0","content":[{"type":"text","text":"22"}]},` +
			`{"type":"text","text":"So?"}]}]}`,
		`{"type":"message","role":"assistant","model":"claude-sonnet-4-5-20250929",` +
			`"content":[{"type":"thinking","thinking":"Hm.","signature":"x"},{"type":"text","text":"Well."},` +
			`{"type":"tool_use","id":"t1","name":"f","input":{"a": 1}}],
		"stop_reason":"tool_use","usage":{"input_tokens":10,"cache_creation_input_tokens":20,` +
			`"cache_read_input_tokens":30,"cache_creation":{"ephemeral_5m_input_tokens":15,` +
			`"ephemeral_1h_input_tokens":5},"output_tokens":4}}`,
		`Be kind. 22 So? > Hm. Well. f {"a":1} | claude-sonnet-4-5-20250929 | 60/4 c=30 w=20 | tool_use | tool_call`,
	},
	// https://docs.anthropic.com/en/docs/build-with-claude/streaming
	{
		"anthropic stream",
		`{"messages":[{"role":"user","content":"Hi"}]}`,
		`[{"type":"message_start","message":{"model":"claude-opus-4-5","content":[],` +
			`"usage":{"input_tokens":25,"output_tokens":1}}},{"type":"content_block_start","index":0,` +
			`"content_block":{"type":"text","text":""}},
		{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hello"}},` +
			`{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"t","name":"f",` +
			`"input":{}}},
		{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta",` +
			`"partial_json":"{\"a\":1}"}},{"type":"message_delta","delta":{"stop_reason":"end_turn"},` +
			`"usage":{"output_tokens":15}}]`,
		`Hi > Hello f {"a":1} | claude-opus-4-5 | 25/15 | end_turn | tool_call`,
	},
	// https://ai.google.dev/api/generate-content
	{
		"gemini",
		`{"model":"gemini-2.5-pro","history":[{"role":"user","parts":[{"text":"Hi"}]}],` +
			`"generation_config":{"system_instruction":"Be kind."}}`,
		`{"candidates":[{"content":{"role":"model","parts":[{"text":"Hm.","thought":true},` +
			`{"text":"{\"a\":1}"}]},"finishReason":"STOP"}],"modelVersion":"gemini-2.5-pro",
		"usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":5,"thoughtsTokenCount":7,` +
			`"cachedContentTokenCount":4,"totalTokenCount":22}}`,
		`Be kind. Hi > Hm. {"a":1} | gemini-2.5-pro | 10/12 c=4 r=7 | STOP | json`,
	},
	{
		"gemini, blocked",
		`{"contents":"Hi"}`,
		`{"promptFeedback":{"blockReason":"SAFETY"},"usageMetadata":{"promptTokenCount":10,"totalTokenCount":10}}`,
		"Hi >  |  | 10/0 | SAFETY | ",
	},
	// https://docs.mistral.ai/api/
	{
		"mistral",
		`{"model":"magistral-medium-latest","messages":[{"role":"user","content":"Hi"}]}`,
		`{"object":"chat.completion","model":"magistral-medium-latest",` +
			`"choices":[{"message":{"role":"assistant","content":[{"type":"thinking",` +
			`"thinking":[{"type":"text","text":"Hm."}]},{"type":"text","text":"Hello"}]},` +
			`"finish_reason":"stop"}],"usage":{"prompt_tokens":16,"completion_tokens":34,"total_tokens":50}}`,
		"Hi > Hm. Hello | magistral-medium-latest | 16/34 | stop | plain_text",
	},
	// https://docs.cohere.com/reference/chat
	{
		"cohere v2",
		`{"model":"command-a-03-2025","messages":[{"role":"user","content":"Hi"}]}`,
		`{"finish_reason":"COMPLETE","message":{"role":"assistant","content":[{"type":"text",` +
			`"text":"Hello"}]},"usage":{"billed_units":{"input_tokens":5,"output_tokens":18},` +
			`"tokens":{"input_tokens":71,"output_tokens":18}}}`,
		"Hi > Hello | command-a-03-2025 | 5/18 | COMPLETE | plain_text",
	},
	// https://docs.cohere.com/v1/reference/chat
	{
		"cohere v1",
		`{"model":"command-r","preamble":"Be kind.","chat_history":[{"role":"CHATBOT","message":"Yes?"}],` +
			`"message":"Hi"}`,
		`{"text":"Hello","finish_reason":"COMPLETE","meta":{"billed_units":{"input_tokens":5,` +
			`"output_tokens":1},"tokens":{"input_tokens":70,"output_tokens":2}}}`,
		"Be kind. Yes? Hi > Hello | command-r | 70/2 | COMPLETE | plain_text",
	},
	// https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html
	{
		"bedrock converse",
		`{"modelId":"amazon.nova-lite-v1:0","system":[{"text":"Be kind."}],"messages":[{"role":"user",` +
			`"content":[{"text":"Hi"},{"toolResult":{"toolUseId":"t0","content":[{"json":{"a":1}}]}}]}]}`,
		`{"output":{"message":{"role":"assistant",` +
			`"content":[{"reasoningContent":{"reasoningText":{"text":"Hm."}}},{"text":"Hello"},` +
			`{"toolUse":{"toolUseId":"t","name":"f","input":{}}}]}},"stopReason":"tool_use",` +
			`"usage":{"inputTokens":30,"outputTokens":6,"cacheReadInputTokens":10,"totalTokens":46}}`,
		`Be kind. Hi {"a":1} > Hm. Hello f {} | amazon.nova-lite-v1:0 | 40/6 c=10 | tool_use | tool_call`,
	},
	// https://docs.aws.amazon.com/bedrock/latest/userguide/model-parameters.html
	{
		"bedrock invoke",
		`{"modelId":"meta.llama3-8b-instruct-v1:0","body":"{\"prompt\":\"Hi\"}"}`,
		`{"ResponseMetadata":{},"contentType":"application/json",` +
			`"body":"{\"generation\":\"Hello\",\"prompt_token_count\":3,` +
			`\"generation_token_count\":2,\"stop_reason\":\"stop\"}"}`,
		"Hi > Hello | meta.llama3-8b-instruct-v1:0 | 3/2 | stop | plain_text",
	},
	{
		"bedrock titan",
		`{"modelId":"amazon.titan-text-lite-v1","body":{"inputText":"Hi"}}`,
		`{"inputTextTokenCount":3,"results":[{"tokenCount":2,"outputText":"Hello","completionReason":"FINISH"}]}`,
		"Hi > Hello | amazon.titan-text-lite-v1 | 3/2 | FINISH | plain_text",
	},
	// What LangChain's callbacks serialise: https://python.langchain.com/api_reference/core/outputs.html
	{
		"langchain",
		`{"model_name":"gpt-4o"}`,
		`{"generations":[[{"text":"Hello","message":{"lc":1,"type":"constructor","id":["langchain","schema",` +
			`"messages","AIMessage"],"kwargs":{"content":"Hello"}}}]],` +
			`"llm_output":{"token_usage":{"prompt_tokens":3,"completion_tokens":2},"model_name":"gpt-4o-2024-08-06"}}`,
		" > Hello | gpt-4o-2024-08-06 | 3/2 |  | plain_text",
	},
	// LangChain.js: https://v03.api.js.langchain.com/interfaces/_langchain_core.outputs.LLMResult.html
	{
		"langchain, in JavaScript",
		`{"model":"gpt-4o","apiKey":"x","dangerouslyAllowBrowser":true}`,
		`{"generations":[[{"text":"Hello"}]],"llmOutput":{"tokenUsage":{"promptTokens":3,"completionTokens":2,` +
			`"totalTokens":5}}}`,
		" > Hello | gpt-4o | 3/2 |  | plain_text",
	},
	{
		"langchain, of both",
		`{"model":"gpt-4o"}`,
		`{"generations":[[{"text":"Hello"}]],"llm_output":{"tokenUsage":{"promptTokens":3,` +
			`"completionTokens":2,"totalTokens":5}}}`,
		" > Hello | gpt-4o | 3/2 |  | plain_text",
	},
	{
		"a list of messages",
		`{"model":"gpt-4o"}`,
		`[{"role":"assistant","content":"Hello"}]`,
		" > Hello | gpt-4o | ?/? |  | plain_text",
	},
	{"a text", `{"prompt":"Hi"}`, `"Hello"`, "Hi > Hello |  | ?/? |  | plain_text"},
	{
		"an API that leaves reasoning out of its output",
		`{}`,
		`{"choices":[{"message":{"content":"x","reasoning_content":"Hm."}}],"usage":{"prompt_tokens":1,` +
			`"completion_tokens":2,"total_tokens":13,"completion_tokens_details":{"reasoning_tokens":10}}}`,
		" > Hm. x |  | 1/12 r=10 |  | plain_text",
	},
	{
		"an embedding",
		`{"model":"text-embedding-3-small","input":"Hi"}`,
		`{"object":"list","data":[{"embedding":[0.1]}],"usage":{"prompt_tokens":2,"total_tokens":2}}`,
		"Hi >  | text-embedding-3-small | 2/? |  | ",
	},
	{"no form that is known", `{"prompt":"Hi"}`, `{"weird":[1]}`, "Hi >  |  | ?/? |  |  | unreadable"},
}

// oneLine returns a call in one line, as families has it.
func oneLine(c calls.Call, body string) string {
	line := func(s string) string { return strings.ReplaceAll(s, "\n", " ") }
	count := func(n *int64) string {
		if n == nil {
			return "?"
		}
		return fmt.Sprint(*n)
	}

	call := calls.Read([]byte(body))
	in, out := call.Texts()
	s := fmt.Sprintf("%s > %s | %s | %s/%s", line(in), line(out), c.Model, count(c.Usage.Input), count(c.Usage.Output))
	for _, part := range []struct {
		name string
		n    *int64
	}{{"c", c.Usage.Cached}, {"w", c.Usage.CacheWrite}, {"r", c.Usage.Reasoning}} {
		if part.n != nil && *part.n > 0 {
			s += fmt.Sprintf(" %s=%d", part.name, *part.n)
		}
	}

	s += " | " + c.FinishReason + " | " + c.Shape()
	if !c.Readable {
		s += " | unreadable"
	}

	return s
}

func TestEveryProvidersCallsAreRead(t *testing.T) {
	for _, c := range families {
		t.Run(c.name, func(t *testing.T) {
			body := `{"kwargs":` + c.kwargs + `,"request_response":` + c.response + `}`
			if got := oneLine(calls.Read([]byte(body)), body); got != c.want {
				t.Errorf("got\n  %s\nwant\n  %s", got, c.want)
			}
		})
	}
}

func TestALogRequestIsRead(t *testing.T) {
	body := `{"provider":"acme","model":"acme-1","input":{"type":"chat","messages":[{"role":"user",` +
		`"content":[{"type":"text","text":"Hi"}]}]},
		"output":{"type":"completion","content":[{"type":"text","text":"Hello"}]},"input_tokens":3,` +
		`"output_tokens":2,"price":0.0000025,
		"request_start_time":"2026-03-01T12:00:00Z","request_end_time":"2026-03-01T12:00:01Z",` +
		`"prompt_name":"greet","prompt_version_number":2}`

	const want = "Hi > Hello | acme-1 | 3/2 |  | plain_text"
	if got := oneLine(calls.Read([]byte(body)), body); got != want {
		t.Errorf("got %s, want %s", got, want)
	}

	rec := recordOf(t, body)
	if rec.Provider != "acme" || rec.Price == nil || *rec.Price != 0.0000025 ||
		rec.Prompt == nil || rec.Prompt.Name != "greet" || *rec.Prompt.Version != 2 || *rec.LatencyMS != 1000 {
		t.Errorf("the record is %+v", rec)
	}
}

func FuzzReadCall(f *testing.F) {
	for _, c := range families {
		f.Add([]byte(`{"kwargs":` + c.kwargs + `,"request_response":` + c.response + `}`))
	}
	f.Add([]byte(`{"input":{"messages":[{}]},"output":{"content":[7]}}`))

	f.Fuzz(func(t *testing.T, body []byte) {
		call := calls.Read(body)
		calls.Read(body)
		_ = call.Shape()
		if u := call.Usage; u.Cached != nil && *u.Cached > *u.Input || u.Reasoning != nil && *u.Reasoning > *u.Output {
			t.Errorf("more cached or reasoning tokens than tokens in all: %+v", u)
		}
	})
}

// recordOf returns the record of a request with this body.
func recordOf(t *testing.T, body string) wire.Record {
	t.Helper()

	id := databasetest.ID(1000)
	e := databasetest.Event(t, 1, wire.KindRequest, id, body)
	states, bodies := databasetest.Fold([]archive.Event{e})

	return states[id].View(t.Context(), bodies[e.ID])
}
