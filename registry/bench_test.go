//go:build bench

package registry_test

import (
	"encoding/json"
	"strings"
	"testing"

	"promptspool/api/wire"
	"promptspool/metrics"
	"promptspool/registry"
)

// BenchmarkFetch measures a fetch from the cache, rendered: a chat of about 2 KB with
// three variables.
func BenchmarkFetch(b *testing.B) {
	s := newServer()
	c, err := registry.NewCache(registry.CacheConfig{
		Dir: b.TempDir(), Upstream: s, Metrics: metrics.New("sidecar", "bench"), Logger: quiet,
	})
	if err != nil {
		b.Fatal(err)
	}
	p := wire.Publish{Name: "chat", Metadata: json.RawMessage(`{"model":{"provider":"openai","name":"gpt"}}`)}
	p.Blueprint = json.RawMessage(`{"messages":[{"role":"system","content":"` +
		strings.Repeat("You are {who}. ", 100) + `"},{"role":"user","content":"{question} {n:>5}"}]}`)
	if _, err := s.Publish(b.Context(), ann, p); err != nil {
		b.Fatal(err)
	}
	fetch := wire.TemplateFetch{Selector: wire.Selector{Version: 1}, Variables: map[string]json.RawMessage{
		"who": json.RawMessage(`"a cat"`), "question": json.RawMessage(`"Why?"`), "n": json.RawMessage(`7`),
	}}

	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Fetch(b.Context(), ann, "chat", fetch); err != nil {
			b.Fatal(err)
		}
	}
}
