//go:build linux

package delivery

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"promptspool/api/wire"
	"promptspool/cmd/promptspool/e2e/harness"
)

// releases is a server with a template team/letter, whose text shows where its snippet's
// label and its own label point.
type releases struct {
	*testing.T
	server *harness.Node
}

func (r releases) must(answer harness.Reply) harness.Reply {
	r.Helper()
	if answer.Status/100 != 2 {
		r.Fatalf("%d %s", answer.Status, answer.Body)
	}
	return answer
}

// publish makes a version of team/letter, and of its snippet before it. The first
// versions get their labels.
func (r releases) publish(letter, tone string) {
	r.Helper()
	for _, t := range [][2]string{{"team/tone", tone}, {"team/letter", letter + " @@@team/tone@label:live@@@"}} {
		labels := []string(nil)
		if r.server.Get("/prompt-templates/"+t[0]).Status == 404 {
			labels = []string{"live"}
		}
		r.must(r.server.Call("POST", "/rest/prompt-templates", map[string]any{
			"prompt_template": map[string]any{"prompt_name": t[0]},
			"prompt_version": map[string]any{
				"prompt_template": map[string]any{
					"type": "completion", "content": []any{map[string]any{"type": "text", "text": t[1]}},
				},
				"metadata": map[string]any{"model": map[string]any{
					"provider": "openai", "name": "gpt-3.5-turbo-instruct",
				}},
			},
			"release_labels": labels,
		}, "X-API-KEY", harness.AdminKey))
	}
}

// move points the label live of a template to a version.
func (r releases) move(name string, version int) {
	r.Helper()
	labels := r.must(r.server.Get("/prompt-templates/" + name + "/labels")).JSON["release_labels"].([]any)
	id := labels[0].(map[string]any)["release_label_id"]
	body := map[string]any{"prompt_version_number": version}
	r.must(r.server.Call("PATCH", fmt.Sprintf("/prompt-labels/%v", id), body, "X-API-KEY", harness.AdminKey))
}

// live returns what the sidecar gives an app that asks for the label, and its X-Cache
// header.
func live(sidecar *harness.Node) (text, cache string) {
	sidecar.T.Helper()
	ask := map[string]any{"label": "live", "input_variables": map[string]any{}}
	r := sidecar.Call("POST", "/prompt-templates/team/letter", ask, "X-API-KEY", harness.AdminKey)
	if age, err := strconv.Atoi(r.Header.Get("Age")); r.Status == 200 && (err != nil || age < 0) {
		sidecar.T.Errorf("Age is %q", r.Header.Get("Age"))
	}
	kwargs, _ := r.JSON["llm_kwargs"].(map[string]any)
	return fmt.Sprint(kwargs["prompt"]), r.Header.Get("X-Cache")
}

// seen returns how long it takes until the sidecar gives a text.
func seen(sidecar *harness.Node, want string) time.Duration {
	sidecar.T.Helper()
	begun := time.Now()
	isSeen := func() bool {
		text, _ := live(sidecar)
		return text == want
	}
	sidecar.Eventually(isSeen, func() string {
		text, _ := live(sidecar)
		return fmt.Sprintf("it still says %q, not %q", text, want)
	})
	return time.Since(begun)
}

func TestReleasesReachASidecarInTimeAlsoThroughSnippetsAndOutages(t *testing.T) {
	t.Parallel()
	serverData, sidecarData, addr := t.TempDir(), t.TempDir(), harness.FreePort(t)
	r := releases{t, harness.StartServer(t, serverData, addr)}
	r.publish("Hello.", "Bye.")
	sidecar := harness.StartSidecar(t, sidecarData, addr)
	seen(sidecar, "Hello. Bye.")
	r.publish("Good day.", "Farewell.")
	if text, _ := live(sidecar); text != "Hello. Bye." {
		t.Errorf("without a moved label it says %q", text)
	}

	// With the server up, a moved label is seen within a second. The machine may be busy:
	// the best time counts.
	for name, versions := range map[string][2]string{
		"team/tone":   {"Hello. Bye.", "Hello. Farewell."},
		"team/letter": {"Hello. Bye.", "Good day. Bye."},
	} {
		best := time.Hour
		for round := range 6 {
			version := 2 - round%2
			r.move(name, version)
			best = min(best, seen(sidecar, versions[version-1]))
		}
		if best > time.Second {
			t.Errorf("a moved label of %s was seen after %v at best", name, best)
		}
	}

	// The server is killed; the sidecar too, and comes back alone.
	r.server.Kill()
	for range 20 {
		if text, _ := live(sidecar); text != "Hello. Bye." {
			t.Errorf("without the server it says %q", text)
		}
	}
	sidecar.Kill()
	sidecar = harness.StartSidecar(t, sidecarData, addr)
	if text, cache := live(sidecar); text != "Hello. Bye." || cache != "stale" {
		t.Errorf("without the server after a restart it says %q, %s", text, cache)
	}

	// What it does not hold it cannot answer, and says so; of a list it has those that it holds.
	never := sidecar.Call("POST", "/prompt-templates/other", nil, "X-API-KEY", harness.AdminKey)
	if never.Status != 503 || never.Header.Get("Retry-After") == "" {
		t.Errorf("a template never fetched: %d %s", never.Status, never.Body)
	}
	record := sidecar.Get("/api/public/v2/requests/" + wire.NewID())
	if record.Status != 503 || !strings.Contains(record.JSON["message"].(string), addr) {
		t.Errorf("a record without the server: %d %s", record.Status, record.Body)
	}
	held := sidecar.Get("/prompt-templates")
	isHeld := held.Header.Get("X-Cache") == "stale" && strings.Contains(string(held.Body), "team/letter")
	if held.Status != 200 || !isHeld {
		t.Errorf("the templates held: %d %s", held.Status, held.Body)
	}

	// At another address the server gets a new version of both, and the labels move; then
	// it is back at its own.
	r.server = harness.StartServer(t, serverData, "127.0.0.1:0")
	r.publish("Welcome.", "Cheers.")
	r.move("team/letter", 3)
	r.move("team/tone", 3)
	if text, cache := live(sidecar); text != "Hello. Bye." || cache != "stale" {
		t.Errorf("with the server at another address it says %q, %s", text, cache)
	}
	r.server.Stop()
	r.server = harness.StartServer(t, serverData, addr)
	if took := seen(sidecar, "Welcome. Cheers."); took > 6*time.Second {
		t.Errorf("the versions that came back with the server were seen after %v", took)
	}
}
