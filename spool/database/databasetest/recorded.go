package databasetest

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"promptspool/api/otlp"
	"promptspool/api/otlp/otlptest"
	"promptspool/api/wire"
	"promptspool/spool/archive"
)

// heard is what apps, their libraries and SDKs send of a few calls, and what is shown of them.
type heard struct {
	events []archive.Event
	want   []string
}

// hearing checks how calls are shown that several report, in whichever order the reports come.
func hearing(t *testing.T, open Open) {
	s, reopen := open(t)
	const orders = 6
	all, recorded := examples(t), recordings(t)
	maps.Copy(all, recorded)
	for name, of := range all {
		for order := range orders {
			account, events := fmt.Sprint(name, order), slices.Clone(of.events)
			switch order {
			case 0:
			case 1:
				slices.Reverse(events)
			default:
				r := rand.New(rand.NewPCG(0, uint64(order)))
				r.Shuffle(len(events), func(i, j int) { events[i], events[j] = events[j], events[i] })
			}
			for batch := range slices.Chunk(events, max(1, order-2)) {
				apply(t, s, account, batch...)
			}
			apply(t, s, account, of.events...)
			if recorded[name].events == nil {
				sameAsFold(t, s, account, of.events)
			}
		}
	}

	s = reopen()
	for name, of := range all {
		for order := range orders {
			if diff := cmp.Diff(of.want, shown(t, s, fmt.Sprint(name, order))); diff != "" {
				t.Errorf("%s, order %d (-want +got):\n%s", name, order, diff)
				break
			}
		}
	}
}

// shown says of each call, the oldest first, what the list has of it, of texts the first letters. It says of
// the trace of the examples what is below what. A span that is a request, or is linked to one, has a star.
func shown(t *testing.T, s archive.Store, account string) (all []string) {
	t.Helper()
	service, id := overStore(s), wire.Identity{Account: account, Scope: wire.ScopeFull}
	rows := search(t, s, account, wire.Search{PerPage: 100}).Rows
	slices.Reverse(rows)
	for _, r := range rows {
		r.NameFrom(r.Metadata)
		for _, text := range []*string{&r.UserID, &r.SessionID, &r.InputExcerpt, &r.OutputExcerpt} {
			*text = (*text)[:min(5, len(*text))]
		}
		if r.Latency != nil {
			*r.Latency = math.Round(*r.Latency*1000) / 1000
		}
		line := []string{r.FunctionName[strings.LastIndexAny(r.FunctionName, " _")+1:], r.Engine}
		if r.InputTokens != nil || r.OutputTokens != nil {
			line = append(line, figure(r.InputTokens)+"+"+figure(r.OutputTokens))
		}
		linked, err := service.Request(t.Context(), id, r.RequestID)
		must(t, err)
		if linked.SpanRecordID == "" {
			linked.SpanName = ""
		}
		for _, fact := range [][2]string{
			{"$", figure(r.Price)}, {"took ", figure(r.Latency)}, {"of ", r.UserID}, {"in ", r.SessionID},
			{"logs ", linked.SpanName}, {"called ", strings.Join(r.ToolNames, ",")},
			{"< ", r.InputExcerpt}, {"> ", r.OutputExcerpt},
			{"", strings.TrimPrefix(r.Status, "SUCCESS")},
		} {
			if fact[1] != "" {
				line = append(line, fact[0]+fact[1])
			}
		}
		for _, score := range linked.Scores {
			line = append(line, fmt.Sprintf("[%s]", strings.TrimSpace(fmt.Sprint(score, " ", score.Reason()))))
		}
		all = append(all, strings.Join(line, " "))
	}

	trace, err := service.Trace(t.Context(), id, traces[0])
	if err != nil && !wire.IsCode(err, wire.CodeNotFound) {
		t.Fatal(err)
	}
	names := make(map[string]string)
	for _, span := range trace.Spans {
		names[span.SpanID] = span.Name
	}
	for _, span := range trace.Spans {
		line := "  " + span.Name
		if span.RequestLogID != nil {
			line += "*"
		}
		if span.ParentID != nil {
			line += " below " + names[*span.ParentID]
		}
		all = append(all, line)
	}
	if len(names) != len(trace.Spans) {
		t.Errorf("%s: some spans have the same id: %+v", account, trace.Spans)
	}

	return all
}

// figure returns a number as a text, "" without one.
func figure[T int64 | float64](n *T) string {
	if n == nil {
		return ""
	}
	return fmt.Sprint(*n)
}

// examples are calls that were made up.
func examples(t *testing.T) map[string]heard {
	hi := report{id: responseID, input: "Hi", tells: "Hello", start: seconds(1), end: seconds(8)}
	app, client, gateway, late := hi, hi, hi, hi
	app.start, app.end, app.user = 0, seconds(9), "ann"
	client.tokens = 7
	gateway.input, gateway.tells, gateway.tokens, gateway.start, gateway.end = "", "", 7, seconds(2), seconds(7)
	late.input, late.start, late.end = "", seconds(8), seconds(10)
	reports := []archive.Event{
		spanEvent(t, 1, 0, "app", app.start, app.end, app.attributes()...),
		spanEvent(t, 2, 1, "client", client.start, client.end, client.attributes()...),
		spanEvent(t, 3, 2, "gateway", gateway.start, gateway.end, gateway.attributes()...),
		spanEvent(t, 4, 3, "late", late.start, late.end, late.attributes()...),
		Event(t, 5, wire.KindScore, ID(3), `{"name":"judge","score":90}`),
	}
	root := spanEvent(t, 1, 0, "root", 0, seconds(9),
		attribute("user.id", "ann"), attribute("session.id", "s-1"))
	chat := func(n int, user string) archive.Event {
		return spanEvent(t, n, 1, "chat", seconds(n), seconds(n+1), report{user: user}.attributes()...)
	}
	logged := func(n int, members string) archive.Event {
		return Event(t, n, wire.KindRequest, ID(n), fmt.Sprintf(`{"function_name":"f%d",`+
			`"kwargs":{"model":"gpt-4o"},"request_response":"yes","request_start_time":"2026-03-01T12:00:03Z",`+
			`"request_end_time":"2026-03-01T12:00:04Z","trace_id":%q,%s}`, n, traces[0], members))
	}
	const below, itself = `"parent_span_id":"0000000000000001"`, `"span_id":"0000000000000001"`

	return map[string]heard{
		"an app, its client, a gateway and one that is late": {reports, []string{
			"client gpt-4o 1000+7 took 7 of ann < Hi > Hello [judge=90]",
			"  app*",
			"  client* below app",
			"  gateway* below client",
			"  late* below gateway",
		}},
		// An app that logs the call knows it best.
		"an app that logs it, too": {append(slices.Clone(reports),
			Event(t, 6, wire.KindRequest, ID(6), string(encoded(hi.logged())))), []string{
			"logged gpt-4o 1000+7 took 7 of ann < Hi > Hello [judge=90]",
			"  app*",
			"  client* below app",
			"  gateway* below client",
			"  late* below gateway",
		}},
		// Mastra has what went into a call, and the calls of tools, in the step around it, which ends with them.
		"a step and the call in it": {[]archive.Event{
			spanEvent(t, 1, 0, "step", 0, seconds(9), attribute("mastra.span.type", "model_step"),
				attribute("gen_ai.operation.name", "agent_step"),
				attribute("mastra.model_step.input", `[{"role":"user","content":"Hi"}]`),
				attribute("mastra.model_step.output",
					`{"toolCalls":[{"toolCallId":"1","toolName":"look","args":{}}]}`)),
			spanEvent(t, 2, 1, "call", 0, seconds(1), attribute("mastra.span.type", "model_inference"),
				attribute("gen_ai.operation.name", "chat"), attribute("gen_ai.request.model", "gpt-4o"),
				attribute("gen_ai.usage.output_tokens", "7")),
		}, []string{
			"call gpt-4o +7 took 1 called look < Hi > look ",
			"  step*",
			"  call* below step",
		}},
		"user and session are those of the first span": {[]archive.Event{
			root, spanEvent(t, 2, 0, "another root", seconds(1), seconds(2), attribute("user.id", "eve")),
			chat(3, ""), chat(4, "bob"),
		}, []string{
			"chat gpt-4o took 1 of ann in s-1",
			"chat gpt-4o took 1 of bob in s-1",
			"  root",
			"  another root",
			"  chat* below root",
			"  chat* below root",
		}},
		"logs within a trace": {[]archive.Event{
			root, chat(3, ""),
			logged(10, below+`,"session_id":"s-2"`),
			logged(11, below+`,"span_id":"0000000000000003"`),
			logged(12, itself), // all calls of a function name its span
			logged(13, itself+`,"tags":["x"]`),
		}, []string{
			"f10 gpt-4o took 1 of ann in s-2 > yes",
			"f11 gpt-4o took 1 of ann in s-1 > yes",
			"f12 gpt-4o took 1 > yes",
			"f13 gpt-4o took 1 > yes",
			"  root",
			"  chat* below root",
			"  f10* below root",
			"  f11* below chat",
			"  f12* below root",
			"  f13* below root",
		}},
		"a span that is linked to its log": {[]archive.Event{
			spanEvent(t, 1, 0, "run", 0, seconds(9), attribute("promptlayer.request_log.managed", "true"),
				attribute("promptlayer.request_log.span_id", "0000000000000001")),
			logged(13, itself),
		}, []string{
			"f13 gpt-4o took 1 logs run > yes",
			"  run*",
		}},
		"the last that was sent of a span": {[]archive.Event{
			Event(t, 1, wire.KindSpan, ID(1000), CallBody(traces[0], 1, "gpt-4o", "Hel")),
			Event(t, 2, wire.KindSpan, ID(1000), CallBody(traces[0], 1, "gpt-4o", "Hello")),
			Event(t, 3, wire.KindSpan, ID(1001), CallBody(traces[0], 2, "gpt-4o", "Bye")),
			Event(t, 4, wire.KindSpan, ID(1001), SpanBody(traces[0], 2, "no call after all")),
			Event(t, 5, wire.KindSpan, ID(1002), CallBody(traces[0], 3, "gpt-4o", "traced")),
			Event(t, 6, wire.KindRequest, ID(1002), requestBody("logged")),
		}, []string{
			"openai.Completion.create  took 1",
			"chat gpt-4o 1000+100 took 2 of ann > Hello",
			"  chat*",
			"  no call after all",
			"  chat*",
		}},
	}
}

// recordings are calls that libraries and SDKs reported.
func recordings(t *testing.T) map[string]heard {
	const hour = int64(time.Hour)
	const trace, span, at = "b95379255bba186d68977f14164e944a", "df9f5223097607dd", 1795319015829000000

	return map[string]heard{
		"claude-code": {recorded(t, "claude-code", "claude-code-logs"), []string{
			"request claude-haiku-5-5 387+18 $0.000477 took 0.64 of dev@e in eec39",
			"response claude-sonnet-5 10516+61 $0.0086811 took 1.742 of dev@e in eec39 > Let m",
			"response claude-sonnet-5 10613+14 $0.00373 took 1.144 of dev@e in eec39 > main.",
			"error claude-sonnet-5 took 1.57 of dev@e in eec39 > 529 { ERROR",
		}},
		"codex": {recorded(t, "codex", "codex-logs"), []string{
			"event gpt-5.6-sol 1000+50 of dev@e in 01a0a",
			"event gpt-5.6-sol 1090+14 of dev@e in 01a0a",
			`event gpt-5.6-sol of dev@e in 01a0a > {"typ ERROR`,
		}},
		"gemini-cli": {recorded(t, "gemini-cli", "gemini-cli-logs"), []string{
			"response gemini-2.5-pro 7420+117 took 0.812 of dev@e in 8c1f2 called run_shell_command > Let m",
			"response gemini-2.5-pro 7530+8 took 0.705 of dev@e in 8c1f2 > main.",
			"error gemini-2.5-pro took 0.305 of dev@e in 8c1f2 > You h ERROR",
		}},
		// A judgement may lack its time, and come days before or after its span. Of one name the latest counts.
		"messages and judgements": {slices.Concat(
			recorded(t, "otel-openai-multi-turn", "otel-openai-multi-turn-logs"),
			judged(t, at, "timeless", 1, trace, span, ""),
			judged(t, at-20*hour, "relevance", 0, trace, span, ""),
			judged(t, at+20*hour, "relevance", 20, trace, span, ""),
			judged(t, at+100*hour, "relevance", 100, trace, span, ""),
		), []string{
			"gpt-4o-mini gpt-4o-mini-2024-07-18 21+9 took 0.478 of user- in sessi called get_weather < How i > get_w",
			"gpt-4o-mini gpt-4o-mini-2024-07-18 21+9 took 0.085 of user- in sessi < How i > It is " +
				"[relevance=1 for 100] [timeless=0.01 for 1]",
		}},
		// The second one names no span.
		"log records with the details of calls": {recorded(t, "otel-genai-logs"), []string{
			"gemini-2.5-flash gemini-2.5-flash 97+12 in conv- < And o > Cance",
			"gemini-2.5-flash gemini-2.5-flash 20+5 in conv- < And o > Hello",
		}},
		"a span, its log record and its judgement": {slices.Concat(
			recorded(t, "otel-genai"), recorded(t, "otel-genai-logs")[:1],
			judged(t, 1795664504000000000, "Relevance", 87, "", "", "resp-3f9a1c5e7b2d4f608a1c"),
		), []string{
			"gemini-2.5-flash gemini-2.5-flash 300+25 took 1 in conv- called get_order < Where > Look ",
			"gemini-2.5-flash gemini-2.5-flash 340+69 took 1.1 in conv- < gs:// > gs://",
			"gemini-2.5-flash gemini-2.5-flash 97+12 took 0.099 in conv- < And o > Cance [Relevance=0.87 for 87]",
		}},
		// PromptLayer's SDK gives the id of its span to the request that it logs; newer ones give the trace, too.
		"a run that is logged": {append(recorded(t, "promptlayer-python-run-2"),
			loggedIn(t, "01a20159", "BD7519520E65A1A1", "")), []string{
			"f  took 1 logs PromptLayer Run",
		}},
		"a wrapped client that logs": {append(recorded(t, "promptlayer-python-wrapped"),
			loggedIn(t, "01a20166", "AEDBAFDC127C3F3A", "ac5b1c8dedc931dfbb0a1dbfb262aa8e")), []string{
			"f  took 1 logs openai.OpenAI",
		}},
	}
}

// loggedIn returns a request that an SDK logs with the ids of a span, at a time as its id has it.
func loggedIn(t *testing.T, at, spanID, traceID string) archive.Event {
	return Event(t, 9, wire.KindRequest, at+ID(9)[len(at):], fmt.Sprintf(`{"function_name":"f","kwargs":{},`+
		`"request_response":{},"request_start_time":1,"request_end_time":2,"span_id":%q,"trace_id":%q}`,
		spanID, traceID))
}

// spanEvent returns the event of the nth span of a trace. A library of its own reports each.
func spanEvent(
	t *testing.T, n, parent int, name string, start, end time.Duration, attributes ...any,
) archive.Event {
	span := map[string]any{
		"traceId": traces[0], "spanId": fmt.Sprintf("%016x", n), "name": name, "attributes": attributes,
		"startTimeUnixNano": fmt.Sprint(Start.Add(start).UnixNano()),
		"endTimeUnixNano":   fmt.Sprint(Start.Add(end).UnixNano()),
	}
	if parent > 0 {
		span["parentSpanId"] = fmt.Sprintf("%016x", parent)
	}

	return Event(t, n, wire.KindSpan, ID(n), string(encoded(map[string]any{
		"resource": map[string]any{}, "scope": map[string]any{"name": fmt.Sprint("library ", n)}, "span": span,
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

// judged returns the judgement of a span or of a response.
func judged(t *testing.T, at int64, name string, percent int, traceID, spanID, responseID string) []archive.Event {
	t.Helper()
	record := map[string]any{
		"eventName": "gen_ai.evaluation.result", "traceId": traceID, "spanId": spanID, "attributes": []any{
			attribute("gen_ai.evaluation.name", name), attribute("gen_ai.response.id", responseID),
			attribute("gen_ai.evaluation.explanation", fmt.Sprint("for ", percent)),
			map[string]any{"key": "gen_ai.evaluation.score.value", "value": map[string]any{
				"doubleValue": float64(percent) / 100,
			}},
		},
	}
	accepted := time.Unix(0, at)
	if name != "timeless" {
		record["timeUnixNano"] = fmt.Sprint(at)
		accepted = Start.Add(-seconds(percent)) // not the order in which they were made
	}
	logs := []any{map[string]any{"scopeLogs": []any{map[string]any{"logRecords": []any{record}}}}}
	body := encoded(map[string]any{"resourceLogs": logs})

	return exported(t, otlptest.Payload{Path: "/v1/logs", Form: otlp.JSON, Body: body}, accepted)
}

// recorded returns the events of recorded requests of OTLP exporters.
func recorded(t *testing.T, names ...string) (events []archive.Event) {
	t.Helper()
	all := otlptest.Payloads(t, "../../../api/otlp/testdata", "../../../api/calls/otel/testdata/payloads")
	for _, name := range names {
		i := slices.IndexFunc(all, func(p otlptest.Payload) bool { return p.Name == name })
		if i < 0 {
			t.Fatal("no payload is called", name)
		}
		events = append(events, exported(t, all[i], Start)...)
	}

	return events
}

// exported returns the events of a request of an OTLP exporter, which are accepted from a time on.
func exported(t *testing.T, payload otlptest.Payload, from time.Time) (events []archive.Event) {
	t.Helper()
	add := func(kind wire.Kind, recordID string, body json.RawMessage) error {
		id, err := wire.SpanEventID(recordID, body)
		events = append(events, Decode(t, wire.Event{
			ID:         id,
			RequestID:  recordID,
			Kind:       kind,
			AcceptedAt: from.Add(seconds(len(events))),
			Sidecar:    sidecars[0],
			Body:       body,
		}, Start.AddDate(1, 0, 0)))
		return err
	}
	addSpan := func(s otlp.Span) error {
		if s.Plumbing {
			return nil
		}
		return add(wire.KindSpan, wire.SpanRecordID(s.TraceID, s.SpanID, s.Start), s.Body)
	}
	var err error
	if payload.Path == "/v1/logs" {
		_, err = otlp.Logs(t.Context(), payload.Body, payload.Form, func(l otlp.Log) error {
			return add(wire.KindLog, wire.LogRecordID(l.TraceID, l.SpanID, l.At), l.Body)
		}, addSpan)
	} else {
		_, err = otlp.Traces(t.Context(), payload.Body, payload.Form, addSpan)
	}
	if err != nil || len(events) == 0 {
		t.Fatalf("%s: %d events, %v", payload.Name, len(events), err)
	}

	return events
}

// CallBody returns the body of the span of a model call, by the user ann.
func CallBody(trace string, span int, model, answer string) string {
	return fmt.Sprintf(`{"resource":{},"scope":{},"span":{"traceId":%q,"spanId":"%016x","name":"chat",`+
		`"startTimeUnixNano":"1795318943782000000","endTimeUnixNano":"1795318945782000000","attributes":[`+
		`{"key":"gen_ai.operation.name","value":{"stringValue":"chat"}},`+
		`{"key":"gen_ai.request.model","value":{"stringValue":%q}},`+
		`{"key":"gen_ai.usage.input_tokens","value":{"intValue":"1000"}},`+
		`{"key":"gen_ai.usage.output_tokens","value":{"intValue":"100"}},`+
		`{"key":"user.id","value":{"stringValue":"ann"}},`+
		`{"key":"gen_ai.output.messages","value":{"stringValue":%q}}]}}`, trace, span, model, answer)
}
