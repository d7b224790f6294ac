package wire

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// chatBody is a track-request of about 4 KB, as an SDK sends it.
func chatBody() []byte {
	text := strings.Repeat("The quick brown fox says \\\"hello\\\"; naïve café.\\n", 28)
	return fmt.Appendf(nil, `{"function_name": "openai.ChatCompletion.create", "provider_type": "openai", "args": [], `+
		`"kwargs": {"model": "gpt-4o", "api_key": "sk-secret", "temperature": 0.2, "messages": [{"role": "system", "content": "Be short."}, `+
		`{"role": "user", "content": "%s"}], "functions": [{"name": "weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}]}, `+
		`"tags": ["prod", "eu"], "metadata": {"user_id": "u1", "session_id": "s1"}, "request_response": {"id": "chatcmpl-1", "model": "gpt-4o-2024", `+
		`"choices": [{"index": 0, "message": {"role": "assistant", "content": "%s", "function_call": {"name": "weather", "arguments": "{\"city\": \"Rome\"}"}}, `+
		`"finish_reason": "stop"}], "usage": {"prompt_tokens": 700, "completion_tokens": 650, "total_tokens": 1350}}, `+
		`"request_start_time": 1699999999.123456, "request_end_time": 1700000001.5, "prompt_id": "greeting", "prompt_version": 3, `+
		`"prompt_input_variables": {"city": "Rome"}, "api_key": "ps_0123456789abcdef"}`, text, text)
}

func BenchmarkAcceptChat(b *testing.B) {
	body := chatBody()
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		object, err := ParseObject(body)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := DecodeRequest(object, true); err != nil {
			b.Fatal(err)
		}
		StripSecrets(bytes.Clone(body), object)
	}
}

func BenchmarkAppendLine(b *testing.B) {
	body := chatBody()
	e := Event{ID: NewID(), Kind: KindRequest, RequestID: NewID(), AcceptedAt: noon, Sidecar: "pod-1", Body: body}
	var line []byte
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		line = e.AppendLine(line[:0])
	}
}

func BenchmarkParseEvent(b *testing.B) {
	e := Event{ID: NewID(), Kind: KindRequest, RequestID: NewID(), AcceptedAt: noon, Sidecar: "pod-1", Body: chatBody()}
	line := e.AppendLine(nil)
	b.SetBytes(int64(len(line)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ParseEvent(line); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkStripSecrets takes the secrets out of bodies of 4 KB and 1 MB: chats, and one with a picture.
func BenchmarkStripSecrets(b *testing.B) {
	chat := string(chatBody())
	long := strings.Replace(chat, "Be short.", strings.Repeat("The quick brown fox: \\\"a-b_c\\\".\\n", 1<<15), 1)
	noise := make([]byte, 3<<18)
	_, _ = rand.NewChaCha8([32]byte{}).Read(noise)
	picture := strings.Replace(chat, "Be short.", base64.StdEncoding.EncodeToString(noise), 1)
	for _, bb := range []struct{ name, body string }{{"4KB", chat}, {"1MB", long}, {"1MB-picture", picture}} {
		b.Run(bb.name, func(b *testing.B) {
			object, err := ParseObject([]byte(bb.body))
			if err != nil {
				b.Fatal(err)
			}
			body := make([]byte, len(bb.body))
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				copy(body, bb.body)
				StripSecrets(body, object)
			}
		})
	}
}
