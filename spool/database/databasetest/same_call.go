package databasetest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"promptspool/api/wire"
	"promptspool/spool/archive"
)

// responseID is long enough to identify a call.
const responseID = "chatcmpl-Ay5LM9hCKy4Zp0sXVeVY"

// report is what somebody says of a call.
type report struct {
	id           string // the provider's
	start, end   time.Duration
	input, tells string // what was asked and answered
	tokens       int    // of the answer; 0: not said
	user         string
	logged       bool
}

// event returns the report as the event n, of the record n.
func (r report) event(t rapid.TB, n int) archive.Event {
	start, end := Start.Add(r.start), Start.Add(r.end)
	response := map[string]any{"id": r.id, "model": "gpt-4o"}
	if r.tells != "" {
		message := map[string]any{"role": "assistant", "content": r.tells}
		response["choices"] = []any{map[string]any{"message": message, "finish_reason": "stop"}}
	}
	if r.tokens > 0 {
		response["usage"] = map[string]any{"prompt_tokens": 1000, "completion_tokens": r.tokens}
	}
	kwargs := map[string]any{"model": "gpt-4o"}
	if r.input != "" {
		kwargs["messages"] = []any{map[string]any{"role": "user", "content": r.input}}
	}
	if r.logged {
		return Event(t, n, wire.KindRequest, ID(n), string(encoded(map[string]any{
			"function_name": "logged", "kwargs": kwargs, "request_response": response,
			"request_start_time": start, "request_end_time": end, "metadata": map[string]string{"user_id": r.user},
		})))
	}

	attributes := []any{
		attribute("gen_ai.operation.name", "chat"),
		attribute("gen_ai.response.id", r.id),
		attribute("gen_ai.request.model", "gpt-4o"),
		attribute("user.id", r.user),
		attribute("gen_ai.prompt", encodedText(kwargs["messages"])),
	}
	if r.tells != "" {
		attributes = append(attributes, attribute("gen_ai.completion", r.tells))
	}
	if r.tokens > 0 {
		attributes = append(attributes, attribute("gen_ai.usage.input_tokens", "1000"),
			attribute("gen_ai.usage.output_tokens", fmt.Sprint(r.tokens)))
	}

	return spanEvent(t, n, "chat", start, end, attributes...)
}

// spanEvent returns the event of a span, whose parent is the one before it.
func spanEvent(t rapid.TB, n int, name string, start, end time.Time, attributes ...any) archive.Event {
	return Event(t, n, wire.KindSpan, ID(n), string(encoded(map[string]any{
		"resource": map[string]any{}, "scope": map[string]any{}, "span": map[string]any{
			"traceId": traces[0], "spanId": fmt.Sprintf("%016x", n), "name": name, "attributes": attributes,
			"parentSpanId":      fmt.Sprintf("%016x", n-1),
			"startTimeUnixNano": fmt.Sprint(start.UnixNano()), "endTimeUnixNano": fmt.Sprint(end.UnixNano()),
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

func encodedText(v any) string {
	if v == nil {
		return ""
	}
	return string(encoded(v))
}

// ofOneCall are reports of a call by an app, its framework, the provider's client and a gateway.
var ofOneCall = []report{
	{id: responseID, start: 0, end: 9 * time.Second, input: "Hi", tells: "Hello", user: "ann"},
	{id: responseID, start: time.Second, end: 8 * time.Second, input: "Hi", tells: "Hello", tokens: 7},
	{id: responseID, start: 2 * time.Second, end: 7 * time.Second, tokens: 7},
	{id: responseID, start: 10 * time.Second, end: 11 * time.Second, tells: "Hello"}, // fits the first only
}

func reporting(t *testing.T, open Open) {
	s, _ := open(t)
	rapid.Check(t, func(t *rapid.T) {
		account := wire.NewID()
		var events []archive.Event
		for i, r := range ofOneCall {
			events = append(events, r.event(t, 1000+i))
		}
		events = append(events, Event(t, 2000, wire.KindScore, ID(1002), `{"name":"judge","score":90}`))
		for _, batch := range Batches(t, events) {
			apply(t, s, account, batch...)
		}

		// One request, of the report that says most, with what the others add.
		page := search(t, s, account, wire.Search{})
		if page.Total != 1 || page.Rows[0].RequestID != ID(1001) {
			t.Fatalf("the list has %d: %+v", page.Total, page.Rows)
		}
		row := page.Rows[0]
		if *row.OutputTokens != 7 || *row.Latency != 7 || len(row.Metadata) != 1 || row.Metadata[0].Value != "ann" ||
			len(row.Scores) != 1 || row.Scores[0].Number != 90 || row.OutputExcerpt != "Hello" {
			t.Errorf("the request shows %+v", row)
		}
		sameViews(t, s, account, events)
		for _, i := range []int{0, 2, 3} {
			if step := view(t, s, account, ID(1000+i)); step.SameCall != ID(1001) {
				t.Errorf("the report %d names %q", i, step.SameCall)
			}
		}
		head := view(t, s, account, ID(1001))
		if want := []string{ID(1000), ID(1003), ID(1002)}; !slices.Equal(head.OtherReports, want) {
			t.Errorf("the request names %q as the others, want %q", head.OtherReports, want)
		}

		// An app that logs the call knows it best.
		late := ofOneCall[1]
		late.tokens, late.logged = 0, true
		apply(t, s, account, late.event(t, 1500))
		rows := search(t, s, account, wire.Search{}).Rows
		if len(rows) != 1 || rows[0].RequestID != ID(1500) || *rows[0].OutputTokens != 7 {
			t.Errorf("with the logged one the list has %+v", rows)
		}
	})
}

// Mastra has what went into a call, and the calls of tools, in the span of the step around it, which
// ends with the tools.
func reportingSteps(t *testing.T, open Open) {
	s, _ := open(t)
	step := spanEvent(t, 1000, "agent_step", Start, Start.Add(9*time.Second),
		attribute("mastra.span.type", "model_step"),
		attribute("gen_ai.operation.name", "agent_step"),
		attribute("mastra.model_step.input", `[{"role":"user","content":"Hi"}]`),
		attribute("mastra.model_step.output", `{"toolCalls":[{"toolCallId":"1","toolName":"look","args":{}}]}`))
	inference := spanEvent(t, 1001, "chat gpt-4o", Start, Start.Add(time.Second),
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

func reportingOthers(t *testing.T, open Open) {
	s, _ := open(t)
	const hour = time.Hour
	hello := report{id: responseID, tells: "Hello"}
	minted := report{id: "chatcmpl-1764140400", tells: "Hello"}
	short := []report{hello}
	for n := range 999 { // of which each is in two calls
		short = append(short, report{id: fmt.Sprint("chatcmpl-", n/2), tells: "Hello"})
	}

	for name, others := range map[string][]report{
		"a cached answer an hour later": {hello, {id: responseID, start: hour, end: hour, tells: "Hello"}},
		"another answer":                {hello, {id: responseID, tells: "Bye"}},
		"other tokens":                  {{id: responseID, tokens: 7}, {id: responseID, tokens: 8}},
		"an id that a relay mints":      {minted, minted},
		"more than sixteen":             slices.Repeat([]report{hello}, 17),
		"short ids":                     short,
	} {
		var events []archive.Event
		for i, r := range others {
			events = append(events, r.event(t, 1000+i))
		}
		for batch := range slices.Chunk(events, max(1, len(events)/10)) {
			apply(t, s, name, batch...)
		}
		if page := search(t, s, name, wire.Search{PerPage: 100}); page.Total != len(others) {
			t.Errorf("%s: %d requests of %d calls", name, page.Total, len(others))
		}
	}
}

func reportingNoMore(t *testing.T, open Open) {
	s, _ := open(t)
	for _, account := range []string{"deleted", "retained"} {
		for i, r := range ofOneCall[:3] {
			apply(t, s, account, r.event(t, 1000+i))
		}
	}

	// By the id of any of them, and none comes back.
	deleted, err := archive.Delete(context.Background(), s, "deleted", wire.Deletion{RequestID: ID(1002)})
	if err != nil || deleted.Records != 3 {
		t.Errorf("deleted %+v, %v", deleted, err)
	}
	for i, r := range ofOneCall[:3] {
		apply(t, s, "deleted", r.event(t, 1000+i))
	}
	if page := search(t, s, "deleted", wire.Search{}); page.Total != 0 {
		t.Errorf("%+v came back", page.Rows)
	}

	// What goes by itself leaves the others, one of which stands for the call then.
	err = s.Change(context.Background(), "retained", []string{ID(1001)}, true,
		func(g *archive.Group, _ archive.Reader) error {
			g.Remove(g.Records[0], false)
			return nil
		})
	rows := search(t, s, "retained", wire.Search{}).Rows
	if err != nil || len(rows) != 1 || rows[0].RequestID != ID(1000) || *rows[0].OutputTokens != 7 {
		t.Errorf("of the rest the list has %+v, %v", rows, err)
	}
}

func reportingTogether(t *testing.T, open Open) {
	s, _ := open(t)
	var writers sync.WaitGroup
	for half := range 2 {
		writers.Go(func() {
			for n := range 20 {
				r := ofOneCall[half]
				r.id += fmt.Sprint(n)
				apply(t, s, account, r.event(t, 1000+100*half+n))
			}
		})
	}
	writers.Wait()

	if page := search(t, s, account, wire.Search{PerPage: 100}); page.Total != 20 {
		t.Errorf("%d requests of 20 calls", page.Total)
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
