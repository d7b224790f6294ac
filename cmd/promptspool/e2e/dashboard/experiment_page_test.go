//go:build linux

package dashboard

import (
	"fmt"
	"testing"
	"time"

	"promptspool/cmd/promptspool/e2e/harness"
)

// logExperiment logs what two versions of a template of publishGreet answered to 40 rows. The second one
// is ruder to each tenth, and fails once.
func logExperiment(server *harness.Node) {
	server.T.Helper()
	for i := range 80 {
		row, version := i/2, 2+i%2
		answer, good := fmt.Sprintf("Yes, Ann %d!\nWe ship to Oslo each day.\nIt takes two days.", row), 0.9
		if version == 3 && row%10 == 4 {
			answer, good = fmt.Sprintf("Yes, Ann %d.\nWe ship when we like.\nIt takes two days.", row), 0.3
		}
		now := float64(time.Now().UnixMilli()) / 1000
		call := map[string]any{
			"function_name": "promptspool.experiments.run", "provider_type": "openai",
			"kwargs": map[string]any{"model": "gpt-4o-mini", "messages": []any{
				map[string]any{"role": "user", "content": "Do you ship to Oslo?"},
			}},
			"request_response": map[string]any{"model": "gpt-4o-mini",
				"choices": []any{map[string]any{"message": map[string]any{"role": "assistant", "content": answer}}},
				"usage":   map[string]any{"prompt_tokens": 40 + 10*version, "completion_tokens": 12},
			},
			"request_start_time": now - 0.5*float64(version), "request_end_time": now,
			"prompt_id": "greet customers", "prompt_version": version,
			"metadata": map[string]string{"experiment": "greetings", "row": fmt.Sprint(row)},
		}
		if version == 3 && row == 7 {
			call["request_response"] = map[string]any{"error": map[string]any{"message": "Slow down.", "type": "rate"}}
		}
		id := server.Track("/rest/track-request", harness.AdminKey, call)
		if call["request_response"].(map[string]any)["error"] == nil {
			server.Call("POST", "/rest/track-score", map[string]any{
				"request_id": id, "name": "polite", "value": good, "author": "judge",
			}, "X-API-KEY", harness.AdminKey)
		}
	}
}

func TestAnExperimentIsReadOnItsPage(t *testing.T) {
	t.Parallel()
	server, b := founded(t)
	publishGreet(server)
	b.visit("/template/compare?name=greet+customers")
	b.press("a[href^='/template/experiment']")
	b.shows("main", "No version of this template was tried",
		"--template 'greet customers@3' --against 'greet customers@1'")
	logExperiment(server)

	b.visit("/template/experiment?name=greet+customers")
	b.shows("main", "polite")
	b.shows(".verdicts", "0.900", "Errors", "2.5%")
	b.shows(".backtest", "Row 7", "Slow down.")
	b.shows("main", "We ship when we like.")
	b.shows("main", "Row 24", "polite=0.3")
	b.screenshots("experiment")
	b.press("a[rel=next]")
	b.shows("main", "Row 13")
	b.press("a[rel=prev]")
	b.visit("/template/experiment?name=greet+customers&experiment=greetings&a=3&b=2")
	b.shows(".verdicts", "Version 3", "0.838", "Version 2")
	b.press("form.bucket a[href^='/requests?']")
	b.waitsFor("main", "80 requests")

	b.visit("/template/backtest?name=greet+customers&v=3&sent=1")
	b.shows("main", "promptspool experiments run --filter 'version:1'")
	b.screenshots("backtest-command")
}
