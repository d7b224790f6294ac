//go:build linux

package harness

import (
	"encoding/json"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
)

// Chat returns the documented chat call, with a function call in its answer.
func Chat() map[string]any {
	const text = `{
		"function_name": "openai.ChatCompletion.create",
		"provider_type": "openai",
		"kwargs": {
			"model": "gpt-4-0613",
			"messages": [
				{"role": "system", "content": "You look things up."},
				{"role": "user", "content": "Weather in Boston?"}
			],
			"functions": [{
				"name": "get_weather",
				"parameters": {"type": "object", "properties": {"city": {"type": "string"}}}
			}],
			"function_call": "auto",
			"api_key": "sk-the-provider-key-of-the-app"
		},
		"request_response": {
			"id": "chatcmpl-1", "object": "chat.completion", "created": 1687000000, "model": "gpt-4-0613-answered",
			"choices": [{"index": 0, "finish_reason": "function_call", "message": {"role": "assistant", "content": null,
				"function_call": {"name": "get_weather", "arguments": "{\"city\": \"Boston\"}"}}}],
			"usage": {"prompt_tokens": 82, "completion_tokens": 18, "total_tokens": 100}
		},
		"request_start_time": 1687000000.25,
		"request_end_time": 1687000001.5,
		"tags": ["weather", "prod"],
		"an_unknown_field": {"kept": [1, 2.50, 1e400]}
	}`

	return Decode(text)
}

// Decode parses JSON and keeps numbers as they are written.
func Decode(text string) map[string]any {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	m := map[string]any{}
	if err := d.Decode(&m); err != nil {
		panic(err)
	}
	return m
}

// Greeting returns the body that publishes a chat template.
func Greeting(text string, labels ...string) map[string]any {
	return map[string]any{
		"prompt_template": map[string]any{"prompt_name": "team/greet", "tags": []string{"demo"}},
		"prompt_version": map[string]any{
			"prompt_template": map[string]any{"type": "chat", "messages": []any{
				map[string]any{"role": "user", "content": []any{map[string]any{"type": "text", "text": text}}},
			}},
			"commit_message": "say " + text,
			"metadata": map[string]any{"model": map[string]any{
				"provider": "openai", "name": "gpt-4o", "parameters": map[string]any{"temperature": 0.5},
			}},
		},
		"release_labels": labels,
	}
}

// ChatOf2KB returns a chat template of some two kilobytes, with variables. Its text
// depends on the name, and repeats itself no more than prose does: the cache keeps
// templates packed.
func ChatOf2KB(name string) map[string]any {
	seed := fnv.New64a()
	_, _ = seed.Write([]byte(name))
	random := rand.New(rand.NewPCG(seed.Sum64(), 1))

	text := func(bytes int) string {
		var b strings.Builder
		for b.Len() < bytes {
			b.WriteString(benchWords()[random.IntN(len(benchWords()))])
			b.WriteByte(' ')
		}
		return b.String()
	}

	message := func(role, text string) any {
		return map[string]any{"role": role, "content": []any{map[string]any{"type": "text", "text": text}}}
	}

	return map[string]any{
		"prompt_template": map[string]any{"prompt_name": name, "tags": []string{"bench"}},
		"prompt_version": map[string]any{
			"prompt_template": map[string]any{"type": "chat", "messages": []any{
				message("system", "You answer for {company}. "+text(780)),
				message("user", "Hello, I am {name}. "+text(780)+"{question}"),
			}},
			"metadata": map[string]any{"model": map[string]any{
				"provider":   "openai",
				"name":       "gpt-4o",
				"parameters": map[string]any{"temperature": 0.5},
			}},
		},
		"release_labels": []string{"prod"},
	}
}

// benchWords are words of this project's own documents, common ones more often.
var benchWords = sync.OnceValue(func() []string {
	readme, err := os.ReadFile("../../../../README.md")
	if err != nil {
		panic(err)
	}
	return slices.DeleteFunc(strings.Fields(string(readme)), func(word string) bool {
		return strings.Trim(word, "abcdefghijklmnopqrstuvwxyz,.") != ""
	})
})

// BodyOf returns a write of exactly size bytes.
func BodyOf(size int) []byte {
	const head = `{"function_name":"openai.ChatCompletion.create","provider_type":"openai",` +
		`"kwargs":{"model":"gpt-4","messages":[{"role":"user","content":"`
	const tail = `"}]},"request_response":{"id":"x","choices":[],` +
		`"usage":{"prompt_tokens":1,"completion_tokens":2}},` +
		`"request_start_time":1687000000.25,"request_end_time":1687000001.5}`

	text := strings.Repeat("All happy families are alike. ", size/30+1)
	return []byte(head + text[:size-len(head)-len(tail)] + tail)
}
