package otlp_test

import (
	"fmt"
	"testing"

	"promptspool/api/otlp"
)

func TestOnlyAnAppsSurroundingsArePlumbing(t *testing.T) {
	for name, c := range map[string]struct {
		scope, span string
		want        bool
	}{
		"HTTP server":     {"@opentelemetry/instrumentation-http", `"attributes":{"http.route":"/"}`, true},
		"HTTP client":     {"", `"attributes":{"http.request.method":"POST","url.full":"https://x"}`, true},
		"database":        {"pg", `"attributes":{"db.system":"postgresql"}`, true},
		"requests":        {"opentelemetry.instrumentation.requests", `"attributes":{"http.url":"x"}`, true},
		"vector database": {"opentelemetry.instrumentation.chromadb", `"attributes":{"db.system":"x"}`, false},
		"the app's own":   {"shop", `"attributes":{"order.id":7,"aws.local.service":"shop"}`, false},
		"nothing":         {"", `"attributes":[]`, false},
		"a model call":    {"", `"attributes":{"server.address":"x","gen_ai.request.model":"m"}`, false},
		"call over HTTP":  {"", `"attributes":{"http.url":"x","gen_ai.system":"openai"}`, false},
		"AI SDK":          {"ai", `"attributes":{"http.url":"x"}`, false},
		"airline":         {"airline", `"attributes":{"http.url":"x"}`, true},
		"a prompt's link": {"", `"attributes":{"http.url":"x","promptlayer.prompt.name":"greet"}`, false},
		"an event": {"", `"attributes":{"http.url":"x"},"events":[{"name":"retry"},{"name":"gen_ai.choice"}]`,
			false},
		"another event":   {"", `"attributes":{"http.url":"x"},"events":[{"name":"retry"}]`, true},
		"piece of stream": {"codex_exec", `"name":"handle_responses","attributes":{"busy_ns":1}`, true},
		"its last piece":  {"codex_exec", `"name":"handle_responses","attributes":{"gen_ai.usage":1}`, false},
		"its failure":     {"codex_exec", `"name":"handle_responses","events":[{"name":"event x.rs:1"}]`, false},
		"another's piece": {"radio", `"name":"receiving"`, false},
	} {
		body := fmt.Sprintf(`{"resourceSpans":[{"scopeSpans":[{"scope":{"name":%q},"spans":[{"name":"x",
			"traceId":"01010101010101010101010101010101","spanId":"0000000000000001",%s}]}]}]}`, c.scope, c.span)
		spans := 0
		_, err := otlp.Traces(t.Context(), []byte(body), otlp.JSON, func(s otlp.Span) error {
			if spans++; s.Plumbing != c.want {
				t.Errorf("%s: Plumbing is %v", name, s.Plumbing)
			}
			return nil
		})
		if err != nil || spans != 1 {
			t.Errorf("%s: %d spans, %v", name, spans, err)
		}
	}
}
