//go:build bench

package calls_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"promptspool/api/calls"
)

// BenchmarkRead reads a call of 4 KB as a server does with each that it takes in.
func BenchmarkRead(b *testing.B) {
	body := json.RawMessage(fmt.Sprintf(`{"function_name":"openai.ChatCompletion.create","provider_type":"openai",`+
		`"kwargs":{"model":"gpt-4o","temperature":0.2,"messages":[{"role":"system","content":"%s"},`+
		`{"role":"user","content":"%s"}]},"request_response":{"id":"x","object":"chat.completion","model":"gpt-4o",`+
		`"choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"%s"}}],`+
		`"usage":{"prompt_tokens":812,"completion_tokens":120,"total_tokens":932}},`+
		`"request_start_time":1687000000.25,"request_end_time":1687000001.5}`,
		strings.Repeat("rules ", 200), strings.Repeat("words ", 300), strings.Repeat("reply ", 100)))

	b.ReportAllocs()
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		if call := calls.Read(body); len(call.Input) != 2 || call.Model != "gpt-4o" {
			b.Fatal(call)
		}
	}
}
