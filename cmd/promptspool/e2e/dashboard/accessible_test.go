//go:build linux

package dashboard

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"promptspool/cmd/promptspool/e2e/harness"
)

// axe reads axe-core, which npm installs once into the user's cache.
func axe(t *testing.T) string {
	t.Helper()
	source, err := os.ReadFile(filepath.Join(harness.NPMModules(t, "testdata/axe"), "node_modules",
		"axe-core", "axe.min.js"))
	if err != nil {
		t.Fatal(err)
	}
	return string(source)
}

// violation is something that axe-core finds wrong with a page.
type violation struct {
	ID, Impact, Help string
	Nodes            []struct{ HTML, FailureSummary string }
}

// look puts axe-core into the page as it is.
func (b *browser) look(source string) {
	b.t.Helper()
	b.do("axe-core", chromedp.Evaluate[chromedp.Void](source+";undefined"))
}

// violations returns what axe-core finds wrong with the page as it is, by all of its
// rules, or by the given ones.
func (b *browser) violations(rules ...string) []violation {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, stepTimeMax)
	defer cancel()

	options := map[string]any{
		"resultTypes": []string{"violations"},
		"preload":     false, // of style sheets and sounds, for rules that are off, or find nothing here
		"rules": map[string]any{
			// Off by default.
			"label-content-name-mismatch": map[string]bool{"enabled": true},
			"target-size":                 map[string]bool{"enabled": true},
		},
	}
	if len(rules) > 0 {
		options["runOnly"] = rules
	}
	text, err := json.Marshal(options)
	if err != nil {
		b.t.Fatal(err)
	}
	run := fmt.Sprintf(`axe.run(document, %s).then(r => r.violations.map(v => ({
		id: v.id, impact: v.impact, help: v.help,
		nodes: v.nodes.slice(0, 3).map(n => ({
			html: n.html.slice(0, 200), failureSummary: n.failureSummary,
		})),
	})))`, text)
	found, err := chromedp.Run(ctx, chromedp.Evaluate[[]violation](run, chromedp.EvalAwaitPromise))
	if err != nil {
		b.t.Fatalf("axe-core: %v", err)
	}
	return found
}

// accessible fails the test if axe-core finds more than trifles on the page, light or dark.
// In the dark only colours differ.
func (b *browser) accessible(source, page string) {
	b.t.Helper()
	b.look(source)
	b.faultless(page + ", light")
	b.do("look dark", prefers("dark"))
	b.faultless(page+", dark", "color-contrast", "link-in-text-block")
	b.do("as before", prefers("light"))
}

// faultless fails the test if axe-core, which is in the page, finds more than trifles by its rules, or by
// some of them.
func (b *browser) faultless(page string, rules ...string) {
	b.t.Helper()
	for _, v := range b.violations(rules...) {
		if v.Impact != "minor" {
			b.t.Errorf("%s: %s (%s): %s\n%+v", page, v.ID, v.Impact, v.Help, v.Nodes)
		}
	}
}

// check looks at a page while it is open.
type check func(b *browser, page string)

// byPhone carries out checks in a window as small as a phone's.
func byPhone(checks ...check) check {
	return func(b *browser, page string) {
		b.t.Helper()
		b.do("look by phone", chromedp.EmulateViewport(390, 900))
		for _, look := range checks {
			look(b, page+", by phone")
		}
		b.do("as before", chromedp.EmulateViewport(1440, 900))
	}
}

// fits fails the test if a page is wider than a phone.
func (b *browser) fits(page string) {
	b.t.Helper()
	b.holds(page+" fits", `document.documentElement.scrollWidth <= 390`)
}

// pictured takes the screenshots of a page, by its path.
func (b *browser) pictured(page string) {
	b.t.Helper()
	b.screenshots(strings.ReplaceAll(page[1:], "/", "-"))
}

// readsTrace reads a trace by the keyboard alone: the first failure is selected when it is opened.
func (b *browser) readsTrace() {
	b.t.Helper()
	b.shows(".picked", "chat gpt-4o-mini", "429: Slow down.")
	b.key("k")
	b.waitsFor(".picked", "track_parcel")
	b.holds("the address has the span", `location.search.startsWith("?span=")`)
	b.key(kb.ArrowLeft)
	b.waitsFor(".picked", "Answer a customer")
	b.key(kb.ArrowLeft)
	b.holds("the root is folded", `document.activeElement.closest("tr").ariaExpanded === "false"`)
	b.shows(".tree", "Answer a customer", "3", "failed below")
	b.key(kb.ArrowRight)
	b.holds("the root is open", `document.activeElement.closest("tr").ariaExpanded === "true"`)
	b.keyTo(kb.Enter)
	b.shows("h1", "Answer a customer")
	b.press(".facts a[href^='/traces/']")
	b.shows(".tree [aria-selected=true]", "Answer a customer")

	b.strikes("s")
	b.key("40\r")
	b.waitsFor("#scores", "default\n40")
	b.choose("#scores select[name=of]", "")
	b.fill("#scores [name=score]", "70")
	b.key("\r")
	b.waitsFor("#facts", "default 70")

	// Spans are found, gone through and looked at closely without a new page.
	b.do("stay", chromedp.Evaluate[chromedp.Void](`document.activeElement.blur(); window.stays = true`))
	b.strikes("/")
	b.key("chat\r")
	b.waitsFor(".find", "1 of 2 matches")
	b.key("n")
	b.waitsFor(".find", "2 of 2 matches")
	b.shows(".picked", "429: Slow down.")
	b.key("z")
	b.waitsFor(".axis", "+2.10 s")
	b.holds("no page was loaded", `window.stays && location.search.includes("zoom=")`)
}

// agentTrace is a run of an agent: a call that asks for a tool, the tool, and a call that failed.
const (
	agentTraceID = "52adf2cf8206e15bbdd5b2da7b55fa89"
	agentTrace   = `{"resourceSpans":[{"scopeSpans":[{"spans":[
		{"traceId":"52adf2cf8206e15bbdd5b2da7b55fa89","spanId":"00000000000000a1","name":"Answer a customer",
			"startTimeUnixNano":"1795318943000000000","endTimeUnixNano":"1795318947400000000",
			"attributes":[{"key":"gen_ai.operation.name","value":{"stringValue":"invoke_agent"}}]},
		{"traceId":"52adf2cf8206e15bbdd5b2da7b55fa89","spanId":"00000000000000a2","parentSpanId":"00000000000000a1",
			"name":"chat gpt-4o-mini","startTimeUnixNano":"1795318943100000000","endTimeUnixNano":"1795318945000000000",
			"attributes":[{"key":"gen_ai.operation.name","value":{"stringValue":"chat"}},
				{"key":"gen_ai.request.model","value":{"stringValue":"gpt-4o-mini"}}]},
		{"traceId":"52adf2cf8206e15bbdd5b2da7b55fa89","spanId":"00000000000000a3","parentSpanId":"00000000000000a1",
			"name":"track_parcel","startTimeUnixNano":"1795318945000000000","endTimeUnixNano":"1795318945300000000",
			"attributes":[{"key":"gen_ai.operation.name","value":{"stringValue":"execute_tool"}}]},
		{"traceId":"52adf2cf8206e15bbdd5b2da7b55fa89","spanId":"00000000000000a4","parentSpanId":"00000000000000a1",
			"name":"chat gpt-4o-mini","startTimeUnixNano":"1795318945300000000","endTimeUnixNano":"1795318947400000000",
			"status":{"code":2,"message":"429: Slow down."},
			"attributes":[{"key":"gen_ai.operation.name","value":{"stringValue":"chat"}},
				{"key":"gen_ai.request.model","value":{"stringValue":"gpt-4o-mini"}}]}]}]}]}`
)

func TestNoPageShutsAnybodyOut(t *testing.T) {
	t.Parallel()
	server, b := founded(t)
	source := axe(t)
	for _, path := range []string{"/", "/requests", "/sessions"} { // with nothing in them
		b.visit(path)
		b.accessible(source, path+", empty")
	}
	b.key("?")
	b.shows("#help", "this help")
	b.accessible(source, "the help")
	// From here on in another zone than UTC, where the page offers to show that.
	b.travels("Europe/Berlin")
	b.menus()
	publishGreet(server)
	harness.StartSidecar(t, t.TempDir(), server.Addr).Track("/rest/track-metadata", harness.AdminKey, map[string]any{
		"request_id": fmt.Sprintf("01a1fcdb-6cb7-7ca5-a7cd-%012d", 1), "metadata": map[string]string{"a": "b"},
	})
	id := server.Track("/rest/track-request", harness.AdminKey, map[string]any{
		"function_name": "openai.ChatCompletion.create",
		"kwargs": map[string]any{"model": "gpt-4o-mini", "messages": []any{
			map[string]any{"role": "user", "content": "Hello. " + strings.Repeat("long ", 2000)},
		}},
		"request_response": map[string]any{"model": "gpt-4o-mini", "choices": []any{map[string]any{
			"index": 0, "message": map[string]any{"role": "assistant", "content": `{"a": 1}`},
		}}},
		"request_start_time": 1, "request_end_time": 2.5,
		"tags": []string{"demo"}, "metadata": map[string]string{"user_id": "ann", "session_id": "chat-17"},
	})
	failed := asked("Hello.", "")
	failed["status"], failed["error_type"], failed["error_message"] = "ERROR", "PROVIDER_RATE_LIMIT", "429"
	failed["request_response"] = map[string]any{"error": map[string]any{"type": "tokens", "message": "Slow down."}}
	failedID := server.Track("/rest/track-request", harness.AdminKey, failed)
	logExperiment(server)
	r := server.Call("POST", "/v1/traces", agentTrace, "Content-Type", "application/json", "X-API-KEY",
		harness.AdminKey)
	if r.Status != 200 {
		t.Fatalf("a trace: %d %s", r.Status, r.Body)
	}
	server.Call("PUT", "/api/public/v2/score-definitions/tone", `{"kind":"category","categories":["polite","rude"]}`,
		"X-API-KEY", harness.AdminKey)
	server.Call("PUT", "/api/public/v2/views/all%20users", `{"address":"/users"}`, "X-API-KEY", harness.AdminKey)
	reset := harness.LinkPath(t, harness.PeopleSay(t, server, "reset-password", "ann@example.com"))
	invite := harness.LinkPath(t, harness.PeopleSay(t, server, "invite", "--role", "viewer"))

	// One crawl: each page is opened once, and looked at in every way. Of all pages axe-core is the judge.
	faultless := func(b *browser, page string) { b.faultless(page) }
	cards, fits, pictured := check((*browser).haveCards), check((*browser).fits), check((*browser).pictured)
	nothingScrolls := func(b *browser, page string) {
		b.holds("nothing scrolls", `document.documentElement.scrollHeight <= innerHeight`)
	}
	isFolded := func(b *browser, page string) {
		b.holds("its contents are folded", `!document.querySelector(".contents").open`)
	}
	checks := map[string][]check{
		"/sidecars":         {byPhone(cards), pictured},
		"/traces":           {byPhone(cards, faultless), pictured},
		"/sessions":         {byPhone(cards, faultless), pictured},
		"/users":            {byPhone(cards, faultless), pictured},
		"/people":           {pictured},
		"/views":            {byPhone(cards, faultless), pictured},
		"/password":         {pictured},
		"/sign-in":          {nothingScrolls, pictured},
		"/sign-up":          {nothingScrolls, pictured},
		"/nowhere":          {pictured},
		"/sessions/chat-17": {byPhone(faultless, fits)},
		"/review":           {byPhone(faultless, fits)},
		"/template/experiment?name=greet+customers": {byPhone(faultless, fits)},
		"/docs":          {pictured, byPhone(fits, isFolded)},
		"/docs/log-curl": {pictured, byPhone(fits, isFolded)},
		"/traces/" + agentTraceID: {
			func(b *browser, _ string) { b.screenshots("trace") },
			byPhone(faultless, fits),
			func(b *browser, _ string) { b.readsTrace() },
		},
	}
	for _, path := range []string{
		"/", "/requests?filter=tag:demo", "/requests?filter=latency:x", "/requests?filter=model:gpt4o",
		"/requests/" + id, "/requests/" + failedID, "/traces/" + agentTraceID, "/traces", "/sessions",
		"/users", "/sessions/chat-17", "/review", "/nowhere", reset, invite,
		"/templates", "/template?name=greet+customers",
		"/template/compare?name=greet+customers&a=1&b=3", "/template/statistics?name=greet+customers",
		"/template/backtest?name=greet+customers&v=3", "/template/experiment?name=greet+customers",
		"/template/edit?name=greet+customers", "/template/edit",
		"/scores", "/scores/tone", "/alerts",
		"/views", "/views?rename=all+users", "/find?q=greet",
		"/sidecars", "/keys", "/people", "/audit", "/password", "/sign-in", "/sign-up", "/docs", "/docs/log-curl",
		"/docs?q=setup+code",
	} {
		b.visit(path)
		b.accessible(source, path)
		for _, look := range checks[path] {
			look(b, path)
		}
	}

	// The pages that answer forms.
	b.visit("/keys")
	b.do("open the form", chromedp.Click(".new > summary"))
	b.do("some rights", chromedp.Click("[name=scope][value='']"), chromedp.Click("[value=log]"))
	b.press(".new-key .primary")
	b.do("rotate one", chromedp.Click(".key-acts summary"))
	b.accessible(source, "a new key")
	b.visit("/people")
	b.press("[action$='/invites'] .primary")
	b.accessible(source, "a new invitation")
	b.visit("/requests?tags=demo")
	for _, box := range []string{".export", ".columns", ".times", ".save-view"} {
		place := func(name string) (place float64) {
			const top = `document.querySelector(%q).getBoundingClientRect()`
			at := fmt.Sprintf(top+".top + 10000 * "+top+".left", "#list", box+" summary")
			place, err := chromedp.Run(b.ctx, chromedp.Evaluate[float64](at))
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			return place
		}
		before := place(box)
		b.do("open", chromedp.Click(box+" summary"))
		if place(box) != before {
			t.Errorf("%s moves when it is opened, or the list does", box)
		}
		b.accessible(source, "what "+box+" opens")
		b.key(kb.Escape)
		b.holds("Escape closes it", fmt.Sprintf(`!document.querySelector("%s[open]")`, box))
	}
	b.visit("/template?name=greet+customers")
	b.fill(".facts .row [name=label]", "prdo")
	b.press(".facts form.row button")
	b.shows("[role=alert]", "Did you mean prod?")
	b.accessible(source, "a question about a label")
	b.visit("/template/edit")
	b.fill("[name=name]", "tickets")
	b.fill("#text-1", "Tickets: {ticket")
	b.press("[value=tool-add]")
	b.fill("[name=tool-name]", "find")
	b.fill("#parameters-0", `{"type": "objekt"}`)
	b.press("[value=save]")
	b.shows("main", "Not saved", "Tool 1")
	b.accessible(source, "a refused text")
	b.leaves("/password")

	// The judge itself can say no.
	b.do("spoil", chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		unlabel := `document.querySelector("label").replaceWith(document.querySelector("label input")); true`
		_, err := chromedp.Run(ctx, chromedp.Evaluate[bool](unlabel))
		return err
	}))
	b.look(source)
	if b.violations() == nil {
		t.Error("axe-core finds nothing against an input without a label")
	}
}
