package render_test

import (
	"encoding/json"
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
		{"messages that are none are dropped", chat(greeting), raw("who", `"Ann"`, "history", `[{"role":"user"}]`),
			filled("Ann", ""), []string{dropped + "history[0].content is missing."}},
		{"a placeholder is no message to give", chat(greeting),
			raw("who", `"Ann"`, "history", `[{"role":"placeholder","name":"who"}]`),
			filled("Ann", ""), []string{dropped + "history[0].role must be one of " +
				"system, user, assistant, function, tool, developer, placeholder."}},
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
		{"images that were not given, or are none", chat(pictures), raw("pics", `[1]`),
			`{"messages":[{"role":"user","content":"?"}]}`,
			[]string{
				"These variables were not given and are empty: files.",
				"messages[0].content[0] was dropped: " +
					"the variable pics must hold the url of an image, or a list of them.",
			}},
		{"what stands for images stays behind when nothing is filled", chat(pictures), nil,
			`{"messages":[{"role":"user","content":[{"type":"text","text":"?"}]}]}`, nil},
	} {
		got, warnings, err := kwargs(t, c.blueprint, `null`, render.Call{Provider: "openai", Variables: c.vars})
		if err != nil || got != c.want {
			t.Errorf("%s: error %v\n got %s\nwant %s", c.name, err, got, c.want)
		}
		if diff := cmp.Diff(c.warnings, warnings); diff != "" {
			t.Errorf("%s: warnings (-want +got):\n%s", c.name, diff)
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
		fetch, err := wire.DecodeFetch(object)
		if checked == nil || err != nil {
			return
		}

		prepared, err := render.Prepare(checked, nil)
		if err != nil {
			t.Fatal(err)
		}

		for _, provider := range render.Providers() {
			c := render.Call{Provider: provider, Variables: fetch.Variables}
			kwargs, _, err := prepared.Anew(c)
			if err == nil && !json.Valid(kwargs) {
				t.Fatalf("%q filled with %q gives llm_kwargs that are not JSON: %q", checked, variables, kwargs)
			}
			sameAsAnew(t, prepared, c)
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
