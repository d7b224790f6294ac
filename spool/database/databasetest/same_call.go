package databasetest

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"promptspool/api/wire"
	"promptspool/spool/archive"
)

// spanEvent returns the event of a span, whose parent is the one before it. A library of its own reports
// each.
func spanEvent(t rapid.TB, n int, name string, start, end time.Duration, attributes ...any) archive.Event {
	return Event(t, n, wire.KindSpan, ID(n), string(encoded(map[string]any{
		"resource": map[string]any{}, "scope": map[string]any{"name": fmt.Sprint("library ", n)},
		"span": map[string]any{
			"traceId": traces[0], "spanId": fmt.Sprintf("%016x", n), "parentSpanId": fmt.Sprintf("%016x", n-1),
			"name": name, "attributes": attributes,
			"startTimeUnixNano": fmt.Sprint(Start.Add(start).UnixNano()),
			"endTimeUnixNano":   fmt.Sprint(Start.Add(end).UnixNano()),
		},
	})))
}

func attribute(key, text string) any {
	return map[string]any{"key": key, "value": map[string]any{"stringValue": text}}
}

func encoded(v any) json.RawMessage {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // it is made of texts
	}

	return text
}

// reporting checks which of an app, its framework, the provider's client and a gateway stands for a call,
// and what the others add.
func reporting(t *testing.T, open Open) {
	s, _ := open(t)
	for i, r := range []report{
		{start: 0, end: 9 * time.Second, input: "Hi", tells: "Hello", user: "ann"},
		{start: time.Second, end: 8 * time.Second, input: "Hi", tells: "Hello", tokens: 7},
		{start: 2 * time.Second, end: 7 * time.Second, tokens: 7},
		{start: 8 * time.Second, end: 10 * time.Second, tells: "Hello"},
	} {
		r.id = responseID
		apply(t, s, account, spanEvent(t, 1000+i, "chat", r.start, r.end, r.attributes()...))
	}
	apply(t, s, account, Event(t, 2000, wire.KindScore, ID(1002), `{"name":"judge","score":90}`))

	rows := search(t, s, account, wire.Search{}).Rows
	if len(rows) != 1 || rows[0].RequestID != ID(1001) || *rows[0].OutputTokens != 7 || *rows[0].Latency != 7 ||
		len(rows[0].Metadata) != 1 || rows[0].Metadata[0].Value != "ann" ||
		len(rows[0].Scores) != 1 || rows[0].Scores[0].Number != 90 || rows[0].OutputExcerpt != "Hello" {
		t.Fatalf("the list has %+v", rows)
	}
	head, want := view(t, s, account, ID(1001)), []string{ID(1000), ID(1003), ID(1002)}
	if step := view(t, s, account, ID(1000)); step.SameCall != ID(1001) || !slices.Equal(head.OtherReports, want) {
		t.Errorf("the others are %q, want %q, and name %q", head.OtherReports, want, step.SameCall)
	}

	// An app that logs the call knows it best.
	late := report{id: responseID, start: time.Second, end: 8 * time.Second, input: "Hi", tells: "Hello"}
	apply(t, s, account, Event(t, 1500, wire.KindRequest, ID(1500), string(encoded(late.logged()))))
	rows = search(t, s, account, wire.Search{}).Rows
	if len(rows) != 1 || rows[0].RequestID != ID(1500) || *rows[0].OutputTokens != 7 {
		t.Errorf("with the logged one the list has %+v", rows)
	}
}

// Mastra has what went into a call, and the calls of tools, in the span of the step around it, which
// ends with the tools.
func reportingSteps(t *testing.T, open Open) {
	s, _ := open(t)
	step := spanEvent(t, 1000, "agent_step", 0, 9*time.Second,
		attribute("mastra.span.type", "model_step"),
		attribute("gen_ai.operation.name", "agent_step"),
		attribute("mastra.model_step.input", `[{"role":"user","content":"Hi"}]`),
		attribute("mastra.model_step.output", `{"toolCalls":[{"toolCallId":"1","toolName":"look","args":{}}]}`))
	inference := spanEvent(t, 1001, "chat gpt-4o", 0, time.Second,
		attribute("mastra.span.type", "model_inference"),
		attribute("gen_ai.operation.name", "chat"),
		attribute("gen_ai.provider.name", "openai"),
		attribute("gen_ai.request.model", "gpt-4o"),
		attribute("gen_ai.usage.output_tokens", "7"),
		attribute("gen_ai.response.finish_reasons", `["tool-calls"]`))

	for account, events := range map[string][]archive.Event{
		"step first": {step, inference}, "step last": {inference, step},
	} {
		for _, e := range events {
			apply(t, s, account, e)
		}
		rows := search(t, s, account, wire.Search{}).Rows
		if len(rows) != 1 {
			t.Fatalf("%s: %d requests of one call", account, len(rows))
		}
		row := rows[0]
		if row.FunctionName != "chat gpt-4o" || row.Engine != "gpt-4o" || row.Provider != "openai" ||
			*row.OutputTokens != 7 || *row.Latency != 1 || !slices.Equal(row.ToolNames, []string{"look"}) {
			t.Errorf("%s: the request shows %+v", account, row)
		}
		if prompt := view(t, s, account, row.RequestID).InputExcerpt; prompt != "Hi" {
			t.Errorf("%s: the record shows the prompt %q", account, prompt)
		}
	}
}

// agentCalls are the calls of the recorded sessions of coding agents: the model, the tokens that went in
// and came out, the reported cost, what came out, and its status.
var agentCalls = map[string][]string{
	"claude-code": {
		"claude-haiku-5-5 387+18 $0.000477  SUCCESS",
		"claude-sonnet-5 10516+61 $0.0086811 Let me count them. SUCCESS",
		"claude-sonnet-5 10613+14 $0.00373 main.go has 42 lines. SUCCESS",
		"claude-sonnet-5    ERROR",
	},
	"codex": {
		"gpt-5.6-sol 1000+50   SUCCESS",
		"gpt-5.6-sol 1090+14   SUCCESS",
		"gpt-5.6-sol    ERROR",
	},
	"gemini-cli": {
		"gemini-2.5-pro 7420+117  Let me count them. SUCCESS",
		"gemini-2.5-pro 7530+8  main.go has 42 lines. SUCCESS",
		"gemini-2.5-pro    ERROR",
	},
}

func agentSessions(t *testing.T, open Open) {
	s, _ := open(t)
	for agent, want := range agentCalls {
		var events []archive.Event
		for i, e := range slices.Concat(recorded(t, agent), recorded(t, agent+"-logs")) {
			e.ID = ID(i)
			events = append(events, Decode(t, e, Start))
		}
		rapid.Check(t, func(t *rapid.T) {
			account := wire.NewID()
			for _, batch := range Batches(t, events) {
				apply(t, s, account, batch...)
			}

			var got []string
			for _, r := range search(t, s, account, wire.Search{}).Rows {
				tokens, cost, answer := "", "", r.OutputExcerpt
				if r.InputTokens != nil {
					tokens = fmt.Sprintf("%d+%d", *r.InputTokens, *r.OutputTokens)
				}
				if r.Price != nil {
					cost = fmt.Sprintf("$%g", *r.Price)
				}
				if r.Status == "ERROR" {
					answer = ""
				}
				got = append(got, fmt.Sprintf("%s %s %s %s %s", r.Engine, tokens, cost, answer, r.Status))
			}
			slices.Reverse(got)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", agent, diff)
			}
		})
	}
}
