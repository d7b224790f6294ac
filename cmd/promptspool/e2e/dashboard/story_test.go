//go:build linux

package dashboard

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"promptspool/cmd/promptspool/e2e/harness"
)

// TestTheStoryOfAPromptInTheDashboard goes the whole way that the dashboard is for, with
// a sidecar between the app and the server.
func TestTheStoryOfAPromptInTheDashboard(t *testing.T) {
	harness.WatchForRaces(t)

	// Somebody signs up and makes a key.
	server, b := founded(t)
	b.visit("/keys")
	b.fill("[name=name]", "shop")
	b.choose("[name=scope]", "full")
	b.press("form.row .primary")
	b.shows("table", "shop", "full", "never")
	key := strings.TrimSpace(b.text("#secret"))
	b.screenshots("keys")
	b.visit("/keys")
	if b.text("#secret") != "" {
		t.Error("the secret is shown again")
	}

	// They write a template, and give it a label.
	b.visit("/template/edit")
	b.do("write",
		chromedp.SendKeys("[name=name]", "weather"),
		chromedp.SendKeys("#text-0", "Answer in one word."),
		chromedp.SendKeys("#text-1", "What is the weather in {city}?"),
	)
	b.waitsFor("#preview", "What is the weather in")
	b.press("[value=save]")
	b.shows("main", "Version 1 latest")
	b.do("label", chromedp.SendKeys(".facts .row [name=label]", "prod"))
	b.press(".facts .row button")
	b.shows(".labels", "prod", "version 1")

	// An app asks its sidecar for it, and logs a call.
	sidecar := harness.StartSidecar(t, t.TempDir(), server.Addr)
	fetched := func() string {
		var f struct {
			Version   int             `json:"version"`
			Blueprint json.RawMessage `json:"prompt_template"`
		}
		r := sidecar.Call("POST", "/prompt-templates/weather", map[string]any{"label": "prod"}, "X-API-KEY", key)
		if err := json.Unmarshal(r.Body, &f); err != nil {
			return string(r.Body)
		}
		return strconv.Itoa(f.Version) + " " + string(f.Blueprint)
	}
	if got := fetched(); !strings.HasPrefix(got, "1 ") || !strings.Contains(got, "one word") {
		t.Fatalf("the sidecar serves %s", got)
	}
	log := func(version, city, tag string) string {
		number, _ := strconv.Atoi(version)
		return sidecar.Track("/rest/track-request", key, map[string]any{
			"function_name": "openai.ChatCompletion.create",
			"kwargs": map[string]any{"model": "gpt-4o-mini", "messages": []any{
				map[string]any{"role": "user", "content": "What is the weather in " + city + "?"},
			}},
			"request_response": map[string]any{
				"model": "gpt-4o-mini",
				"choices": []any{map[string]any{
					"index": 0, "message": map[string]any{"role": "assistant", "content": "Clear."},
				}},
				"usage": map[string]any{"prompt_tokens": 12, "completion_tokens": 2},
			},
			"request_start_time":     1,
			"request_end_time":       2.5,
			"tags":                   []string{tag},
			"prompt_id":              "weather",
			"prompt_version":         number,
			"prompt_input_variables": map[string]string{"city": city},
		})
	}
	id := log("1", "Oslo", "north")
	log("1", "Rome", "south")
	server.Eventually(
		func() bool { return server.Total(map[string]any{}) == 2 },
		func() string { return "the calls do not arrive" },
	)

	// They find it, narrow the list, and score it.
	b.visit("/requests?filter=Oslo")
	b.shows("main", "1 request,", "weather")
	b.visit("/requests?filter=tag:north")
	b.press("tbody a")
	b.shows("main", "What is the weather in Oslo?", "Clear.", id)
	b.fill("[name=score]", "40")
	b.do("set", chromedp.Click(".facts form button"))
	b.waitsFor("#scores .scores", "40")

	// They write a better version, move the label to it, and the sidecar serves it.
	b.visit("/template/edit?name=weather")
	b.shows("#preview", "What is the weather in")
	b.fill("#text-0", "Answer in one friendly sentence.")
	b.press("[value=save]")
	b.shows("main", "Version 2 latest")
	b.do("label", chromedp.SendKeys(".facts .row [name=label]", "prod"))
	b.press(".facts .row button")
	b.shows(".labels", "prod", "version 2")
	sidecar.Eventually(
		func() bool { return strings.HasPrefix(fetched(), "2 ") && strings.Contains(fetched(), "friendly") },
		func() string { return "the sidecar serves " + fetched() },
	)

	// They see which one is better.
	better := log("2", "Oslo", "north")
	server.Record(better, harness.Events(1))
	b.visit("/requests/" + better)
	b.fill("[name=score]", "90")
	b.do("set", chromedp.Click(".facts form button"))
	b.waitsFor("#scores .scores", "90")
	b.visit("/template/statistics?name=weather")
	b.shows("tbody tr:first-child", "2", "prod", "90.0 · 1 score best")
	b.shows("tbody tr:last-child", "1", "40.0 · 1 score")
	b.visit("/template/compare?name=weather&a=1&b=2")
	b.shows(".diff", "one word", "friendly")
	server.Eventually(func() bool {
		return strings.Contains(string(server.Call("GET", "/sync/fleet", nil, "X-API-KEY", key).Body), `"alive":true`)
	}, func() string { return "the sidecar sends no heartbeat" })
	b.visit("/sidecars")
	b.shows("main", "1 of 1", "online")
	b.visit("/audit")
	b.shows("table", "create key", "save template", "move label", "prod to version 2")

	// They leave, and what they saw is shut.
	b.press(".me form button")
	b.shows("main", "Sign in", "You have signed out.")
	b.visit("/requests/" + id)
	b.shows("main", "Sign in")
}
