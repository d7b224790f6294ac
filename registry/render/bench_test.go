//go:build bench

package render_test

import (
	"encoding/json"
	"strings"
	"testing"

	"promptspool/api/wire/jsonscan"
	"promptspool/registry/render"
)

// prepared returns a chat of 2 KB with five variables in three messages.
func prepared(b *testing.B, format, provider string) (*render.Prepared, render.Call) {
	b.Helper()

	open, end := "{", "}"
	if format == "jinja2" {
		open, end = "{{ ", " }}"
	}
	v := func(name string) string { return open + name + end }
	system := "You are " + v("role") + ".\n" +
		strings.Repeat("Answer in the language of the question, and keep to what you know.\n", 20) +
		"Today is " + v("day") + "."
	user := "My name is " + v("name") + ". " + strings.Repeat("I have a question. ", 15)
	blueprint, err := json.Marshal(map[string]any{"type": "chat", "messages": []any{
		map[string]any{"role": "system", "content": system, "template_format": format},
		map[string]any{"role": "user", "content": user, "template_format": format},
		map[string]any{"role": "user", "content": v("question") + "\n\n" + v("context"), "template_format": format},
	}})
	if err != nil {
		b.Fatal(err)
	}

	checked, faults := render.Check(blueprint)
	if faults != nil {
		b.Fatal(faults)
	}
	p, err := render.Prepare(checked, json.RawMessage(
		`{"model":{"provider":"openai","name":"gpt-4o-mini","parameters":{"temperature":0.2,"max_tokens":100}}}`))
	if err != nil {
		b.Fatal(err)
	}

	return p, render.Call{
		Provider: provider,
		Model:    "some-model",
		Variables: raw("role", `"a guide"`, "day", `"Monday"`, "name", `"Ann"`, "question", `"Why?"`,
			"context", `"`+strings.Repeat("x", 200)+`"`),
	}
}

// BenchmarkKwargs fills in a prepared chat of 2 KB and makes llm_kwargs of it. The floor
// writes the same bytes as JSON strings.
func BenchmarkKwargs(b *testing.B) {
	for _, c := range []struct{ format, provider string }{
		{"f-string", "openai"}, {"jinja2", "openai"}, {"f-string", "anthropic"},
		{"f-string", "google"}, {"f-string", "amazon.bedrock"},
	} {
		b.Run(c.format+"/"+c.provider, func(b *testing.B) {
			p, call := prepared(b, c.format, c.provider)
			b.ReportAllocs()
			for b.Loop() {
				if out, _, err := p.Kwargs(call); err != nil || len(out) < 2000 {
					b.Fatal(len(out), err)
				}
			}
		})
	}

	b.Run("floor", func(b *testing.B) {
		p, call := prepared(b, "f-string", "openai")
		out, _, err := p.Kwargs(call)
		if err != nil {
			b.Fatal(err)
		}
		text := string(out)

		b.ReportAllocs()
		for b.Loop() {
			jsonscan.AppendString(nil, text)
		}
	})
}

// BenchmarkPrepare measures what a cache pays once for each version.
func BenchmarkPrepare(b *testing.B) {
	system := `{"role":"system","content":"` + strings.Repeat("{a} is one of many words, ", 80) + `"}`
	checked, _ := render.Check(json.RawMessage(chat(system)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := render.Prepare(checked, nil); err != nil {
			b.Fatal(err)
		}
	}
}
