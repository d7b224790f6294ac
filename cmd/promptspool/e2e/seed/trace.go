package seed

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// tracesInACall is how many traces an app exports at once.
const tracesInACall = 20

// run is a run of an agent, whose spans it collects.
type run struct {
	m       *maker
	session sessionFacts
	id      string // of the trace
	at      time.Time
	spans   list
}

// traces returns what an app that is instrumented with OpenTelemetry exports: agents that look a parcel up,
// with a tool that fails now and then, before they answer.
func (m *maker) traces() (all list) {
	for n := range Traces {
		user := 1 + m.IntN(Users)
		if user == talkUser {
			user++
		}
		r := &run{m: m, session: m.newSession(Sessions+n, user), id: m.hex(16), at: m.moment().Add(-time.Minute)}
		all = append(all, r.trace(n, talks[m.IntN(6)]))
	}

	return all
}

func (r *run) trace(n int, t talk) any {
	root, began := r.m.hex(8), r.at
	asked, order := r.session.fill(t.turns[0].asked), r.session.fill("{order}")
	said := text("user", asked)
	arguments := fmt.Sprintf(`{"order": %q}`, order)

	call := `{"type":"tool_call","name":"track_parcel","arguments":` + arguments + `}`
	r.chat(root, said, `[{"role":"assistant","parts":[`+call+`]}]`)
	if n%6 == 1 {
		r.tool(root, arguments, true) // and once more
	}
	r.tool(root, arguments, false)
	answer := text("assistant", r.session.fill(t.turns[0].answered))
	r.chat(root, said, answer)
	if n%3 == 0 {
		reply, start := r.m.hex(8), r.at
		r.chat(reply, answer, text("assistant", "Yes. It apologizes once and gives a date."))
		r.add(reply, root, "Check the tone", start, map[string]string{"gen_ai.operation.name": "invoke_agent"})
	}
	r.add(root, "", "Answer a customer", began, map[string]string{
		"gen_ai.operation.name":  "invoke_agent",
		"gen_ai.agent.name":      "support",
		"gen_ai.input.messages":  said,
		"gen_ai.output.messages": answer,
	})

	return map[string]any{
		"resource":   map[string]any{"attributes": attributes(map[string]string{"service.name": "support-bot"})},
		"scopeSpans": list{map[string]any{"scope": map[string]any{"name": "support"}, "spans": r.spans}},
	}
}

// chat adds a call of the agent's model.
func (r *run) chat(parent, in, out string) {
	const model = "gpt-5.1"
	start := r.at
	r.at = r.at.Add(time.Duration(700+r.m.IntN(2500)) * time.Millisecond)
	r.add(r.m.hex(8), parent, "chat "+model, start, map[string]string{
		"gen_ai.operation.name":      "chat",
		"gen_ai.provider.name":       "openai",
		"gen_ai.request.model":       model,
		"gen_ai.system_instructions": `[{"type":"text","content":"Look up parcels before you answer."}]`,
		"gen_ai.input.messages":      in,
		"gen_ai.output.messages":     out,
		"gen_ai.usage.input_tokens":  strconv.Itoa(120 + len(in)/4),
		"gen_ai.usage.output_tokens": strconv.Itoa(len(out) / 4),
	})
}

// tool adds a call of the tool.
func (r *run) tool(parent, arguments string, failed bool) {
	start := r.at
	r.at = r.at.Add(time.Duration(60+r.m.IntN(400)) * time.Millisecond)
	span := r.add(r.m.hex(8), parent, "execute_tool track_parcel", start, map[string]string{
		"gen_ai.operation.name":      "execute_tool",
		"gen_ai.tool.name":           "track_parcel",
		"gen_ai.tool.call.arguments": arguments,
		"gen_ai.tool.call.result":    r.session.fill(`{"city": "{city}", "state": "in transit"}`),
	})
	if failed {
		span["status"] = map[string]any{"code": 2, "message": "504: the carrier did not answer within 5 s."}
	}
}

// add adds a span that ends now.
func (r *run) add(id, parent, name string, start time.Time, facts map[string]string) map[string]any {
	facts["session.id"], facts["user.id"] = r.session.id, r.session.user
	span := map[string]any{
		"traceId":           r.id,
		"spanId":            id,
		"parentSpanId":      parent,
		"name":              name,
		"startTimeUnixNano": strconv.FormatInt(start.UnixNano(), 10),
		"endTimeUnixNano":   strconv.FormatInt(r.at.UnixNano(), 10),
		"attributes":        attributes(facts),
	}
	r.spans = append(r.spans, span)

	return span
}

// attributes returns attributes as OTLP has them in JSON.
func attributes(facts map[string]string) (all list) {
	for _, key := range slices.Sorted(maps.Keys(facts)) {
		value := map[string]any{"stringValue": facts[key]}
		if strings.HasSuffix(key, "_tokens") {
			value = map[string]any{"intValue": facts[key]}
		}
		all = append(all, map[string]any{"key": key, "value": value})
	}

	return all
}

// text is a conversation of one message as the GenAI conventions have it.
func text(role, content string) string {
	return string(encode(list{map[string]any{
		"role": role, "parts": list{map[string]any{"type": "text", "content": content}},
	}}))
}

// hex returns so many random bytes, 8 at a time.
func (m *maker) hex(n int) (id string) {
	for range n / 8 {
		id += fmt.Sprintf("%016x", m.Uint64())
	}

	return id
}
