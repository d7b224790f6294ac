//go:build linux

package cost

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"time"

	"promptspool/api/wire"
)

// attacks measure the cost of a server: with the smallest parts, the longest lines, the
// most names.
var attacks = append([]attack{
	// First, for it looks at everything that the account holds.
	{name: "suggestions: values of a field", n: 100, brief: true, send: func(p target, n int) int {
		size := batch(p, n, func(i int) wire.Event {
			body := fmt.Sprintf(`{"function_name":"f","tags":["%s"],"request_response":{"v":"%s"}}`,
				wire.NewID(), wire.NewID())
			return wire.Event{Kind: wire.KindRequest, RequestID: wire.NewID(), Body: json.RawMessage(body)}
		})
		p.call("GET", "/api/public/v2/requests/suggestions?field=tags&prefix=x", "")
		p.call("GET", "/api/public/v2/requests/suggestions?field=output_text&prefix=x", "")
		return size
	}},

	// Writes.
	inBrief(write("text parts of an answer", 4000, func(n int) string {
		return `"request_response":{"choices":[{"message":{"role":"assistant","content":[` +
			elements(n, `{"type":"text","text":"abcdefgh"}`) + `]}}]}`
	})),
	inBrief(write("text and reasoning in turn", 2000, func(n int) string {
		turn := `{"choices":[{"delta":{"reasoning":"abcd"}}]},{"choices":[{"delta":{"content":"abcd"}}]}`
		return `"request_response":[` + elements(n, turn) + `]`
	})),
	write("escapes", 640_000, func(n int) string {
		return `"request_response":"` + strings.Repeat(`\u0061`, n) + `"`
	}),
	write("nested arrays", 1600, func(n int) string {
		return `"kwargs":{"a":[` + elements(n, strings.Repeat("[", 400)+strings.Repeat("]", 400)) + `]}`
	}),
	write("JSON within texts", 200_000, func(n int) string {
		return `"function_input":` + quoted(`{"kwargs":{`+members(n, `"abcd"`)+`}}`)
	}),
	write("beginnings of keys", 160_000, func(n int) string {
		return `"request_response":` + quoted(strings.Repeat("sk-sk-AIzaghp_ Bearer ey", n))
	}),
	write("quotes within quotes", 640_000, func(n int) string {
		return `"function_input":` + quoted(strings.Repeat(`{'a': "`, n))
	}),
	// The state of a record is written with each batch. A record has 10,000 events at
	// most, which cost 1.5 s in all.
	{name: "batch: scores of one record", n: 400, most: 400, send: func(p target, n int) int {
		id := wire.NewID()
		return batch(p, n, func(i int) wire.Event {
			body := fmt.Sprintf(`{"score":1,"name":"n%d"}`, i)
			return wire.Event{Kind: wire.KindScore, RequestID: id, Body: json.RawMessage(body)}
		})
	}},
	{name: "page: names of scores", n: 300, brief: true, send: func(p target, n int) int {
		var ids []string
		for range 20 {
			ids = append(ids, wire.NewID())
		}
		size := batch(p, n, func(i int) wire.Event {
			body := fmt.Sprintf(`{"score":1,"name":"%s"}`, wire.NewID())
			return wire.Event{Kind: wire.KindScore, RequestID: ids[i%len(ids)], Body: json.RawMessage(body)}
		})
		size += batch(p, len(ids), func(i int) wire.Event {
			return wire.Event{Kind: wire.KindRequest, RequestID: ids[i], Body: json.RawMessage(`{"function_name":"f"}`)}
		})
		p.call("GET", "/", "")
		p.call("POST", "/api/public/v2/requests/analytics", `{}`)
		return size
	}},

	// Reading what was written.
	inBrief(read("record with many variables", 8000, func(n int) string {
		return `"kwargs":{"messages":[` + elements(n/10, `{"role":"user","content":"abcd value1 value2"}`) +
			`]},"prompt_name":"x","prompt_input_variables":{` + members(n, `"value1"`) + `}`
	}, "/requests/%s")),
	read("record of a long line", 320_000, func(n int) string {
		return `"request_response":` + quoted(strings.Repeat("`*_[<{(", n))
	}, "/requests/%s"),
	// As much Markdown as a page reads, of the kind that its parser takes the square of.
	inBrief(read("record of nested Markdown", 40, func(n int) string {
		texts := strings.Repeat("[](", 300) + "\n\n" + strings.Repeat("> - ", 300) + "\n\n" + strings.Repeat("*a_", 300)
		return `"kwargs":{"messages":[` + elements(n, `{"role":"user","content":`+quoted(texts)+`}`) + `]}`
	}, "/requests/%s")),
	{name: "read: whole texts of a record", n: 4000, brief: true, send: func(p target, n int) int {
		markdown := strings.Repeat("*a_ [](", min(n, 9000)) + "\n\n" + strings.Repeat("|a", min(n, 9000)) + "\n"
		nested := strings.Repeat("[", 400) + strings.Repeat("1,", n) + "1" + strings.Repeat("]", 400)
		id, size := track(p, `"kwargs":{"a":`+nested+`,"messages":[`+
			`{"role":"user","content":`+quoted(markdown)+`},`+
			`{"role":"user","content":`+quoted(strings.Repeat("<\"", n))+`},`+
			`{"role":"user","content":`+quoted(nested)+`}]}`)
		for _, of := range []string{
			"input.0.part.0", "input.1.part.0", "input.2.part.0", "parameter.0", "curl", "python",
		} {
			p.call("GET", "/requests/"+id+"/text?as=html&of="+of, "")
		}
		return size
	}},

	// Templates.
	{name: "template: names of variables", n: 6000, send: func(p target, n int) int {
		var text strings.Builder
		for i := range n {
			fmt.Fprintf(&text, "{{ v%d }}", i%1000) // more are refused
		}
		size := publish(p, "names", text.String())
		p.call("POST", "/prompt-templates/names", `{"input_variables":{}}`)
		return size
	}},
	{name: "template: large variable", n: 200_000, most: 300_000, brief: true, send: func(p target, n int) int {
		publish(p, "large", "{{ a|upper|trim }}{% if a is lower %}{{ a|length }}{% endif %}")
		body := `{"input_variables":{"a":` + quoted(strings.Repeat("abcd ", n)) + `}}`
		p.call("POST", "/prompt-templates/large", body)
		return len(body)
	}},
	{name: "template: versions compared", n: 2000, brief: true, send: func(p target, n int) int {
		name := fmt.Sprint("compared ", n) // which has only the versions 1 and 2
		line := strings.Repeat("word ", n)
		lines := strings.Repeat("some word of a line\n", n/4)
		size := publish(p, name, line+"left\n"+lines)
		size += publish(p, name, line+"right\n"+strings.ReplaceAll(lines, "some", "any"))
		p.call("GET", "/template/compare?"+url.Values{"name": {name}, "a": {"1"}, "b": {"2"}}.Encode(), "")
		return size
	}},

	// Questions.
	{name: "search: a long question", n: 400_000, send: func(p target, n int) int {
		body := `{"q":` + quoted(strings.Repeat("word ", n)) + `}`
		p.call("POST", "/api/public/v2/requests/search", body)
		return len(body)
	}},
	{name: "export: what was written", n: 400, send: func(p target, n int) int {
		tag := wire.NewID()
		size := batch(p, n, func(i int) wire.Event {
			body := json.RawMessage(`{"function_name":"f","tags":["` + tag + `"]}`)
			return wire.Event{Kind: wire.KindRequest, RequestID: wire.NewID(), Body: body}
		})
		for _, format := range []string{"ndjson", "csv"} {
			p.call("POST", "/api/public/v2/requests/export", `{"format":"`+format+
				`","filter_group":{"filters":[{"field":"tags","operator":"is","value":"`+tag+`"}]}}`)
		}
		return size
	}},
}, routeAttacks()...)

// inBrief makes an attack part of the short form.
func inBrief(a attack) attack {
	a.brief = true
	return a
}

// write is an attack by a track-request with these members.
func write(name string, n int, members func(n int) string) attack {
	return attack{name: "write: " + name, n: n, send: func(p target, n int) int {
		_, size := track(p, members(n))
		return size
	}}
}

// read is an attack by a track-request and a read of its record at a path.
func read(name string, n int, members func(n int) string, path string) attack {
	return attack{name: "read: " + name, n: n, send: func(p target, n int) int {
		id, size := track(p, members(n))
		p.call("GET", fmt.Sprintf(path, id), "")
		return size
	}}
}

// track sends a request and returns its id and size.
func track(p target, members string) (id string, size int) {
	id = wire.NewID()
	body := `{"request_id":"` + id + `","function_name":"f","request_start_time":1,"request_end_time":2,` + members
	for _, name := range []string{"kwargs", "request_response"} {
		if !strings.Contains(members, `"`+name+`":`) {
			body += `,"` + name + `":{}`
		}
	}
	body += "}"
	if status, answer := p.call("POST", "/track-request", body); status != 200 && status != 503 {
		p.t.Errorf("track-request of %d bytes: %d %.300s", len(body), status, answer)
	}

	return id, len(body)
}

// batch sends n events in batches, as a sidecar does, and returns their size.
func batch(p target, n int, event func(i int) wire.Event) int {
	size := 0
	var lines []byte
	flush := func() {
		if len(lines) > 0 {
			p.call("POST", "/sync/events", string(lines))
			size += len(lines)
			lines = nil
		}
	}
	for i := range n {
		e := event(i)
		e.ID, e.AcceptedAt, e.Sidecar = wire.NewID(), time.Now(), "s"
		lines = e.AppendLine(lines)
		if i%500 == 499 {
			flush()
		}
	}
	flush()

	return size
}

// elements returns n equal elements of an array.
func elements(n int, element string) string {
	return strings.TrimSuffix(strings.Repeat(element+",", n), ",")
}

// members returns n members of an object, each with a name of its own.
func members(n int, value string) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `"m%d":%s`, i, value)
	}

	return b.String()
}

// quoted returns a text as JSON.
func quoted(s string) string {
	text, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}

	return string(text)
}
