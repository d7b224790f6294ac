package main

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// founded is a server whose first owner has just signed up in a browser.
func founded(t *testing.T) (*node, *browser) {
	t.Helper()
	server := startServer(t, t.TempDir(), "127.0.0.1:0")
	server.takes()
	b := openBrowser(t, server)
	b.visit("/sign-up")
	b.fill("[name=code]", setupCode(server))
	b.fill("[name=email]", "ann@example.com")
	b.fill("[name=password]", "correct horse battery")
	b.press("main .primary")
	return server, b
}

var printedCode = regexp.MustCompile(`setup code ([a-z2-7-]+)`)

// setupCode is what a fresh server prints.
func setupCode(server *node) string {
	server.t.Helper()
	var found []string
	server.eventually(func() bool {
		found = printedCode.FindStringSubmatch(server.printed())
		return found != nil
	}, func() string { return "no setup code is printed:\n" + server.printed() })
	return found[1]
}

func TestSomebodySignsUpAndGetsAKeyThatWorks(t *testing.T) {
	server, b := founded(t)
	b.visit("/keys")
	b.fill("[name=name]", "my app")
	b.choose("[name=scope]", "full")
	b.press("form.row .primary")
	b.shows("table", "my app", "full", "never")
	key := strings.TrimSpace(b.text("#secret"))
	if r := server.call("POST", "/api/public/v2/requests/search", "{}", "X-API-KEY", key); r.Status != http.StatusOK {
		t.Errorf("the key is refused: %d %s", r.Status, r.Body)
	}
	b.screenshots("keys")
	b.visit("/keys")
	if b.text("#secret") != "" {
		t.Error("the secret is shown again")
	}
}

func TestRequestsAreFoundByAFilterThatStandsInTheAddress(t *testing.T) {
	server, b := founded(t)
	b.shows("main", "Nothing has been logged yet", server.addr[strings.Index(server.addr, ":"):])
	for _, tag := range []string{"demo", "other"} {
		server.track("/rest/track-request", adminKey, map[string]any{
			"function_name": "openai.ChatCompletion.create", "kwargs": map[string]any{"model": "gpt-" + tag, "messages": []any{}},
			"request_response": map[string]any{}, "request_start_time": 1, "request_end_time": 2.5, "tags": []string{tag},
		})
	}
	b.visit("/requests")
	b.shows("main", "2 requests", "gpt-demo", "gpt-other", "1.50 s")
	b.do("unfold", chromedp.Click(".more summary"))
	b.choose(".more [name=field]", "tags")
	b.fill(".more [name=value]", "demo")
	b.press(".more button")
	b.shows("main", "1 request,", "gpt-demo", "Tag is demo")
	b.screenshots("requests")
	if strings.Contains(b.text("table"), "gpt-other") {
		t.Error("the filter finds what it should not")
	}
	b.press(".chips a")
	b.shows("main", "2 requests")
}
