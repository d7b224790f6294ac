package otel_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"promptspool/api/calls"
	"promptspool/api/calls/otel"
	"promptspool/api/calls/otel/dialect"
)

// spanWith returns a stored span with these attributes.
func spanWith(attributes map[string]any) map[string]any {
	return map[string]any{
		"resource": map[string]any{}, "scope": map[string]any{},
		"span": map[string]any{
			"traceId": strings.Repeat("ab", 16), "spanId": strings.Repeat("cd", 8), "name": "n",
			"startTimeUnixNano": "1700000000000000000", "endTimeUnixNano": "1700000001500000000",
			"attributes": attributes,
		},
	}
}

// reading is what a test expects of a span.
type reading struct {
	kind     dialect.Kind
	provider string
	model    string
	usage    string // input/output/cached/written/reasoning
	in, out  string // role: text [tool(arguments)] ..., one message a line
}

func TestDialectsAreRead(t *testing.T) {
	for name, c := range map[string]struct {
		name, scope string
		attributes  map[string]any
		events      []any
		want        reading
	}{
		"conventions, newest": {
			attributes: map[string]any{
				"gen_ai.operation.name": "chat", "gen_ai.provider.name": "aws.bedrock", "gen_ai.request.model": "m",
				"gen_ai.system_instructions": `[{"type":"text","content":"Be brief."}]`,
				"gen_ai.input.messages": `[{"role":"user","parts":[{"type":"text","content":"Weather?"},
					{"type":"uri","modality":"image","uri":"https://example.com/a.png"}]},
					{"role":"assistant","parts":[{"type":"reasoning","content":"hm"},
					{"type":"tool_call","id":"c1","name":"f","arguments":{"a":1}}]},
					{"role":"tool","parts":[{"type":"tool_call_response","id":"c1","response":"rainy"},
					{"type":"tool_call_response","id":"c2","result":{"b":2}}]}]`,
				"gen_ai.output.messages": `[{"role":"assistant","parts":[{"type":"text","content":"Rainy."}]}]`,

				"gen_ai.usage.input_tokens": 97, "gen_ai.usage.output_tokens": "52",
				"gen_ai.usage.cache_read.input_tokens": 50.0, "gen_ai.usage.reasoning.output_tokens": 3,
			},
			want: reading{
				dialect.Call, "amazon.bedrock", "m", "97/52/50/-/3",
				"system: Be brief.\nuser: Weather? https://example.com/a.png\nassistant: hm f({\"a\":1})\n" +
					"tool: rainy\ntool: {\"b\":2}", "assistant: Rainy.",
			},
		},
		"conventions, events of the span": {
			attributes: map[string]any{
				"gen_ai.operation.name": "chat", "gen_ai.system": "openai", "gen_ai.request.model": "m",
			},
			events: []any{
				eventWith("gen_ai.system.message", map[string]any{"content": "S"}),
				eventWith("gen_ai.user.message", map[string]any{"content": "Q"}),
				eventWith("gen_ai.choice", map[string]any{
					"finish_reason": "stop", "message": `{"role":"assistant","content":"A"}`,
				}),
			},
			want: reading{dialect.Call, "openai", "m", "", "system: S\nuser: Q", "assistant: A"},
		},
		"conventions, oldest": {
			attributes: map[string]any{
				"gen_ai.operation.name": "text_completion", "gen_ai.system": "openai", "gen_ai.request.model": "m",
				"gen_ai.usage.prompt_tokens": 5, "gen_ai.usage.completion_tokens": 6,
			},
			events: []any{
				eventWith("gen_ai.content.prompt", map[string]any{"gen_ai.prompt": "Q"}),
				eventWith("gen_ai.content.completion", map[string]any{
					"gen_ai.completion": `[{"role":"assistant","content":"A"}]`,
				}),
			},
			want: reading{dialect.Call, "openai", "m", "5/6/-/-/-", "user: Q", "assistant: A"},
		},
		"input that cannot include what the cache served": {
			attributes: map[string]any{
				"gen_ai.operation.name": "chat", "gen_ai.system": "openai", "gen_ai.request.model": "m",
				"gen_ai.usage.input_tokens": 7, "gen_ai.usage.cache_read_input_tokens": 16399,
				"gen_ai.usage.cache_creation.input_tokens": 1,
			},
			want: reading{dialect.Call, "openai", "m", "16407/-/16399/1/-", "", ""},
		},
		"Semantic Kernel": {
			name: "chat_completion",
			attributes: map[string]any{
				"gen_ai.system": "openai", "gen_ai.response.model": "m", "gen_ai.usage.input_tokens": 1,
			},
			events: []any{
				eventWith("gen_ai.user.message", map[string]any{
					"gen_ai.event.content": `{"role":"User","content":"Q"}`,
				}),
				eventWith("gen_ai.choice", map[string]any{
					"gen_ai.event.content": `{"index":0,"message":{"role":"Assistant","content":"A"}}`,
				}),
			},
			want: reading{dialect.Call, "openai", "m", "1/-/-/-/-", "user: Q", "assistant: A"},
		},
		"OpenLLMetry, flattened": {
			attributes: map[string]any{
				"llm.request.type": "chat", "gen_ai.system": "OpenAI", "gen_ai.request.model": "m",
				"gen_ai.prompt.999999999.role": "user", "gen_ai.prompt.999999999.content": "last",
				"gen_ai.prompt.2.role": "assistant", "gen_ai.prompt.2.tool_calls.0.id": "c1",
				"gen_ai.prompt.2.tool_calls.0.name": "f", "gen_ai.prompt.2.tool_calls.0.arguments": `{"a":1}`,
				"gen_ai.prompt.0.role": "user", "gen_ai.prompt.0.content": `[{"type":"text","text":"Hi"}]`,
				"gen_ai.completion.0.role": "assistant", "gen_ai.completion.0.content": "Hello",
				"gen_ai.usage.prompt_tokens": 14, "gen_ai.usage.completion_tokens": 3, "llm.usage.total_tokens": 17,
				"traceloop.span.kind": "task",
			},
			want: reading{
				dialect.Call, "openai", "m", "14/3/-/-/-", "user: Hi\nassistant: f({\"a\":1})\nuser: last",
				"assistant: Hello",
			},
		},
		"Langfuse, disjoint counts": {
			attributes: map[string]any{
				"langfuse.observation.type": "generation", "langfuse.observation.model.name": "gpt-4o",
				"langfuse.observation.input":         `[{"role":"user","content":"Hi"}]`,
				"langfuse.observation.output":        `{"role":"assistant","content":"Hello"}`,
				"langfuse.observation.usage_details": `{"input":60,"input_cached_tokens":40,"output":9,"total":109}`,
			},
			want: reading{dialect.Call, "openai", "gpt-4o", "100/9/40/-/-", "user: Hi", "assistant: Hello"},
		},
		"Langfuse, the provider's own counts": {
			attributes: map[string]any{
				"langfuse.observation.type": "generation", "langfuse.observation.model.name": "my-model",
				"langfuse.observation.input":  "Hi",
				"langfuse.observation.output": `{"answer":42}`,
				"langfuse.observation.usage_details": `{"prompt_tokens":10,"completion_tokens":5,` +
					`"prompt_tokens_details":{"cached_tokens":4},"completion_tokens_details":{"reasoning_tokens":2}}`,
			},
			want: reading{dialect.Call, "unknown", "my-model", "10/5/4/-/2", "user: Hi", `assistant: {"answer":42}`},
		},
		"Vercel AI SDK 6, Anthropic": {
			scope: "ai",
			attributes: map[string]any{
				"ai.operationId": "ai.streamText.doStream",
				"ai.model.id":    "m", "ai.model.provider": "anthropic.messages",
				"ai.usage.inputTokens": 20, "ai.usage.outputTokens": 5,
				"ai.usage.inputTokenDetails.cacheReadTokens": 7, "ai.response.text": "A",
				"ai.prompt.messages": `[{"role":"user","content":[
					{"type":"image","image":"https://example.com/a.png"}]}]`,
			},
			want: reading{
				dialect.Call, "anthropic", "m", "20/5/7/-/-", "user: https://example.com/a.png", "assistant: A",
			},
		},
		"Vercel AI SDK 5, Anthropic: input without what the cache served": {
			scope: "ai",
			attributes: map[string]any{
				"ai.operationId": "ai.streamText.doStream",
				"ai.model.id":    "m", "ai.model.provider": "anthropic.messages",
				"ai.usage.inputTokens": 20, "ai.usage.outputTokens": 5, "ai.usage.cachedInputTokens": 7,
				"ai.response.text": "A",
			},
			want: reading{dialect.Call, "anthropic", "m", "27/5/7/-/-", "", "assistant: A"},
		},
		"Vercel AI SDK 7, agent": {
			attributes: map[string]any{
				"gen_ai.operation.name": "invoke_agent", "gen_ai.provider.name": "openai", "gen_ai.request.model": "m",
				"gen_ai.usage.input_tokens": 9, "gen_ai.input.messages": `[]`,
			},
			want: reading{kind: dialect.Agent},
		},
		"LangSmith": {
			attributes: map[string]any{
				"langsmith.span.kind": "llm", "langsmith.metadata.ls_provider": "anthropic",
				"langsmith.metadata.ls_model_name": "m", "gen_ai.system": "langchain", "gen_ai.operation.name": "chat",
				"gen_ai.prompt": `{"messages":[[{"lc":1,"type":"constructor","id":["langchain","HumanMessage"],` +
					`"kwargs":{"content":"Q","type":"human"}}]]}`,
				"gen_ai.completion": `{"generations":[[{"text":"A","message":{"lc":1,"id":["x","AIMessage"],` +
					`"kwargs":{"content":"A","tool_calls":[{"name":"f","args":{"a":1},"id":"c1"}]}}}]]}`,
				"gen_ai.usage.input_tokens": 3, "gen_ai.usage.output_tokens": 4,
			},
			want: reading{dialect.Call, "anthropic", "m", "3/4/-/-/-", "user: Q", `assistant: A f({"a":1})`},
		},
		"LangSmith, prompt": {
			attributes: map[string]any{
				"langsmith.span.kind": "prompt", "gen_ai.operation.name": "chat", "gen_ai.prompt": `{"a":"b"}`,
			},
			want: reading{kind: dialect.Chain},
		},
		"LiteLLM": {
			name: "litellm_request", scope: "litellm",
			attributes: map[string]any{
				"gen_ai.operation.name": "acompletion", "gen_ai.system": "openai", "gen_ai.request.model": "m",
				"gen_ai.prompt.0.role": "user", "gen_ai.prompt.0.content": "Q",
				"gen_ai.input.messages":  `[{"role":"user","content":"Q"}]`,
				"gen_ai.output.messages": `[{"role":"assistant","content":"A","tool_calls":null}]`,
			},
			want: reading{dialect.Call, "openai", "m", "", "user: Q", "assistant: A"},
		},
		"LiteLLM, copy": {
			name: "raw_gen_ai_request", scope: "litellm",
			attributes: map[string]any{
				"llm.openai.messages": "x", "gen_ai.request.model": "m", "llm.usage.total_tokens": 1,
			},
			want: reading{kind: dialect.Plain},
		},
		"Pydantic AI, before it had attributes for messages": {
			scope: "pydantic-ai",
			attributes: map[string]any{
				"gen_ai.operation.name": "chat", "gen_ai.system": "openai", "gen_ai.request.model": "m",
				"gen_ai.usage.input_tokens": 1, "gen_ai.usage.details.reasoning_tokens": 0,
				"events": `[{"event.name":"gen_ai.user.message","content":"Q","role":"user"},
					{"event.name":"gen_ai.choice","index":0,"message":{"role":"assistant","content":"A"}}]`,
			},
			want: reading{dialect.Call, "openai", "m", "1/-/-/-/-", "user: Q", "assistant: A"},
		},
		"Logfire, a span that has only begun": {
			scope:      "pydantic-ai",
			attributes: map[string]any{"logfire.span_type": "pending_span", "gen_ai.operation.name": "chat"},
			want:       reading{kind: dialect.Plain},
		},
		"Google ADK": {
			name: "call_llm", scope: "gcp.vertex.agent",
			attributes: map[string]any{
				"gen_ai.system": "gcp.vertex.agent", "gen_ai.request.model": "gemini-2.0-flash",
				"gcp.vertex.agent.llm_request": `{"model":"gemini-2.0-flash","config":{"system_instruction":"S"},
					"contents":[{"role":"user","parts":[{"text":"Q"}]},
					{"role":"model","parts":[{"function_call":{"id":"c1","name":"f","args":{"a":1}}}]},
					{"role":"user","parts":[{"function_response":{"id":"c1","name":"f","response":{"b":2}}}]}]}`,
				"gcp.vertex.agent.llm_response": `{"content":{"role":"model","parts":[{"text":"A"}]},
					"finish_reason":"STOP","usage_metadata":{
					"prompt_token_count":10,"candidates_token_count":5,"cached_content_token_count":2,
					"thoughts_token_count":3}}`,
			},
			want: reading{
				dialect.Call, "google", "gemini-2.0-flash", "10/8/2/-/3",
				"system: S\nuser: Q\nassistant: f({\"a\":1})\ntool: {\"b\":2}", "assistant: A",
			},
		},
		"MLflow": {
			attributes: map[string]any{
				"mlflow.spanType":   `"CHAT_MODEL"`,
				"mlflow.spanInputs": `{"messages":[{"role":"user","content":"Q"}],"model":"gpt-4o"}`,
				"mlflow.spanOutputs": `{"choices":[{"message":{"role":"assistant","content":"A"}}],
					"usage":{"prompt_tokens":1,"completion_tokens":2}}`,
			},
			want: reading{dialect.Call, "unknown", "gpt-4o", "1/2/-/-/-", "user: Q", "assistant: A"},
		},
		"Genkit": {
			attributes: map[string]any{
				"genkit:metadata:subtype": "model",
				"genkit:input":            `{"messages":[{"role":"user","content":[{"text":"Q"}]}]}`,
				"genkit:output":           `{"message":{"role":"model","content":[{"text":"A"}]}}`,
			},
			want: reading{dialect.Call, "unknown", "", "", "user: Q", "assistant: A"},
		},
		"OpenInference, only the raw request and response": {
			attributes: map[string]any{
				"openinference.span.kind": "LLM", "llm.provider": "azure", "llm.model_name": "m",
				"input.value":  `{"messages":[{"role":"user","content":"Q"}],"temperature":0}`,
				"output.value": `{"choices":[{"message":{"role":"assistant","content":"A"},"finish_reason":"length"}]}`,
			},
			want: reading{dialect.Call, "openai.azure", "m", "", "user: Q", "assistant: A"},
		},
		"OpenInference, retriever": {
			attributes: map[string]any{"openinference.span.kind": "RETRIEVER", "input.value": "Q"},
			want:       reading{kind: dialect.Retriever},
		},
		"PromptLayer, a call that the SDK logs itself": {
			attributes: map[string]any{
				"promptlayer.request_log.managed": true, "gen_ai.operation.name": "chat", "gen_ai.request.model": "m",
			},
			want: reading{kind: dialect.Chain},
		},
		"JSON cut short": {
			attributes: map[string]any{
				"gen_ai.operation.name": "chat", "gen_ai.system": "openai", "gen_ai.request.model": "m",
				"gen_ai.input.messages": `[{"role":"user","parts":[{"ty`, "gen_ai.output.messages": "__REDACTED__",
			},
			want: reading{
				dialect.Call, "openai", "m", "", `user: [{"role":"user","parts":[{"ty`, "assistant: __REDACTED__",
			},
		},
		"Python's notation": {
			attributes: map[string]any{
				"gen_ai.operation.name": "chat", "gen_ai.system": "openai", "gen_ai.request.model": "m",
				"gen_ai.input.messages": `[{'role': 'user', 'content': "it's \u00e4 \'Q\'", 'name': None}]`,
			},
			want: reading{dialect.Call, "openai", "m", "", "user: it's ä 'Q'", ""},
		},
		"a text in brackets": {
			attributes: map[string]any{
				"gen_ai.operation.name": "chat", "gen_ai.system": "openai", "gen_ai.request.model": "m",
				"gen_ai.input.messages": "[sic]", "gen_ai.output.messages": "(none)",
			},
			want: reading{dialect.Call, "openai", "m", "", "user: [sic]", "assistant: (none)"},
		},
		"an app's own span": {
			attributes: map[string]any{"order.id": 7},
			want:       reading{kind: dialect.Plain},
		},
	} {
		t.Run(name, func(t *testing.T) {
			body := spanWith(c.attributes)
			span := body["span"].(map[string]any)
			span["events"] = c.events
			body["scope"] = map[string]any{"name": c.scope}
			if c.name != "" {
				span["name"] = c.name
			}

			got := readingOf(t, otel.Read(encode(t, body)))
			if got != c.want {
				t.Errorf("got\n%+v\nwant\n%+v", got, c.want)
			}
		})
	}
}

func eventWith(name string, attributes map[string]any) any {
	return map[string]any{"name": name, "timeUnixNano": "1700000000500000000", "attributes": attributes}
}

func readingOf(t *testing.T, s otel.Span) reading {
	t.Helper()
	r := reading{kind: s.Kind}
	if !s.IsCall() {
		return r
	}

	call := readRequest(t, s.Request())
	var request struct {
		Provider string `json:"provider_type"`
	}
	if err := json.Unmarshal(s.Request(), &request); err != nil {
		t.Fatal(err)
	}
	r.provider, r.model = request.Provider, call.Model
	r.in, r.out = lines(call.Input), lines(call.Output)
	if u := call.Usage; u != (calls.Usage{}) {
		var counts []string
		for _, n := range []*int64{u.Input, u.Output, u.Cached, u.CacheWrite, u.Reasoning} {
			if n == nil {
				counts = append(counts, "-")
			} else {
				counts = append(counts, fmt.Sprint(*n))
			}
		}
		r.usage = strings.Join(counts, "/")
	}

	return r
}

// lines returns messages for people, one a line.
func lines(messages []calls.Message) string {
	var all []string
	for _, m := range messages {
		words := []string{m.Role + ":"}
		for _, p := range m.Parts {
			words = append(words, p.Text)
		}
		for _, c := range m.ToolCalls {
			words = append(words, c.Name+"("+c.Arguments+")")
		}
		all = append(all, strings.Join(words, " "))
	}

	return strings.Join(all, "\n")
}

// The goldens have the Python SDK's spans. A span of another library is nobody's but its own.
func TestASpanSaysUnderWhichIDItsCallIsLogged(t *testing.T) {
	const own, other = "00000000000000ab", "00000000000000CD"
	wrapped := map[string]any{"function_input": `[{"model":"m"}]`, "response_status": "success"}
	for name, c := range map[string]struct {
		attributes map[string]any
		want       string
		scope      string
	}{
		"managed": {map[string]any{"promptlayer.request_log.managed": true}, own, ""},
		"managed, by another span": {map[string]any{
			"promptlayer.request_log.managed": "true", "promptlayer.request_log.span_id": other,
		}, strings.ToLower(other), ""},
		"wrapped by the JavaScript SDK": {wrapped, own, ""},
		"with the same words":           {wrapped, "", "some.other.library"},
		"which failed, and is not logged": {
			map[string]any{"function_input": `[{"model":"m"}]`, "response_status": "error"}, "", "",
		},
		"only a function": {map[string]any{"function_input": `["Ann"]`, "function_output": "1"}, "", ""},
		"a call": {map[string]any{
			"gen_ai.request.model": "m", "function_input": `[]`, "response_status": "success",
		}, "", ""},
	} {
		body := spanWith(c.attributes)
		body["span"].(map[string]any)["spanId"] = own
		body["scope"] = map[string]any{"name": c.scope}

		if s := otel.Read(encode(t, body)); s.LoggedAs != c.want || c.want != "" && s.Kind != dialect.Chain {
			t.Errorf("%s: logged as %q, a %s, want %q", name, s.LoggedAs, s.Kind, c.want)
		}
	}
}

func TestWhatIsNotContentBecomesTagsMetadataAndALink(t *testing.T) {
	body := spanWith(map[string]any{
		"gen_ai.operation.name": "chat", "promptlayer.metadata.user_id": "explicit", "user.id": "u1",
		"enduser.id": "u2", "session.id": "s1", "gen_ai.conversation.id": "c1", "langfuse.trace.tags": []any{"b"},
		"tag.tags": `["a","b"]`, "langsmith.span.tags": "c, a", "metadata": `{"tier":"gold","n":{"x":1}}`,
		"promptlayer.prompt.name": "greet", "promptlayer.prompt.version": "3", "promptlayer.prompt.label": "prod",
		"gen_ai.prompt.variable.who": "Ann", "gen_ai.usage.cost": 0.25, "gen_ai.response.time_to_first_chunk": 0.5,
	})
	body["resource"] = map[string]any{"attributes": map[string]any{
		"service.name": "shop", "deployment.environment.name": "prod", "promptlayer.metadata.team": "x",
	}}
	s := otel.Read(encode(t, body))

	want := map[string]string{
		"user_id": "explicit", "conversation_id": "c1", "tier": "gold", "n": `{"x":1}`, "service": "shop",
		"environment": "prod", "team": "x", "time_to_first_token_ms": "500",
	}
	if fmt.Sprint(s.Metadata) != fmt.Sprint(want) {
		t.Errorf("metadata %v, want %v", s.Metadata, want)
	}
	if !slices.Equal(s.Tags, []string{"a", "b", "c"}) || string(s.Price) != "0.25" {
		t.Errorf("tags %v, price %s", s.Tags, s.Price)
	}
	p := s.Prompt
	if p.Name != "greet" || p.Version != 3 || p.Label != "" || string(p.InputVariables) != `{"who":"Ann"}` {
		t.Errorf("prompt %+v", p)
	}
	readRequest(t, s.Request())
}

// A fraction is a score; whatever else an evaluation says is metadata.
func TestEvaluationsBecomeScores(t *testing.T) {
	body := spanWith(map[string]any{
		"gen_ai.operation.name": "chat", "annotations.0.annotation.name": "toxic",
		"annotations.0.annotation.score": 0.004, "annotations.1.annotation.name": "stars",
		"annotations.1.annotation.score": 4.5, "annotations.1.annotation.label": "good",
	})
	log := encode(t, map[string]any{
		"resource": map[string]any{}, "scope": map[string]any{}, "index": 0,
		"log": map[string]any{"eventName": "gen_ai.evaluation.result", "attributes": map[string]any{
			"gen_ai.evaluation.name": "helpful", "gen_ai.evaluation.score.value": 0.875,
			"gen_ai.evaluation.score.label": "yes", "gen_ai.evaluation.explanation": "It answers.",
		}},
	})
	s := otel.Read(otel.Join(encode(t, body), []json.RawMessage{log}))

	if got := fmt.Sprint(s.Scores); got != "[{helpful 88} {toxic 0}]" {
		t.Errorf("scores %s", got)
	}
	want := map[string]string{
		"evaluation.helpful.label": "yes", "evaluation.helpful.explanation": "It answers.",
		"evaluation.stars": "4.5", "evaluation.stars.label": "good",
	}
	if fmt.Sprint(s.Metadata) != fmt.Sprint(want) {
		t.Errorf("metadata %v, want %v", s.Metadata, want)
	}
}
