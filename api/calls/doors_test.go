package calls_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"promptspool/api/calls"
	"promptspool/api/calls/otel"
	"promptspool/api/wire"
)

// object is a JSON object.
type object = map[string]any

// answer is what a model answered, whoever it is of.
type answer struct {
	text, tool, arguments    string
	model, tier              string
	finish                   string
	in, out                  int64 // in all
	read, written, reasoning int64 // of these
}

// provider is how one provider answers. Pieces are the chunks of a stream, which has the text in two.
type provider struct {
	name, model     string
	stop, calls     string // finish reasons of a text, and of a call of a tool
	whole           func(a answer) any
	pieces          func(a answer) []any
	fails           any
	failure         string
	writes, reasons bool // whether it counts such tokens
	tiers           []string
}

// chatUsage is that of OpenAI's chat, which others have too.
func chatUsage(a answer) object {
	return object{
		"prompt_tokens": a.in, "completion_tokens": a.out, "total_tokens": a.in + a.out,
		"prompt_tokens_details":     object{"cached_tokens": a.read},
		"completion_tokens_details": object{"reasoning_tokens": a.reasoning},
	}
}

func chatCalls(a answer) []any {
	if a.tool == "" {
		return nil
	}
	function := object{"name": a.tool, "arguments": a.arguments}

	return []any{object{"index": 0, "id": "c1", "type": "function", "function": function}}
}

func chat(a answer) any {
	message := object{"role": "assistant", "content": a.text, "tool_calls": chatCalls(a)}
	choice := object{"index": 0, "message": message, "finish_reason": a.finish}
	return object{"id": "r", "model": a.model, "service_tier": a.tier, "choices": []any{choice}, "usage": chatUsage(a)}
}

func chatPieces(a answer) []any {
	chunk := func(delta object, reason any) any {
		choice := object{"index": 0, "delta": delta, "finish_reason": reason}
		return object{"id": "r", "model": a.model, "service_tier": a.tier, "choices": []any{choice}, "usage": nil}
	}
	half := len(a.text) / 2
	last := object{"id": "r", "model": a.model, "service_tier": a.tier, "choices": []any{}, "usage": chatUsage(a)}

	return []any{
		chunk(object{"role": "assistant", "content": a.text[:half]}, nil),
		chunk(object{"content": a.text[half:]}, nil),
		chunk(object{"tool_calls": chatCalls(a)}, nil), chunk(object{}, a.finish), last,
	}
}

func responses(a answer) any {
	content := []any{object{"type": "output_text", "text": a.text}}
	items := []any{object{"type": "message", "role": "assistant", "content": content}}
	if a.tool != "" {
		items = append(items,
			object{"type": "function_call", "call_id": "c1", "name": a.tool, "arguments": a.arguments})
	}
	usage := object{
		"input_tokens": a.in, "output_tokens": a.out, "total_tokens": a.in + a.out,
		"input_tokens_details":  object{"cached_tokens": a.read},
		"output_tokens_details": object{"reasoning_tokens": a.reasoning},
	}

	return object{"id": "r", "object": "response", "model": a.model, "status": "completed", "service_tier": a.tier,
		"output": items, "usage": usage}
}

func responsesPieces(a answer) []any {
	return []any{
		object{"type": "response.created", "response": object{"id": "r", "model": a.model, "service_tier": "auto"}},
		object{"type": "response.output_text.delta", "output_index": 0, "delta": a.text},
		object{"type": "response.completed", "response": responses(a)},
	}
}

// object returns the arguments of a tool as an object.
func (a answer) object() json.RawMessage { return json.RawMessage(a.arguments) }

func anthropicUsage(a answer) object {
	return object{
		"input_tokens": a.in - a.read - a.written, "output_tokens": a.out, "cache_read_input_tokens": a.read,
		"cache_creation_input_tokens": a.written, "service_tier": a.tier,
	}
}

func anthropic(a answer) any {
	content := []any{object{"type": "text", "text": a.text}}
	if a.tool != "" {
		content = append(content, object{"type": "tool_use", "id": "c1", "name": a.tool, "input": a.object()})
	}

	return object{"id": "r", "type": "message", "role": "assistant", "model": a.model, "content": content,
		"stop_reason": a.finish, "usage": anthropicUsage(a)}
}

func anthropicPieces(a answer) []any {
	usage := anthropicUsage(a)
	usage["output_tokens"] = min(a.out, 1)
	start := object{"id": "r", "type": "message", "role": "assistant", "model": a.model, "usage": usage}
	block := func(i int, start, delta object) []any {
		return []any{
			object{"type": "content_block_start", "index": i, "content_block": start},
			object{"type": "content_block_delta", "index": i, "delta": delta},
			object{"type": "content_block_stop", "index": i},
		}
	}

	events := []any{object{"type": "message_start", "message": start}, object{"type": "ping"}}
	events = append(events, block(0, object{"type": "text", "text": ""},
		object{"type": "text_delta", "text": a.text})...)
	if a.tool != "" {
		events = append(events, block(1, object{"type": "tool_use", "id": "c1", "name": a.tool, "input": object{}},
			object{"type": "input_json_delta", "partial_json": a.arguments})...)
	}

	return append(events, object{"type": "message_delta", "delta": object{"stop_reason": a.finish},
		"usage": object{"output_tokens": a.out}}, object{"type": "message_stop"})
}

func gemini(a answer) any {
	parts := []any{object{"text": a.text}}
	if a.tool != "" {
		parts = append(parts, object{"functionCall": object{"name": a.tool, "args": a.object()}})
	}

	return object{"responseId": "r", "modelVersion": a.model, "candidates": []any{object{
		"content": object{"role": "model", "parts": parts}, "finishReason": a.finish, "index": 0,
	}}, "usageMetadata": object{
		"promptTokenCount": a.in, "candidatesTokenCount": a.out - a.reasoning, "thoughtsTokenCount": a.reasoning,
		"cachedContentTokenCount": a.read, "totalTokenCount": a.in + a.out, "trafficType": a.tier,
	}}
}

func geminiPieces(a answer) []any {
	first := object{"responseId": "r", "modelVersion": a.model, "candidates": []any{object{
		"content": object{"role": "model", "parts": []any{object{"text": a.text}}}, "index": 0,
	}}, "usageMetadata": object{"promptTokenCount": a.in, "totalTokenCount": a.in}}
	a.text = ""

	return []any{first, gemini(a)}
}

func bedrockUsage(a answer) object {
	return object{"inputTokens": a.in - a.read - a.written, "outputTokens": a.out, "totalTokens": a.in + a.out,
		"cacheReadInputTokens": a.read, "cacheWriteInputTokens": a.written}
}

func bedrock(a answer) any {
	content := []any{object{"text": a.text}}
	if a.tool != "" {
		content = append(content, object{"toolUse": object{"toolUseId": "c1", "name": a.tool, "input": a.object()}})
	}

	return object{"output": object{"message": object{"role": "assistant", "content": content}},
		"stopReason": a.finish, "usage": bedrockUsage(a), "serviceTier": object{"type": a.tier}}
}

func bedrockPieces(a answer) []any {
	delta := func(i int, delta object) any {
		return object{"contentBlockDelta": object{"contentBlockIndex": i, "delta": delta}}
	}

	events := []any{object{"messageStart": object{"role": "assistant"}}, delta(0, object{"text": a.text})}
	if a.tool != "" {
		start := object{"toolUse": object{"toolUseId": "c1", "name": a.tool}}
		events = append(events, object{"contentBlockStart": object{"contentBlockIndex": 1, "start": start}},
			delta(1, object{"toolUse": object{"input": a.arguments}}))
	}

	return append(events, object{"messageStop": object{"stopReason": a.finish}},
		object{"metadata": object{"usage": bedrockUsage(a), "serviceTier": object{"type": a.tier}}})
}

func cohereUsage(a answer) object {
	return object{"billed_units": object{"input_tokens": a.in, "output_tokens": a.out},
		"tokens": object{"input_tokens": a.in + 500, "output_tokens": a.out}}
}

func cohere(a answer) any {
	message := object{"role": "assistant", "content": []any{object{"type": "text", "text": a.text}}}
	message["tool_calls"] = chatCalls(a)
	return object{"id": "r", "message": message, "finish_reason": a.finish, "usage": cohereUsage(a)}
}

func coherePieces(a answer) []any {
	events := []any{
		object{"type": "message-start", "id": "r", "delta": object{"message": object{"role": "assistant"}}},
		object{
			"type": "content-delta", "index": 0,
			"delta": object{"message": object{"content": object{"text": a.text}}},
		},
	}
	if a.tool != "" {
		message := object{"tool_calls": chatCalls(a)[0]}
		events = append(events, object{"type": "tool-call-start", "index": 0, "delta": object{"message": message}})
	}

	return append(events, object{"type": "message-end",
		"delta": object{"finish_reason": a.finish, "usage": cohereUsage(a)}})
}

// providers answer the same in their own forms. Those of OpenAI's chat are read alike.
var providers = func() []provider {
	openAI := object{"error": object{"message": "no", "type": "invalid_request_error", "code": nil}}
	chatTiers := []string{"default", "flex", "priority"}
	of := func(name, model string) provider {
		return provider{name: name, model: model, stop: "stop", calls: "tool_calls", whole: chat, pieces: chatPieces,
			fails: openAI, failure: "invalid_request_error", reasons: true, tiers: []string{"default"}}
	}
	openai, mistral, openrouter := of("openai", "gpt-5-mini"), of("mistral", "mistral-small-latest"),
		of("openrouter", "anthropic/claude-sonnet-4.5")
	openai.tiers = chatTiers
	items := openai
	items.whole, items.pieces, items.stop, items.calls = responses, responsesPieces, "completed", "completed"

	return []provider{
		openai, mistral, openrouter, items,
		{name: "anthropic", model: "claude-sonnet-4-5", stop: "end_turn", calls: "tool_use", whole: anthropic,
			pieces: anthropicPieces, failure: "overloaded_error", writes: true, tiers: []string{"standard", "batch"},
			fails: object{"type": "error", "error": object{"type": "overloaded_error", "message": "no"}}},
		{name: "google", model: "gemini-2.5-flash", stop: "STOP", calls: "STOP", whole: gemini, pieces: geminiPieces,
			reasons: true, failure: "INVALID_ARGUMENT", tiers: []string{"ON_DEMAND", "ON_DEMAND_FLEX"},
			fails: object{"error": object{"code": 400, "message": "no", "status": "INVALID_ARGUMENT"}}},
		{name: "amazon.bedrock", model: "global.anthropic.claude-sonnet-4-5-20250929-v1:0", stop: "end_turn",
			calls: "tool_use", whole: bedrock, pieces: bedrockPieces, writes: true, tiers: []string{"default", "flex"},
			failure: "ValidationException", fails: object{"__type": "ValidationException", "message": "no"}},
		{name: "cohere", model: "command-a-03-2025", stop: "COMPLETE", calls: "TOOL_CALL", whole: cohere,
			pieces: coherePieces, tiers: []string{""}},
	}
}()

// span returns the same call as the conventions have it. They count all input, and name no provider's
// own tier but OpenAI's.
func span(p provider, a answer, failure string) object {
	parts := []any{object{"type": "text", "content": a.text}}
	if a.tool != "" {
		parts = append(parts, object{"type": "tool_call", "id": "c1", "name": a.tool, "arguments": a.object()})
	}
	attributes := object{
		"gen_ai.operation.name": "chat", "gen_ai.provider.name": p.name, "gen_ai.request.model": p.model,
	}
	s := object{"name": "chat", "attributes": attributes}
	if failure != "" {
		attributes["error.type"] = failure
		s["status"] = object{"code": 2, "message": "no"}
		return s
	}

	output, _ := json.Marshal([]any{object{"role": "assistant", "parts": parts, "finish_reason": a.finish}})
	attributes["gen_ai.response.model"] = a.model
	attributes["gen_ai.response.finish_reasons"] = []string{a.finish}
	attributes["gen_ai.output.messages"] = string(output)
	attributes["openai.response.service_tier"] = a.tier
	attributes["gen_ai.usage.input_tokens"], attributes["gen_ai.usage.output_tokens"] = a.in, a.out
	if p.name != "cohere" {
		attributes["gen_ai.usage.cache_read.input_tokens"] = a.read
	}
	if p.writes {
		attributes["gen_ai.usage.cache_creation.input_tokens"] = a.written
	}
	if p.reasons {
		attributes["gen_ai.usage.reasoning.output_tokens"] = a.reasoning
	}

	return s
}

// door is what both doors must read alike. The ids may differ, and of errors all but the type.
type door struct {
	Provider, Model, Status, Failure, Finish, Text, Tier string
	Tools                                                []string
	Arguments                                            []string
	Usage                                                calls.Usage
	Cost                                                 calls.Dollars
}

func doorOf(name string, call calls.Call) door {
	d := door{Provider: name, Model: call.Model, Status: call.Status, Finish: call.FinishReason, Tier: call.Tier,
		Tools: call.Tools(), Usage: call.Usage, Cost: dollars(name, &call)}
	if call.Failure != nil {
		d.Failure = call.Failure.Type
		d.Usage, d.Tools, d.Finish = calls.Usage{}, nil, ""
	}
	for _, m := range call.Output {
		d.Text += m.Text()
		for _, c := range m.ToolCalls {
			d.Arguments = append(d.Arguments, c.Arguments)
		}
	}

	return d
}

func TestTheSameCallIsTheSameByBothDoors(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := rapid.SampledFrom(providers).Draw(t, "provider")
		count := rapid.Int64Range(0, 300_000)
		a := answer{
			text:  rapid.StringMatching(`[a-z]{1,8}( [a-z]{1,8}){0,4}`).Draw(t, "text"),
			model: p.model, tier: rapid.SampledFrom(p.tiers).Draw(t, "tier"), finish: p.stop,
			in: count.Draw(t, "plain"), out: count.Draw(t, "out"),
		}
		if rapid.Bool().Draw(t, "tool") {
			a.tool, a.arguments, a.finish = "get_weather", `{"city":"Oslo"}`, p.calls
		}
		if p.name != "cohere" {
			a.read = count.Draw(t, "read")
		}
		if p.writes {
			a.written = count.Draw(t, "written")
		}
		if p.reasons {
			a.reasoning = rapid.Int64Range(0, a.out).Draw(t, "reasoning")
		}
		a.in += a.read + a.written

		var response any
		failure := ""
		switch {
		case p.fails != nil && rapid.IntRange(0, 4).Draw(t, "fails") == 0:
			response, failure = p.fails, p.failure
		case rapid.Bool().Draw(t, "streamed"):
			response = p.pieces(a)
		default:
			response = p.whole(a)
		}
		track, _ := json.Marshal(object{"kwargs": object{"model": p.model}, "request_response": response})
		spanned, _ := json.Marshal(object{"resource": object{}, "scope": object{}, "span": span(p, a, failure)})
		parsed, err := wire.ParseObject(spanned)
		if err != nil {
			t.Fatal(err)
		}
		read := otel.ReadObject(parsed)

		rest := doorOf(p.name, calls.Read(track))
		otlp := doorOf(read.Write().ProviderType, calls.Read(spanned))
		if diff := cmp.Diff(rest, otlp); diff != "" {
			t.Errorf("by REST (-) and by OTLP (+):\n%s\n%s\n%s", diff, track, spanned)
		}
		if failure == "" && (rest.Text != a.text || *rest.Usage.Input != a.in || slices.Contains(rest.Tools, "")) {
			t.Errorf("%+v is read as %+v", a, rest)
		}
		if strings.Contains(rest.Status, "ERROR") != (failure != "") {
			t.Errorf("%s: the status is %s", track, rest.Status)
		}
	})
}
