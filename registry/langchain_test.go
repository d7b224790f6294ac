package registry_test

import (
	"encoding/json"
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
		publish(t, r, wire.Publish{Name: c.name, Blueprint: json.RawMessage(c.prompt)})
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
		_, err := r.Publish(t.Context(), ann, wire.Publish{Name: "bad", Blueprint: json.RawMessage(prompt)})
		wantFault(t, err, wire.CodeInvalid, field)
	}
}
