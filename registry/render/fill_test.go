package render_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"promptspool/api/wire"
	"promptspool/registry/render"
)

// kwargs checks and prepares a blueprint, and makes llm_kwargs of it.
func kwargs(t *testing.T, blueprint, metadata string, c render.Call) (string, []string, error) {
	t.Helper()
	checked, faults := render.Check(json.RawMessage(blueprint))
	faults = append(faults, render.CheckMetadata(json.RawMessage(metadata))...)
	if len(faults) > 0 {
		t.Fatalf("%s: %v", blueprint, faults)
	}

	p, err := render.Prepare(checked, json.RawMessage(metadata))
	if err != nil {
		t.Fatal(err)
	}
	out, warnings, err := p.Kwargs(c)
	return string(out), warnings, err
}

// chat returns a blueprint with these messages.
func chat(messages string) string { return `{"type":"chat","messages":[` + messages + `]}` }

func TestFill(t *testing.T) {
	const greeting = `{"role":"system","content":"You are {who}."},{"role":"placeholder","name":"history"},` +
		`{"role":"tool","tool_call_id":"1","content":"{who}"},{"role":"assistant","content":null}`
	filled := func(who, history string) string {
		return `{"messages":[{"role":"system","content":"You are ` + who + `."},` + history +
			`{"role":"tool","content":"` + who + `","tool_call_id":"1"},{"role":"assistant","content":null}]}`
	}
	const pictures = `{"role":"user","content":[` +
		`{"type":"image_url","image_url":{"url":"","detail":"low"},"image_variable":"pics"},` +
		`{"type":"media_variable","name":"files"},{"type":"text","text":"?"}]}`
	const dropped = "messages[1], the placeholder history, was dropped: "

	for _, c := range []struct {
		name, blueprint string
		vars            map[string]json.RawMessage
		want            string
		warnings        []string
	}{
		{"without variables all stays as written", `{"content":"{{a}} {b}"}`, nil, `{"prompt":"{{a}} {b}"}`, nil},
		{"variables, and messages for the placeholder, in which braces mean nothing", chat(greeting),
			raw("who", `"Ann"`, "history", `[{"role":"user","content":"{who}?"}]`),
			filled("Ann", `{"role":"user","content":"{who}?"},`), nil},
		{"what was not given is empty, or dropped", chat(greeting), raw("other", "1"),
			filled("", ""), []string{
				"These variables were not given and are empty: who.",
				dropped + "no messages were given for it.",
			}},
		{"a text that does not parse stays, the others are filled",
			`{"content":[{"type":"text","text":"{\"a\": {b}} {gone}"},{"type":"text","text":"{b}"}]}`,
			raw("b", `2`), `{"prompt":"{\"a\": {b}} {gone}2"}`,
			[]string{`content[0] was left as it is: it has {"a"}, which is no variable's name; ` +
				`write {{ and }} for braces (line 1, column 1).`}},
		{"a value that does not fit its spec leaves the text",
			`{"content":[{"type":"text","text":"{gone}{b:d}"}]}`, raw("b", `"2"`), `{"prompt":"{gone}{b:d}"}`,
			[]string{"content[0] was left as it is: it has {b}, whose format spec is for numbers, " +
				"and the value is a text."}},
		{"image urls",
			chat(`{"role":"user","content":[{"type":"image_url","image_url":{"url":"https://x/{b}","detail":"low"}}]}`),
			raw("b", `"2"`), `{"messages":[{"role":"user","content":[` +
				`{"type":"image_url","image_url":{"url":"https://x/2","detail":"low"}}]}]}`, nil},
		{"images of variables", chat(pictures),
			raw("pics", `["https://x/1.png","https://x/2.png"]`,
				"files", `{"url":"QUJD","type":"application/pdf","format":"base64","title":"a.pdf"}`),
			`{"messages":[{"role":"user","content":[` +
				`{"type":"image_url","image_url":{"url":"https://x/1.png","detail":"low"}},` +
				`{"type":"image_url","image_url":{"url":"https://x/2.png","detail":"low"}},` +
				`{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,QUJD"}},` +
				`{"type":"text","text":"?"}]}]}`, nil},
		{"images that were not given", chat(pictures), raw("pics", `[]`),
			`{"messages":[{"role":"user","content":"?"}]}`,
			[]string{"These variables were not given and are empty: files."}},
		{"what stands for images stays behind when nothing is filled", chat(pictures), nil,
			`{"messages":[{"role":"user","content":[{"type":"text","text":"?"}]}]}`,
			[]string{
				"messages[0].content[0] was left out: its variable pics was not given.",
				"messages[0].content[1] was left out: its variable files was not given.",
			}},
		{"a text without variables keeps its braces",
			chat(`{"role":"user","template_format":"none","content":"{name} {{ {% x"}`),
			map[string]json.RawMessage{"name": json.RawMessage(`"Ann"`)},
			`{"messages":[{"role":"user","content":"{name} {{ {% x"}]}`, nil},
	} {
		call := render.Call{Provider: "openai", Variables: c.vars, Keep: true}
		got, warnings, err := kwargs(t, c.blueprint, `null`, call)
		if err != nil || got != c.want {
			t.Errorf("%s: error %v\n got %s\nwant %s", c.name, err, got, c.want)
		}
		if diff := cmp.Diff(c.warnings, warnings); diff != "" {
			t.Errorf("%s: warnings (-want +got):\n%s", c.name, diff)
		}

		// A model must not be called with the text of a template.
		call.Keep = false
		_, _, err = kwargs(t, c.blueprint, `null`, call)
		left := strings.Contains(strings.Join(c.warnings, ""), "was left as it is")
		refused := errors.Is(err, render.ErrVariables)
		if refused != left || refused != wire.IsCode(err, wire.CodeInvalid) {
			t.Errorf("%s: for an app: %v", c.name, err)
		}
	}
}

// A model must not be called without what the app meant to give it.
func TestAVariableOfTheWrongKind(t *testing.T) {
	const history = `{"role":"placeholder","name":"history"},{"role":"user","content":"?"}`
	const picture = `{"role":"user","content":[{"type":"image_url","image_url":{"url":""},"image_variable":"pics"}]}`
	for _, c := range []struct {
		message, variable, value, want string
	}{
		{history, "history", `"a text"`, "history must be an array; messages[0] is a placeholder for messages"},
		{history, "history", `5`, "history must be an array"},
		{history, "history", `{"role":"user","content":"x"}`, "history must be an array"},
		{history, "history", `["a text"]`, "history[0] must be a JSON object"},
		{history, "history", `[{"role":"user"}]`, "history[0].content is missing"},
		{history, "history", `[{"role":"user","content":"x"},{"role":"placeholder","name":"who"}]`,
			"history[1].role must be one of system, user"},
		{history, "history", `[{"type":"who","content":"x"}]`, "history[0].role is missing"},
		{picture, "pics", `[1]`, "pics must be the url of an image, or a list of them, for messages[0].content[0]"},
		{picture, "pics", `[` + strings.Repeat(`"x",`, 1000) + `"x"]`, "pics has more than 1000 images"},
	} {
		_, _, err := kwargs(t, chat(c.message), `null`,
			render.Call{Provider: "openai", Variables: raw(c.variable, c.value)})
		if !errors.Is(err, render.ErrVariables) || !wire.IsCode(err, wire.CodeInvalid) ||
			!strings.Contains(err.Error(), "input_variables."+c.want) {
			t.Errorf("%s: %v, want %s", c.value, err, c.want)
		}
	}
}

// A history comes in the forms in which LangChain writes its messages.
func TestAHistoryOfLangChain(t *testing.T) {
	const want = `{"messages":[{"role":"system","content":"Be kind."},{"role":"user","content":"Weather?"},` +
		`{"role":"assistant","content":"","tool_calls":[{"id":"c1","type":"function",` +
		`"function":{"name":"weather","arguments":"{\"city\": \"Rome\"}"}}]},` +
		`{"role":"tool","content":"Sun","tool_call_id":"c1"},{"role":"assistant","content":"Sun."}]}`
	plain := []string{
		`"content":"Be kind.","additional_kwargs":{},"name":null,"id":null`,
		`"content":"Weather?","example":false`,
		`"content":"","tool_calls":[{"name":"weather","args":{"city": "Rome"},"id":"c1","type":"tool_call"}]`,
		`"content":"Sun","tool_call_id":"c1","status":"success"`,
		`"content":"Sun.","tool_calls":[],"usage_metadata":{"input_tokens":1}`,
	}
	for name, form := range map[string]func(kind, members string) string{
		"as it is dumped": func(kind, members string) string { return `{"type":"` + kind + `",` + members + `}` },
		"with a role":     func(kind, members string) string { return `{"role":"` + kind + `",` + members + `}` },
		"as a dict": func(kind, members string) string {
			return `{"type":"` + kind + `","data":{` + members + `,"type":"` + kind + `"}}`
		},
		"as a chunk": func(kind, members string) string {
			return `{"type":"` + kind + `MessageChunk",` + members + `}`
		},
		"as JavaScript writes it": func(kind, members string) string {
			return `{"lc":1,"type":"constructor","id":["langchain_core","messages","` + strings.ToUpper(kind) +
				`Message"],"kwargs":{` + members + `}}`
		},
	} {
		var history []string
		for i, kind := range []string{"system", "human", "ai", "tool", "ai"} {
			history = append(history, form(kind, plain[i]))
		}
		got, warnings, err := kwargs(t, chat(`{"role":"placeholder","name":"history"}`), `null`,
			render.Call{Provider: "openai", Variables: raw("history", "["+strings.Join(history, ",")+"]")})
		if err != nil || len(warnings) > 0 || got != want {
			t.Errorf("%s: %v %v\n got %s\nwant %s", name, warnings, err, got, want)
		}
	}
}

// LangChain's messages may have the calls of tools elsewhere, or twice.
func TestCallsInAHistoryOfLangChain(t *testing.T) {
	const calls = `"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}}]`
	const older = `"function_call":{"name":"f","arguments":"{}"}`
	for message, want := range map[string]string{
		`{"type":"ai","content":"","tool_calls":[],"additional_kwargs":{` + calls + `}}`: `"content":"",` + calls,
		`{"type":"ai","content":"","additional_kwargs":{` + older + `}}`:                 `"content":"",` + older,
		`{"type":"ai","content":[{"type":"text","text":"Wait."},{"type":"tool_use","id":"c1","name":"f","input":{}}],` +
			`"tool_calls":[{"name":"f","args":{},"id":"c1"}]}`: `"content":"Wait.",` + calls,
	} {
		got, warnings, err := kwargs(t, chat(`{"role":"placeholder","name":"history"}`), `null`,
			render.Call{Provider: "openai", Variables: raw("history", "["+message+"]")})
		want = `{"messages":[{"role":"assistant",` + want + `}]}`
		if err != nil || len(warnings) > 0 || got != want {
			t.Errorf("%s: %v %v\n got %s\nwant %s", message, warnings, err, got, want)
		}
	}
}

func TestHints(t *testing.T) {
	const both = "input_variables:1:1: has a, which is used nowhere " +
		"input_variables:1:1: has b, which is used nowhere"
	for _, c := range []struct{ blueprint, want string }{
		{`{"content":"{a} {b.x} {a:{b}}"}`, ""},
		{`{"content":"Hello."}`, both},
		{`{"content":"{\"a\": {b}}"}`, ""}, // it cannot be parsed
		{`{"content":"{{a}} {{ b }}","template_format":"jinja2"}`, ""},
		{`{"content":"{{\"k\": {a}}} {b} {{}} {{1}} {{{b}}}"}`, ""},
		{chat(`{"role":"placeholder","name":"a"},{"role":"user","content":"{b}"}`), ""},
		{chat(`{"role":"user","content":[{"type":"media_variable","name":"a"},{"text":"{b}"}]}`), ""},
		{`{"content":"{{{{name}}}} {a}{b}"}`, ""}, // it renders as {{name}}
		{`{"content":"{{user.name}}{a}{b}"}`, "content[0].text:1:1: has {{user.name}}, which renders as {user.name}; " +
			"a variable of an f-string is {user.name}"},
		{`{"content":"Dear {{ name }}, {a}{b}"}`, "content[0].text:1:1: has {{name}}, which renders as {name}; " +
			"a variable of an f-string is {name}"},
	} {
		checked, faults := render.Check(json.RawMessage(c.blueprint))
		p, err := render.Prepare(checked, nil)
		if err != nil {
			t.Fatal(c.blueprint, err, faults)
		}
		var got []string
		for _, hint := range p.Hints(slices.Values([]string{"b", "a"})) {
			got = append(got, hint.String())
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %v, want %s", c.blueprint, got, c.want)
		}
	}
}

func FuzzCheckFillKwargs(f *testing.F) {
	f.Add(`{"messages":[{"role":"user","content":"{a}"},{"role":"placeholder","name":"a"}],`+
		`"tools":[{"function":{"name":"f"}}]}`, `{"a":[{"role":"user","content":"x"}]}`)
	f.Add(`{"content":[{"type":"text","text":"{a!r:>5}"},{"image_url":{"url":"{b.c}"}}]}`, `{"a":1,"b":{"c":"x"}}`)
	f.Fuzz(func(t *testing.T, blueprint, variables string) {
		checked, faults := render.Check(json.RawMessage(blueprint))
		if (checked == nil) == (len(faults) == 0) {
			t.Fatalf("%q: checked %q with faults %v", blueprint, checked, faults)
		}

		object, err := wire.ParseObject([]byte(`{"input_variables":` + variables + `}`))
		if err != nil {
			return
		}
		fetch, err := wire.Decode[wire.TemplateFetch](object)
		if checked == nil || err != nil {
			return
		}

		prepared, err := render.Prepare(checked, nil)
		if err != nil {
			t.Fatal(err)
		}

		for _, provider := range render.Providers() {
			c := render.Call{Provider: provider, Variables: fetch.Variables}
			kwargs, _, err := prepared.Kwargs(c)
			if err == nil && !json.Valid(kwargs) {
				t.Fatalf("%q filled with %q gives llm_kwargs that are not JSON: %q", checked, variables, kwargs)
			}
		}
	})
}

// raw makes variables of JSON texts.
func raw(pairs ...string) map[string]json.RawMessage {
	vars := make(map[string]json.RawMessage)
	for i := 0; i < len(pairs); i += 2 {
		vars[pairs[i]] = json.RawMessage(pairs[i+1])
	}
	return vars
}
