package requests

import (
	"encoding/json"
	"strings"
	"testing"

	"promptspool/api/wire"
)

func TestJSONBecomesPython(t *testing.T) {
	got := pythonText(`{"true":[null],"a\/\ud83d":"it's ''' \"n\"\n"}`)
	want := "r'''{\n  \"true\": [\n    null\n  ],\n" +
		`  "a\/\ud83d": "it\u0027s \u0027\u0027\u0027 \"n\"\n"` + "\n}'''"
	if got != want {
		t.Errorf("%s, want %s", got, want)
	}
	command, _ := replay{URL: "http://a", Body: `{"a":"it's"}`}.program("curl")
	if !strings.HasSuffix(command, `-d '{"a":"it'\''s"}'`) {
		t.Error(command)
	}
}

func TestAProviderIsCalledAsTheAppDid(t *testing.T) {
	record := func(provider, function, kwargs string) wire.Record {
		r := wire.Record{Request: json.RawMessage(`{"kwargs":` + kwargs + `}`)}
		r.Provider, r.FunctionName = provider, function

		return r
	}

	for _, known := range []struct{ provider, function, kwargs, url, body string }{
		{"openai", "openai.responses.create", `{"model": "m", "timeout": 9, "input": ["<"]}`,
			"https://api.openai.com/v1/responses", `{"model":"m","input":["<"]}`},
		{"openai", "openai.embeddings.create", `{"input":"i","model":"m"}`,
			"https://api.openai.com/v1/embeddings", `{"input":"i","model":"m"}`},
		{"mistral", "mistral.chat.complete", `{"model":"m","messages":[]}`,
			"https://api.mistral.ai/v1/chat/completions", `{"model":"m","messages":[]}`},
		{"anthropic", "anthropic.messages.create", `{"model":"m","messages":[]}`,
			"https://api.anthropic.com/v1/messages", `{"model":"m","messages":[]}`},
	} {
		again := providerReplay(record(known.provider, known.function, known.kwargs))
		if again.URL != known.url || again.Body != known.body {
			t.Errorf("%s: %s gets %s", known.function, again.URL, again.Body)
		}
		for _, language := range []string{"curl", "python", "javascript"} {
			program, ok := again.program(language)
			isAnthropic := strings.Contains(program, "2023-06-01")
			if !ok || !strings.Contains(program, again.Variable) || isAnthropic != (known.provider == "anthropic") {
				t.Errorf("%s in %s is %s", known.function, language, program)
			}
		}
	}

	for _, unknown := range []wire.Record{
		record("openai.azure", "openai.chat.completions.create", `{"model":"m","messages":[]}`),
		record("openai", "openai.images.edit", `{"model":"m","input":"i"}`),
		record("openai", "openai.chat.completions.create", `{"messages":[]}`),
		record("google", "google.genai.models.generate_content", `{"model":"m","contents":[]}`),
		record("anthropic", "anthropic.messages.create", `[]`),
		{},
	} {
		if again := providerReplay(unknown); again.URL != "" {
			t.Errorf("%s calls %s", unknown.FunctionName, again.URL)
		}
	}
}
