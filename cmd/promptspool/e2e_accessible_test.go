package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// axe reads axe-core, which npm installs once into the user's cache.
func axe(t *testing.T) string {
	t.Helper()
	source, err := os.ReadFile(filepath.Join(npmModules(t, "testdata/axe"), "node_modules", "axe-core", "axe.min.js"))
	if err != nil {
		t.Fatal(err)
	}
	return string(source)
}

// violation is what axe-core says against a page.
type violation struct {
	ID, Impact, Help string
	Nodes            []struct{ HTML, FailureSummary string }
}

// violations are what axe-core finds wrong with the page as it is.
func (b *browser) violations(source string) []violation {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, stepTimeMax)
	defer cancel()
	if _, err := chromedp.Run(ctx, chromedp.Evaluate[bool](source+";true")); err != nil {
		b.t.Fatalf("axe-core: %v", err)
	}
	run := `axe.run(document, {resultTypes: ["violations"]}).then(r => r.violations.map(v => ({id: v.id, impact: v.impact, help: v.help,
		nodes: v.nodes.slice(0, 3).map(n => ({html: n.html.slice(0, 200), failureSummary: n.failureSummary}))})))`
	found, err := chromedp.Run(ctx, chromedp.Evaluate[[]violation](run, chromedp.EvalAwaitPromise))
	if err != nil {
		b.t.Fatalf("axe-core: %v", err)
	}
	return found
}

// accessible fails the test if axe-core finds something serious on the page, light or dark.
func (b *browser) accessible(source, page string) {
	b.t.Helper()
	for _, scheme := range []string{"light", "dark"} {
		b.do("look "+scheme, prefers(scheme))
		for _, v := range b.violations(source) {
			if v.Impact == "serious" || v.Impact == "critical" {
				b.t.Errorf("%s, %s: %s (%s): %s\n%+v", page, scheme, v.ID, v.Impact, v.Help, v.Nodes)
			}
		}
	}
	b.do("as before", prefers("light"))
}

func TestNoPageShutsAnybodyOut(t *testing.T) {
	server, b := founded(t)
	source := axe(t)
	for _, path := range []string{"/", "/requests", "/templates", "/sidecars"} { // with nothing in them
		b.visit(path)
		b.accessible(source, path+", empty")
	}
	publishGreet(server)
	startSidecar(t, t.TempDir(), server.addr).track("/rest/track-metadata", adminKey, map[string]any{"request_id": fmt.Sprintf("01a1fcdb-6cb7-7ca5-a7cd-%012d", 1), "metadata": map[string]string{"a": "b"}})
	id := server.track("/rest/track-request", adminKey, map[string]any{
		"function_name": "openai.ChatCompletion.create", "kwargs": map[string]any{"model": "gpt-4o-mini", "messages": []any{
			map[string]any{"role": "user", "content": "Hello. " + strings.Repeat("long ", 2000)}}},
		"request_response":   map[string]any{"model": "gpt-4o-mini", "choices": []any{map[string]any{"index": 0, "message": map[string]any{"role": "assistant", "content": `{"a": 1}`}}}},
		"request_start_time": 1, "request_end_time": 2.5, "tags": []string{"demo"}, "metadata": map[string]string{"user_id": "ann"},
	})
	for _, path := range []string{
		"/", "/requests", "/requests?field=tags&op=is&value=demo&key=", "/requests?field=nonsense&op=is&value=x", "/requests/" + id, "/requests/unknown",
		"/templates", "/template?name=greet+customers", "/template/compare?name=greet+customers&a=1&b=3", "/template/statistics?name=greet+customers",
		"/template/backtest?name=greet+customers&v=3", "/template/edit?name=greet+customers", "/template/edit",
		"/sidecars", "/keys", "/people", "/audit", "/password", "/sign-in", "/sign-up",
	} {
		b.visit(path)
		b.accessible(source, path)
		switch path {
		case "/sidecars", "/people", "/password", "/sign-in", "/sign-up", "/requests/unknown":
			b.screenshots(strings.ReplaceAll(path[1:], "/", "-"))
		}
	}
	// What judges can say no.
	b.do("spoil", chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		_, err := chromedp.Run(ctx, chromedp.Evaluate[bool](`document.querySelector("label").replaceWith(document.querySelector("label input")); true`))
		return err
	}))
	if b.violations(source) == nil {
		t.Error("axe-core finds nothing against an input without a label")
	}
}
