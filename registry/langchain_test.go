package registry_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"promptspool/api/wire"
)

// Older clients publish prompts in LangChain's form.
func TestLangChainsPromptIsACompletion(t *testing.T) {
	r := newRegistry(t)
	for _, c := range []struct{ name, prompt, want string }{
		{"an f-string",
			`{"_type":"prompt","template":"Hi {n}, {{ok}}","input_variables":["n"],"template_format":"f-string",` +
				`"output_parser":null,"partial_variables":{}}`,
			`{"_type":"prompt","input_variables":["n"],"template_format":"f-string","output_parser":null,` +
				`"partial_variables":{},"type":"completion","content":[{"type":"text","text":"Hi {n}, {{ok}}"}]}`},
		{"jinja2", `{"_type":"prompt","template":"Hi {{ n }}","template_format":"jinja2"}`,
			`{"_type":"prompt","template_format":"jinja2","type":"completion",` +
				`"content":[{"type":"text","text":"Hi {{ n }}"}],"input_variables":["n"]}`},
		{"without its type", `{"template":"Hi {n}","input_variables":["n"]}`,
			`{"input_variables":["n"],"type":"completion","content":[{"type":"text","text":"Hi {n}"}]}`},
	} {
		publish(t, r, wire.Publish{
			PublishedName:    wire.PublishedName{Name: c.name},
			PublishedVersion: wire.PublishedVersion{Blueprint: json.RawMessage(c.prompt)},
		})
		reply, err := r.Fetch(t.Context(), ann, c.name, wire.TemplateFetch{
			Provider: "openai", Model: "m", Variables: map[string]json.RawMessage{"n": json.RawMessage(`"Ann"`)},
		})
		if err != nil {
			t.Fatal(err)
		}
		equal(t, c.name, string(reply.Blueprint), c.want)
	}

	const template = "prompt_version.prompt_template."
	for prompt, field := range map[string]string{
		`{"_type":"prompt","template":5}`:                                    template + "template",
		`{"_type":"prompt"}`:                                                 template + "template",
		`{"_type":"chat","messages":[]}`:                                     template + "_type",
		`{"_type":"few_shot","template":"x"}`:                                template + "_type",
		`{"_type":"prompt","template":"x","template_format":"mustache"}`:     template + "template_format",
		`{"_type":"prompt","template_path":"x.txt","input_variables":["n"]}`: template + "template",
	} {
		_, err := r.Publish(t.Context(), ann, wire.Publish{
			PublishedName:    wire.PublishedName{Name: "bad"},
			PublishedVersion: wire.PublishedVersion{Blueprint: json.RawMessage(prompt)},
		})
		wantFault(t, err, wire.CodeInvalid, field)
	}
}

// What is hardly meant so is told when it is published and when it is rendered.
func TestHintsAreWarnings(t *testing.T) {
	r := newRegistry(t)
	out, err := r.Publish(t.Context(), ann, wire.Publish{
		PublishedName: wire.PublishedName{Name: "hi"},
		PublishedVersion: wire.PublishedVersion{Blueprint: json.RawMessage(
			`{"type":"chat","input_variables":["name","gone"],"messages":[{"role":"placeholder","name":"history"},` +
				`{"role":"user","content":"Hi {{name}}"}]}`)},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := "[messages[1].content[0].text:1:1: has {{name}}, which renders as {name}; " +
		"a variable of an f-string is {name} " +
		"input_variables:1:1: has gone, which is used nowhere input_variables:1:1: has name, which is used nowhere]"
	equal(t, "published", fmt.Sprint(out.Warnings), want)

	fetch := wire.TemplateFetch{Provider: "openai", Model: "m", Variables: map[string]json.RawMessage{
		"history": json.RawMessage(`[{"type":"human","content":"Hello"}]`), "name": json.RawMessage(`"Ann"`),
	}}
	reply, err := r.Fetch(t.Context(), ann, "hi", fetch)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "rendered", *reply.Warning, "messages[1].content[0].text has {{name}}, which renders as {name}; "+
		"a variable of an f-string is {name}. input_variables has name, which is used nowhere.")

	// Whether or not it is asked for llm_kwargs.
	fetch.Variables["history"] = json.RawMessage(`"Hello"`)
	for _, provider := range []string{"openai", ""} {
		publish(t, r, wire.Publish{
			PublishedName: wire.PublishedName{Name: "hi"},
			PublishedVersion: wire.PublishedVersion{
				Metadata:  json.RawMessage(`{"model":{"provider":"openai","name":"m"}}`),
				Blueprint: json.RawMessage(`{"type":"chat","messages":[{"role":"placeholder","name":"history"}]}`),
			},
		})
		fetch.Provider = provider
		_, err = r.Fetch(t.Context(), ann, "hi", fetch)
		wantFault(t, err, wire.CodeInvalid, "input_variables.history")
	}
}
