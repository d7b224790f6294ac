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

	// An app asks its sidecar for it.
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
	b.visit("/template?name=weather")
	b.shows("main", "Sign in")
}
