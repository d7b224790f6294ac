//go:build linux

package dashboard

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"promptspool/cmd/promptspool/e2e/harness"
	"promptspool/metrics/partstest"
)

// greetVersions are three versions of a template, as apps publish them.
var greetVersions = []struct{ text, message string }{
	{"You greet customers of {shop}.\nAnswer in one sentence.", "first version"},
	{"You greet customers of {shop}.\nAnswer in one short sentence, and use their name.", "use the name"},
	{
		"You greet customers of {shop} warmly.\nAnswer in one short sentence, and use their name.\n" +
			"Never promise a discount.",
		"warmer, no discounts",
	},
}

// publishVersion publishes one of greetVersions.
func publishVersion(server *harness.Node, n int) {
	server.T.Helper()
	v := greetVersions[n]
	r := server.Call("POST", "/rest/prompt-templates", map[string]any{
		"prompt_template": map[string]any{"prompt_name": "greet customers", "tags": []string{"shop"}},
		"prompt_version": map[string]any{
			"commit_message": v.message,
			"prompt_template": map[string]any{"messages": []any{
				map[string]any{"role": "system", "content": v.text},
				map[string]any{"role": "user", "content": "{question}"},
			}},
			"metadata": map[string]any{"model": map[string]any{
				"provider":   "openai",
				"name":       "gpt-4o-mini",
				"parameters": map[string]any{"temperature": 0.4},
			}},
		},
		"release_labels": []string{[]string{"prod", "staging", "staging"}[n]},
	}, "X-API-KEY", harness.AdminKey)

	if r.Status != http.StatusCreated {
		server.T.Fatalf("publish: %d %s", r.Status, r.Body)
	}
}

// publishGreet publishes greetVersions, and logs calls with each.
func publishGreet(server *harness.Node) {
	server.T.Helper()
	for n, v := range greetVersions {
		publishVersion(server, n)

		for k := range 4 {
			now := float64(time.Now().UnixMilli()) / 1000
			id := server.Track("/rest/track-request", harness.AdminKey, map[string]any{
				"function_name": "openai.ChatCompletion.create",
				"kwargs": map[string]any{"model": "gpt-4o-mini", "messages": []any{
					map[string]any{"role": "system", "content": strings.ReplaceAll(v.text, "{shop}", "Nordlys")},
					map[string]any{"role": "user", "content": "Do you ship to Oslo?"},
				}},
				"request_response": map[string]any{
					"model": "gpt-4o-mini",
					"choices": []any{map[string]any{
						"index":         0,
						"finish_reason": "stop",
						"message":       map[string]any{"role": "assistant", "content": "Yes, we do!"},
					}},
					"usage": map[string]any{"prompt_tokens": 40 + 10*n, "completion_tokens": 12 + 4*n},
				},
				"request_start_time":     now - 1.4 + 0.3*float64(n),
				"request_end_time":       now,
				"prompt_id":              "greet customers",
				"prompt_version":         n + 1,
				"prompt_input_variables": map[string]string{"shop": "Nordlys", "question": "Do you ship to Oslo?"},
			})
			score := map[string]any{"request_id": id, "score": 60 + 12*n + k, "name": "tone"}
			server.Track("/rest/track-score", harness.AdminKey, score)
		}
	}
}

func TestATemplateIsWrittenComparedAndTriedInTheDashboard(t *testing.T) {
	server, b := founded(t)
	b.visit("/templates")
	b.shows("main", "No templates yet")
	publishGreet(server)
	b.visit("/templates")
	b.shows("table", "greet customers", "chat", "gpt-4o-mini", "prod v1", "staging v3", "12")
	b.screenshots("templates")

	b.press("tbody a")
	b.shows("main", "Version 3 latest", "Never promise a discount.", "warmer, no discounts",
		"use the name", "staging", "prod v1")
	b.screenshots("template")
	usesWork(b, server)

	b.visit("/template/compare?name=greet+customers&a=1&b=3")
	b.shows(".diff", "Version 1", "Version 3", "Never promise a discount.")
	b.shows(".diff mark", "warmly")
	b.screenshots("compare")

	b.visit("/template/statistics?name=greet+customers")
	b.shows("table", "prod", "61.5 · 4 scores", "85.5 · 4 scores", "first version")
	b.press("tbody tr:last-child a")
	b.shows("main", "4 requests")
	b.holds("they are of the version", `document.querySelector("#line").value.includes("version:1")`)

	b.visit("/template/backtest?name=greet+customers&v=3&sent=1")
	b.shows("main", "As it was sent", "With version 3", "Never promise a discount.")
	b.screenshots("backtest")
	b.visit("/template/backtest?name=greet+customers&v=1&sent=1")
	b.shows("main", "No difference.")

	// The editor: the preview follows the typing. Saving makes a version, which keeps
	// what the form has no field for.
	b.visit("/template/edit?name=greet+customers")
	b.shows("#preview", "You greet customers of Nordlys warmly.", `"model": "gpt-4o-mini"`)
	b.fill("#text-0", "Greet the customers of {shop} like old friends.")
	b.waitsFor("#preview", "customers of Nordlys like old friends")
	b.holds("the variable has a colour", `document.querySelector(".ink mark.variable").textContent === "{shop}"`)
	b.choose("[name=for]", "anthropic")
	b.waitsFor("#preview", `"max_tokens": 4096`)
	b.do("unfold", chromedp.Click(".changes summary"))
	b.shows(".changes .diff", "Version 3", "like old friends")
	b.press("[value=add]")
	b.do("write", chromedp.SendKeys("#text-2", "Gladly."))
	b.screenshots("edit")
	b.fill("[name=message]", "like friends")
	b.press("[value=save]")
	b.shows("main", "Saved.", "Version 4 latest", "like friends", "ann@example.com", "Gladly.")
	var raw struct {
		Author    string `json:"author"`
		Blueprint struct {
			Messages []struct{ Role string } `json:"messages"`
		} `json:"prompt_template"`
		Metadata json.RawMessage `json:"metadata"`
	}
	r := server.Get("/prompt-templates/greet%20customers")
	if json.Unmarshal(r.Body, &raw) != nil || raw.Author != "ann@example.com" ||
		fmt.Sprint(raw.Blueprint.Messages) != "[{system} {user} {assistant}]" ||
		!strings.Contains(string(raw.Metadata), `"temperature":0.4`) {
		t.Errorf("the saved version is %s", r.Body)
	}
	b.visit("/template/edit?name=greet+customers")
	b.press("[value=save]")
	b.shows("main", "no new version was created")

	// Somebody else saves while the editor is open.
	b.visit("/template/edit?name=greet+customers")
	publishGreet(server)
	b.fill("#text-0", "Mine.")
	b.press("[value=save]")
	b.shows("main", "saved version 7", "What changed from version 4 to 7")
	b.screenshots("overtaken")
	b.press("[value=save]")
	b.shows("main", "Version 8 latest", "Mine.")

	// Labels: an existing one is moved by a press, after a look at what that changes. A slip makes none.
	b.visit("/template?name=greet+customers&v=2")
	b.press(".labels .moves a")
	b.shows("main", "Version 2", "Move prod to version 2")
	b.press("main [value=prod]")
	b.shows("main", "prod now points to version 2 (was ", "Undo", "Version 2")
	b.shows(".labels li", "prod\nversion 2")
	b.fill(".facts .row [name=label]", "prdo")
	b.press(".facts form.row button")
	b.shows("[role=alert]", "Create the new label prdo? Existing: prod, staging. Did you mean prod?")
	b.screenshots("new-label")
	b.visit("/template/edit?name=greet+customers")
	b.fill("#text-0", "Greet {shop} again.")
	b.fill(".save [name=label]", "stagign")
	b.press("[value=save]")
	b.shows("[role=alert]", "Create the new label stagign? Existing: prod, staging. Did you mean staging?")
	b.fill(".save [name=label]", "staging")
	b.press("[value=save]")
	b.shows("main", "Saved.", "Version 9 latest")
	b.shows(".labels li:last-child", "staging\nversion 9")
	b.visit("/audit")
	b.shows("table", "save template", "greet customers", "version 4: like friends", "move label", "prod to version 2")
	b.screenshots("audit")
	b.fill("[name=since]", "2026-01-01")
	b.fill("[name=until]", "2026-01-01")
	b.does("leave the days", chromedp.Evaluate[chromedp.Void](`document.activeElement.blur()`))
	b.shows(".empty", "Nothing was found.")
}

// usesWork runs what the page of a template offers to paste into an app.
func usesWork(b *browser, server *harness.Node) {
	b.t.Helper()
	partstest.Need(b.t, "python3", "node", "curl")
	b.allowClipboard()
	programs := map[string][]string{
		"curl": {"sh", "-c"}, "python": {"python3", "-c"}, "javascript": {"node", "--input-type=module", "-e"},
	}
	for _, id := range []string{"javascript", "curl", "python"} {
		program := programs[id]
		b.do("choose", chromedp.Click("[for=way-"+id+"]"))
		b.do("copy", chromedp.Click("[data-copy=first-"+id+"]"))
		command := exec.Command(program[0], append(program[1:], b.copied())...)
		command.Env = append(os.Environ(), "PROMPTSPOOL_KEY="+harness.AdminKey)
		out, err := command.CombinedOutput()
		if err != nil || !strings.Contains(string(out), "You greet customers of ....") {
			b.t.Errorf("%s: %v %s", id, err, out)
		}
	}
}
