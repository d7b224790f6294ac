package render_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"promptspool/registry/render"
)

func TestCheckMakesTheNormalForm(t *testing.T) {
	for _, c := range []struct{ name, blueprint, want string }{
		{
			"a completion as a plain string", `{"content": "Hi {name}, {name}"}`,
			`{"content":[{"type":"text","text":"Hi {name}, {name}"}],"type":"completion","input_variables":["name"]}`,
		}, {
			"a chat keeps what it does not know, and numbers as written",
			`{"messages": [{"role": "user", "content": "{q}", "x": 1.50}], "input_variables": [], "y": 1e400}`,
			`{"messages":[{"role":"user","content":[{"type":"text","text":"{q}"}],"x":1.50,"input_variables":["q"]}],` +
				`"input_variables":["q"],"y":1e400,"type":"chat"}`,
		}, {
			"the union of variables in order of appearance: texts, image urls, placeholders",
			`{"type":"chat","messages":[{"role":"system","content":[{"text":"{b}{a}"}]},` +
				`{"role":"placeholder","name":"history"},` +
				`{"role":"user","content":[{"image_url":{"url":"{c}"}},{"text":"{a}"}]}]}`,
			`{"type":"chat","messages":[{"role":"system","content":[{"text":"{b}{a}","type":"text"}],` +
				`"input_variables":["b","a"]},{"role":"placeholder","name":"history","input_variables":["history"]},` +
				`{"role":"user","content":[{"image_url":{"url":"{c}"},"type":"image_url"},` +
				`{"text":"{a}","type":"text"}],` +
				`"input_variables":["c","a"]}],"input_variables":["b","a","history","c"]}`,
		}, {
			"variables that the publisher lists stay", `{"content":"{a}","input_variables":["z"]}`,
			`{"content":[{"type":"text","text":"{a}"}],"input_variables":["z"],"type":"completion"}`,
		}, {
			"JSON braces are no variables", `{"content":"{\"a\": 1}"}`,
			`{"content":[{"type":"text","text":"{\"a\": 1}"}],"type":"completion","input_variables":[]}`,
		}, {
			"a content of null, and blocks of other types",
			`{"messages":[{"role":"assistant","content":null,` +
				`"tool_calls":[{"id":"1","function":{"name":"f","arguments":"{}"}}]},` +
				`{"role":"user","content":[{"type":"thinking","thinking":"{x}"}]}]}`,
			`{"messages":[{"role":"assistant","content":null,` +
				`"tool_calls":[{"id":"1","function":{"name":"f","arguments":"{}"}}],"input_variables":[]},` +
				`{"role":"user","content":[{"type":"thinking","thinking":"{x}"}],"input_variables":[]}],` +
				`"type":"chat","input_variables":[]}`,
		},
	} {
		got, faults := render.Check(json.RawMessage(c.blueprint))
		if len(faults) > 0 || string(got) != c.want {
			t.Errorf("%s: faults %v\n got %s\nwant %s", c.name, faults, got, c.want)
		}

		again, faults := render.Check(got)
		if len(faults) > 0 || string(again) != string(got) {
			t.Errorf("%s: checked twice it differs: faults %v\n got %s\nwant %s", c.name, faults, again, got)
		}
	}
}

func TestCheckNamesWhatIsWrong(t *testing.T) {
	message := func(m string) string { return `{"messages":[` + m + `]}` }
	for _, c := range []struct{ blueprint, want string }{
		{`{}`, "type"},
		{`{"type":"poem"}`, "type"},
		{`{"type":1}`, "type"},
		{`{"type":"chat"}`, "messages"},
		{`{"type":"chat","messages":{}}`, "messages"},
		{`{"type":"completion"}`, "content"},
		{`{"content":1}`, "content"},
		{`{"content":[1]}`, "content[0]"},
		{`{"content":[{}]}`, "content[0].type"},
		{`{"content":[{"type":"text"}]}`, "content[0].text"},
		{`{"content":[{"text":null}]}`, "content[0].text"},
		{`{"content":[{"image_url":"x"}]}`, "content[0].image_url"},
		{`{"content":[{"image_url":{}}]}`, "content[0].image_url.url"},
		{`{"content":"x","content":"y"}`, "content"},
		{`{"content":"x","template_format":"mustache"}`, "template_format"},
		{`{"content":"x","input_variables":"a"}`, "input_variables"},
		{`{"content":"x","input_variables":[1]}`, "input_variables[0]"},
		{message(`"hello"`), "messages[0]"},
		{message(`{"content":"x"}`), "messages[0].role"},
		{message(`{"role":"pirate","content":"x"}`), "messages[0].role"},
		{message(`{"role":"user"}`), "messages[0].content"},
		{message(`{"role":"user","content":null}`), "messages[0].content"},
		{message(`{"role":"user","content":"x","template_format":"jinja3"}`), "messages[0].template_format"},
		{message(`{"role":"placeholder"}`), "messages[0].name"},
		{message(`{"role":"function","content":"x"}`), "messages[0].name"},
		{message(`{"role":"tool","content":"x"}`), "messages[0].tool_call_id"},
		{message(`{"role":"assistant","tool_calls":{}}`), "messages[0].tool_calls"},
		{message(`{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":"{}"}}]}`),
			"messages[0].tool_calls[0].id"},
		{message(`{"role":"assistant","tool_calls":[{"id":"1"}]}`), "messages[0].tool_calls[0].function"},
		{message(`{"role":"assistant","function_call":{"name":"f","arguments":{}}}`),
			"messages[0].function_call.arguments"},
		{`{"messages":[],"tools":{}}`, "tools"},
		{`{"messages":[],"tools":[{"type":"function"}]}`, "tools[0].function"},
		{`{"messages":[],"tools":[{"function":{}}]}`, "tools[0].function.name"},
		{`{"messages":[],"functions":[{}]}`, "functions[0].name"},
		{`{"messages":[],"tool_choice":1}`, "tool_choice"},
		{message(strings.Repeat(`{"role":"user","content":"x"},`, 1000) + `{"role":"user","content":"x"}`), "messages"},
		{`{"content":"` + manyFields(1001) + `"}`, "input_variables"},
	} {
		got, faults := render.Check(json.RawMessage(c.blueprint))

		if got != nil || len(faults) == 0 || faults[0].Field != c.want || faults[0].Reason == "" {
			t.Errorf("%.200s: faults %v, want %s first", c.blueprint, faults, c.want)
		}
	}
}

func manyFields(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "{v%d}", i)
	}
	return b.String()
}

func TestCheckTellsAllFaultsUpToABound(t *testing.T) {
	_, faults := render.Check(json.RawMessage(`{"content":[` + strings.Repeat(`{},`, 40) + `{}]}`))
	if len(faults) != 32 {
		t.Errorf("%d faults, want 32", len(faults))
	}
}

func TestMetadataMayNotRedirectTheAppsClient(t *testing.T) {
	for metadata, want := range map[string]string{
		``:                          "",
		`null`:                      "",
		`{}`:                        "",
		`{"team":"x","model":null}`: "",
		`{"model":{"provider":"openai","name":"m","parameters":{"temperature":0.5,"max_tokens":5}}}`: "",
		`[]`:                                                "",
		`{"model":"gpt"}`:                                   "model",
		`{"model":{"provider":1}}`:                          "model.provider",
		`{"model":{"name":{}}}`:                             "model.name",
		`{"model":{"parameters":[]}}`:                       "model.parameters",
		`{"model":{"parameters":{"api_key":1}}}`:            "model.parameters.api_key",
		`{"model":{"parameters":{"Base_URL":""}}}`:          "model.parameters.Base_URL",
		`{"model":{"parameters":{"extra_headers":{}}}}`:     "model.parameters.extra_headers",
		`{"model":{"parameters":{"aws_session_token":""}}}`: "model.parameters.aws_session_token",
		`{"model":{"parameters":{"organization":""}}}`:      "model.parameters.organization",
		`{"model":{"parameters":{"default_headers":{}}}}`:   "model.parameters.default_headers",
		`{"model":{"parameters":{"openai_api_key":""}}}`:    "model.parameters.openai_api_key",
	} {
		faults := render.CheckMetadata(json.RawMessage(metadata))
		refused := want != "" || metadata == `[]`

		if refused != (len(faults) > 0) || refused && faults[0].Field != want {
			t.Errorf("%s: faults %v, want %q", metadata, faults, want)
		}
	}
}
