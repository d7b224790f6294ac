//go:build linux

package delivery

import (
	"strings"
	"testing"

	"promptspool/cmd/promptspool/e2e/harness"
)

func TestAServerCountsUsageFromZeroAtEachStart(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	launch := func() *harness.Node {
		return harness.Launch(t, data, "127.0.0.1:0", "server", "--usage-metrics", "--usage-metadata", "customer")
	}
	log := func(server *harness.Node, customer string) {
		t.Helper()
		server.Track("/rest/track-request", harness.AdminKey, map[string]any{
			"function_name": "openai.ChatCompletion.create",
			"kwargs":        map[string]any{"model": "gpt-4o"},
			"request_response": map[string]any{
				"usage": map[string]any{"prompt_tokens": 12, "completion_tokens": 4, "total_tokens": 16},
			},
			"metadata":           map[string]any{"customer": customer},
			"request_start_time": 1,
			"request_end_time":   2,
		})
	}
	has := func(server *harness.Node, parts ...string) {
		t.Helper()
		for line := range strings.Lines(server.Metrics()) {
			found := true
			for _, part := range parts {
				found = found && strings.Contains(line, part)
			}
			if found {
				return
			}
		}
		t.Errorf("the metrics have no line with %q:\n%s", parts, server.Metrics())
	}

	server := launch()
	log(server, "acme")
	log(server, "acme")
	has(server, "promptspool_usage_requests_total{", `customer="acme"`, "} 2\n")
	has(server, "gen_ai_client_token_usage_sum{", `type="input"`, "} 24\n")
	server.Kill()

	server = launch()
	if strings.Contains(server.Metrics(), "promptspool_usage_requests_total") {
		t.Error("a new server counts what was counted before")
	}
	log(server, "globex")
	has(server, "promptspool_usage_requests_total{", `customer="globex"`, "} 1\n")
}
