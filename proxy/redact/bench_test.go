//go:build bench

package redact

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// record4K returns a chat of 4 KB, as apps send it.
func record4K() []byte {
	var b strings.Builder
	b.WriteString(`{"function_name":"openai.ChatCompletion.create","kwargs":{"model":"gpt-4o","messages":[`)
	for i := 0; b.Len() < 3900; i++ {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"role":"user","content":"Please look into order %d of last week (placed 2026-03-%02d), `+
			`which did not arrive.\nThe customer, who wrote from ann%d@example.com, says that the parcel was left `+
			`at the door; was it?"}`, 10000+i, i+1, i)
	}
	b.WriteString(`]},"request_start_time":1795224000.10,"tags":["support"]}`)
	return []byte(b.String())
}

func BenchmarkAllBuiltins4K(b *testing.B) {
	body := record4K()
	r := rulesOf(b, all(Mask)...)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		r.Body(body, func(string, string) {})
	}
}

// BenchmarkFloor is json.Valid, without which no rule may look at a body.
func BenchmarkFloor(b *testing.B) {
	body := record4K()
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		json.Valid(body)
	}
}
