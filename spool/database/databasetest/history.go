package databasetest

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"pgregory.net/rapid"

	"promptspool/api/wire"
	"promptspool/spool/archive"
	"promptspool/spool/archive/query"
)

// Start is when the random histories begin.
var Start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// ID returns the nth of a fixed series of UUIDv7, in ascending order.
func ID(n int) string { return fmt.Sprintf("019ca945-0a00-7000-8000-%012x", n) }

// Random histories have few words, so that events meet in the same places and filters
// find something.
var (
	models    = []string{"gpt-4o", "claude-sonnet-4", "GPT-4o-mini"}
	functions = []string{
		"openai.ChatCompletion.create", "anthropic.messages.create", "langchain.PromptLayerChatOpenAI",
	}
	tags      = []string{"production", "Staging", "a/b test"}
	keys      = []string{"user_id", "session_id", "größe"}
	values    = []string{"", "1", "Ada", "ada lovelace", longValue + " Ada", longValue + " ada lovelace"}
	templates = []string{"greeting", "support/answer", "7"}
	labels    = []string{"prod", "canary"}
	names     = []string{"default", "compiles"}
	// What scores may be: given as score, or as value.
	scoreTexts   = []string{"true", "false", "rude", "Rude", ""}
	scoreValues  = []any{0, 0.29, 0.295, 1, 50, 73.5, -1, 1000, true, false, "rude", "50", nil}
	scoreAuthors = []string{"", "ann", "gpt-4o"}
	groups       = []string{"g1", "g2"}
	spanIDs      = []string{"00000000000000ab", "00000000000000AC", "0000000000000000"}
	traces       = []string{"52adf2cf8206e15bbdd5b2da7b55fa89", "9ccdfeb0d3e94a91d462b13619a33a3c"}
	sidecars     = []string{"host-a", "host-b"}
	errors       = []string{"PROVIDER_TIMEOUT", "UNKNOWN_ERROR"}
	tools        = []string{"find", "Get_Weather"}
	reasons      = []string{"stop", "STOP", "Tool_Calls", "tool_use", "end_turn"}
	// Two parties may report the same call; the shorter ids do not tell.
	responseIDs = []string{
		"chatcmpl-Ay5LM9hCKy4Zp0sXVeVY", "", "chatcmpl-7", "", "", "msg_01XFDUDYJgAACzvnptvVoYEL", "", "", "",
	}

	targets = []map[string]any{
		{"session_id": "1"}, {"session_id": "Ada"}, {"trace_id": traces[0]}, {"trace_id": traces[1]},
		{"trace_id": traces[0], "span_id": "00000000000000ab"},
	}

	answers = []string{"", "Hello.", `{"a":1}`, "no response of any shape that is known"}
	kinds   = []wire.Kind{
		wire.KindRequest, wire.KindRequest, wire.KindScore, wire.KindMetadata, wire.KindPrompt,
		wire.KindGroup, wire.KindSpan, wire.KindLog,
	}
)

// starts are seconds from Start: of usual calls, of late ones, ahead within what is believed
// and beyond, and of a clock that counts from 1970.
var starts = []int64{0, 1, 2, 3, 4, 5, -30 * 86_400, -3_600, 240, 600, 30 - Start.Unix()}

// longValue begins metadata values of which rows have only references.
var longValue = strings.Repeat("long ", 300)

// Events draws up to most events of a few requests, in the order in which they were
// accepted.
//
// Some are accepted at the same moment, and some requests are missing. The events have
// the ids ID(0) and so on, the requests ID(1000) and so on.
func Events(t *rapid.T, requests, most int) []archive.Event {
	n := rapid.IntRange(1, most).Draw(t, "events")
	events := make([]archive.Event, 0, n)

	// Often at the same moment, or a nanosecond apart, which PostgreSQL does not store.
	at := Start
	for i := range n {
		at = at.Add(rapid.SampledFrom([]time.Duration{0, 1, time.Second}).Draw(t, "pause"))
		e := wire.Event{
			ID:         ID(i),
			Kind:       rapid.SampledFrom(kinds).Draw(t, "kind"),
			RequestID:  ID(1000 + rapid.IntRange(0, requests-1).Draw(t, "request")),
			AcceptedAt: at,
			Sidecar:    rapid.SampledFrom(sidecars).Draw(t, "sidecar"),
		}

		members := drawBody(t, e.Kind)
		if e.Kind != wire.KindRequest {
			members["request_id"] = e.RequestID
		}
		// Scores of something else are other records.
		if e.Kind == wire.KindScore && requests > 1 && rapid.Bool().Draw(t, "of no request") {
			delete(members, "request_id")
			maps.Copy(members, rapid.SampledFrom(targets).Draw(t, "target"))
		}
		body, err := json.Marshal(members)
		if err != nil {
			t.Fatalf("encode a body: %v", err)
		}
		e.Body = body

		// Prices are set, because the models here have none.
		decoded := Decode(t, e, Start.Add(time.Duration(i)*time.Minute))
		if decoded.Request != nil && rapid.Bool().Draw(t, "priced") {
			price := rapid.SampledFrom([]int64{0, 1, 1_000_000_000, 2_000_000_001}).Draw(t, "price")
			setPrice(&decoded.Request.Price, price)
		}
		events = append(events, decoded)
	}

	return events
}

// setPrice sets a price in billionths of a dollar, whose type package archive does not
// export.
func setPrice[Dollars ~int64](price **Dollars, nanos int64) {
	d := Dollars(nanos)
	*price = &d
}

// Event returns the nth event of a record, which was accepted and arrived n seconds after
// Start.
//
// body is a JSON object with at least one member. Where the kind needs a request_id, it
// is added.
func Event(t rapid.TB, n int, kind wire.Kind, requestID, body string) archive.Event {
	t.Helper()
	if kind != wire.KindRequest {
		body = `{"request_id":"` + requestID + `",` + body[1:]
	}

	at := Start.Add(time.Duration(n) * time.Second)
	return Decode(t, wire.Event{
		ID:         ID(n),
		Kind:       kind,
		RequestID:  requestID,
		AcceptedAt: at,
		Sidecar:    "host-a",
		Body:       json.RawMessage(body),
	}, at)
}

// Decode decodes an event of a test, which must be valid.
func Decode(t rapid.TB, e wire.Event, arrived time.Time) archive.Event {
	t.Helper()
	d, err := archive.Decode(e, arrived)
	if err != nil {
		t.Fatalf("decode %s: %v", e.Body, err)
	}
	return d
}

// drawBody draws the body of an event without its request_id.
func drawBody(t *rapid.T, kind wire.Kind) map[string]any {
	switch kind {
	case wire.KindScore:
		body := map[string]any{
			"name":           pick(t, names),
			"author":         pick(t, scoreAuthors),
			"author_version": pick(t, labels),
			"source":         pick(t, append([]string{""}, wire.ScoreSources...)),
			"reason":         pick(t, values),
		}
		if rapid.Bool().Draw(t, "typed") {
			body["value"] = rapid.SampledFrom(scoreValues).Draw(t, "value")
		} else {
			body["score"] = rapid.IntRange(0, 100).Draw(t, "score")
		}
		return body
	case wire.KindMetadata:
		return map[string]any{"metadata": drawMetadata(t)}
	case wire.KindPrompt:
		return map[string]any{
			"prompt_name":            pick(t, templates),
			"version":                rapid.IntRange(1, 3).Draw(t, "version"),
			"prompt_input_variables": map[string]any{"name": pick(t, values)},
		}
	case wire.KindGroup:
		return map[string]any{"group_id": pick(t, groups)}
	case wire.KindLog:
		if rapid.Bool().Draw(t, "joined") {
			return map[string]any{"joined": ID(1000)}
		}
		return map[string]any{"resource": map[string]any{}, "log": map[string]any{
			"traceId":    pick(t, traces),
			"spanId":     "00000000000000ab",
			"eventName":  rapid.SampledFrom([]string{"", "gen_ai.client.inference.operation.details"}).Draw(t, "event"),
			"attributes": drawAttributes(t),
		}}
	case wire.KindSpan:
		return map[string]any{"resource": map[string]any{}, "span": map[string]any{
			"traceId":           pick(t, traces),
			"spanId":            "00000000000000ab",
			"name":              pick(t, values),
			"startTimeUnixNano": "1795318943782000000",
			"attributes":        drawAttributes(t),
		}}
	}

	return drawRequest(t)
}

// drawAttributes draws the attributes of a span, half of the time those of a model call. Some
// calls are logged as well.
func drawAttributes(t *rapid.T) []any {
	switch rapid.IntRange(0, 3).Draw(t, "what") {
	case 0:
		return []any{}
	case 1:
		return []any{
			attribute("promptlayer.request_log.managed", "true"),
			attribute("promptlayer.request_log.span_id", pick(t, spanIDs)),
		}
	}

	return []any{
		attribute("gen_ai.operation.name", "chat"),
		attribute("gen_ai.request.model", pick(t, models)),
		attribute("gen_ai.output.messages", pick(t, answers)),
		attribute("gen_ai.usage.input_tokens", "7"),
		attribute("gen_ai.prompt.name", pick(t, templates)),
		attribute("tag.tags", pick(t, tags)),
		attribute("promptlayer.metadata."+pick(t, keys), pick(t, values)),
	}
}

// drawRequest draws a request. Its end may be before its start, as callers' clocks allow.
func drawRequest(t *rapid.T) map[string]any {
	// Callers send seconds as floats. Some of their clocks are off, and some calls come long
	// after they were made.
	start := float64(Start.Unix()) + float64(rapid.SampledFrom(starts).Draw(t, "start"))
	body := map[string]any{
		"function_name": pick(t, functions),
		"kwargs": map[string]any{
			"engine": pick(t, models),
			"messages": []any{map[string]any{
				"role":    "user",
				"content": rapid.SampledFrom([]string{"", "Hello", "hello WORLD"}).Draw(t, "text"),
			}},
		},
		"request_response":   map[string]any{},
		"request_start_time": start,
		"request_end_time":   start + float64(rapid.IntRange(-1, 3).Draw(t, "seconds")),
	}
	if rapid.Bool().Draw(t, "usage") {
		body["request_response"] = drawResponse(t)
	}
	if rapid.Bool().Draw(t, "in a span") {
		body["span_id"] = pick(t, spanIDs)
	}
	if rapid.Bool().Draw(t, "in a trace") {
		body["trace_id"] = pick(t, traces) // without a parent it takes nothing from others
		body["user_id"], body["session_id"] = pick(t, values[:4]), pick(t, values[:4])
		body["time_to_first_token_ms"] = rapid.SampledFrom([]float64{0, 250.5, 1e6, 86_400_000}).Draw(t, "first token")
	}

	// What may also come as an event of its own.
	if rapid.Bool().Draw(t, "attached") {
		body["tags"] = rapid.SliceOfNDistinct(rapid.SampledFrom(tags), 0, 3, rapid.ID).Draw(t, "tags")
		body["metadata"] = drawMetadata(t)
		body["group_id"] = pick(t, groups)
		if rapid.Bool().Draw(t, "failed") {
			body["error_type"] = pick(t, errors)
		}
		body["status"] = rapid.SampledFrom([]string{"SUCCESS", "WARNING", "ERROR"}).Draw(t, "status")
		body["prompt_id"] = pick(t, templates)
		body["prompt_label"] = pick(t, labels)
		body["prompt_input_variables"] = map[string]any{"from": "the request"}
	}

	return body
}

// drawResponse draws a response of OpenAI's chat with its usage, maybe with a text and
// calls of tools.
func drawResponse(t *rapid.T) map[string]any {
	count := func(name string) int { return rapid.IntRange(0, 3).Draw(t, name) }
	in, out := count("in"), count("out")
	response := map[string]any{
		"id":    pick(t, responseIDs),
		"model": pick(t, models),
		"usage": map[string]any{
			"prompt_tokens":     in,
			"completion_tokens": out,
			"prompt_tokens_details": map[string]any{
				"cached_tokens":      min(in, count("cached")),
				"cache_write_tokens": min(in, count("written")),
			},
			"completion_tokens_details": map[string]any{"reasoning_tokens": min(out, count("reasoning"))},
		},
	}

	message := map[string]any{"role": "assistant", "content": pick(t, answers)}
	var calls []any
	for range rapid.IntRange(0, 2).Draw(t, "calls") {
		function := map[string]any{"name": pick(t, tools), "arguments": "{}"}
		calls = append(calls, map[string]any{"id": "c", "type": "function", "function": function})
	}
	if calls != nil {
		message["tool_calls"] = calls
	}
	if rapid.Bool().Draw(t, "readable") {
		response["choices"] = []any{map[string]any{"message": message, "finish_reason": pick(t, reasons)}}
	}

	return response
}

func drawMetadata(t *rapid.T) map[string]string {
	return rapid.MapOfN(rapid.SampledFrom(keys), rapid.SampledFrom(values), 1, 2).Draw(t, "metadata")
}

func pick(t *rapid.T, words []string) string { return rapid.SampledFrom(words).Draw(t, "word") }

// Batches draws how events arrive: in any order, some of them again, divided into
// batches.
func Batches(t *rapid.T, events []archive.Event) [][]archive.Event {
	again := rapid.SliceOfN(rapid.SampledFrom(events), 0, 4).Draw(t, "again")
	all := rapid.Permutation(slices.Concat(events, again)).Draw(t, "order")

	var batches [][]archive.Event
	for len(all) > 0 {
		n := rapid.IntRange(1, len(all)).Draw(t, "batch")
		batches = append(batches, all[:n])
		all = all[n:]
	}

	return batches
}

// Fold folds events in their order and returns the states by request id and the bodies by
// event id. Those that report the same call know of each other.
func Fold(events []archive.Event) (states map[string]*archive.State, bodies map[string]json.RawMessage) {
	states, bodies = make(map[string]*archive.State), make(map[string]json.RawMessage)
	for _, e := range events {
		if states[e.RequestID] == nil {
			states[e.RequestID] = new(archive.State)
		}
		states[e.RequestID].Fold(e)
		bodies[e.ID] = e.Body
	}
	unite(states, bodies)

	return states, bodies
}

// unite gives records what others say of them, all at once.
func unite(states map[string]*archive.State, bodies map[string]json.RawMessage) {
	g := archive.NewGroup(math.MaxInt, nil)
	for id, s := range states {
		r, err := g.Add("a", id)
		if err != nil {
			panic(err) // the ids of tests are valid
		}
		r.State.State, r.Changed = *s, true
	}
	if err := g.Unite(nothingStored{g, bodies}); err != nil {
		panic(err)
	}
	for _, r := range g.Records {
		*states[r.State.RequestID] = r.State.State
		for _, joint := range r.Bodies {
			bodies[joint.Event.String()] = joint.Bytes
		}
	}
}

// nothingStored is the Loader of a database that has nothing yet.
type nothingStored struct {
	group  *archive.Group
	bodies map[string]json.RawMessage
}

func (n nothingStored) Sets(account string, keys []archive.UUID) error {
	for _, key := range keys {
		n.group.Accounts[account].AddSet(key, archive.Set{})
	}
	return nil
}

func (nothingStored) Load([]*archive.Record) error { return nil }

func (n nothingStored) Bodies(r *archive.Record) (map[string]json.RawMessage, error) {
	return r.ReadBodies(func(h archive.Entry) ([]byte, error) { return n.bodies[h.ID], nil })
}

func (nothingStored) Pack(body []byte) []byte { return body }

func (nothingStored) OfTraces(string, []archive.UUID, int) (map[archive.UUID][]archive.UUID, error) {
	return nil, nil
}

// Whole returns a copy of a state that Fold returned, with long values restored.
func Whole(s *archive.State, bodies map[string]json.RawMessage) (whole archive.State) {
	// A deep copy: Restore changes a state, and the oracle's must not change.
	text, err := json.Marshal(s)
	if err == nil {
		err = json.Unmarshal(text, &whole)
	}
	if err != nil {
		panic(err) // a state is JSON
	}
	whole.Restore(bodies)

	return whole
}

// Subject returns what a filter is tested on for a row of states that Fold returned.
func Subject(
	states map[string]*archive.State, bodies map[string]json.RawMessage, row *wire.Row,
) *query.Subject {
	s := states[row.RequestID]
	return &query.Subject{
		Row: row,
		Body: func() ([]byte, error) {
			h, _ := s.Searched()
			return bodies[h.ID], nil
		},
		Metadata: func() (map[string]string, error) {
			whole := Whole(s, bodies)
			return whole.Whole(), nil
		},
	}
}

// Rows returns the rows of states, newest first. Orphans have none.
func Rows(states map[string]*archive.State) []wire.Row {
	rows := []wire.Row{}
	for _, s := range states {
		if row, ok := s.Row(); ok {
			rows = append(rows, row)
		}
	}
	slices.SortFunc(rows, func(a, b wire.Row) int {
		return query.PositionOf(&a).Compare(query.PositionOf(&b))
	})

	return rows
}
