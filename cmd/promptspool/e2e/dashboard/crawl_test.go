//go:build linux

package dashboard

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"promptspool/api/wire"
	"promptspool/cmd/promptspool/e2e/harness"
	"promptspool/cmd/promptspool/internal/demo"
)

const crawlPassword = "correct horse battery"

// newCrawler returns a browser with nobody signed in.
func newCrawler(t *testing.T, base string) *crawler {
	t.Helper()
	return &crawler{
		base:    mustParse(strings.TrimSuffix(base, "/") + "/"),
		ofAKind: 2,
		refusals: []string{
			"This code is invalid", "Wrong email or password", "is the last owner of the project",
			"in the meantime. Review that change",         // a template saved under a name that is taken
			"changed meanwhile, so it was not moved back", // an Undo that another button overtook
			"There is a project crawled",                  // made by another button
			"crawled must be", "the names of 1 to",        // forms that ask for what the crawler leaves out
		},
		answers: map[string]string{
			"filter": "Oslo tag:web since:7d", "span": "7d", "label": "prod", "tag": "shop", "bucket": "day",
			"score": "80", "name": "crawled", "message": "as the crawler wants it",
			"provider": "openai", "model": "gpt-4o-mini",
			"text": "Say hello to {name}.", "v": "2", "sent": "1", "project": "crawlers", "code": "none",
			"email": "nobody@example.com", "old": crawlPassword, "password": crawlPassword, "tags": "crawled",
		},
	}
}

// signs sends a form that is shown to somebody who is not signed in.
func (c *crawler) signs(t *testing.T, path string, form url.Values) {
	t.Helper()
	res, body, err := c.fetch(pressing{from: c.base, to: c.base.JoinPath(path), form: form})
	if err != nil || res.StatusCode != http.StatusOK || c.cookie == nil {
		t.Fatalf("%s: %v %v %s", path, res, err, excerpt(body))
	}
}

var inviteCode = regexp.MustCompile(`code=([a-z2-7-]+)|id="code">([a-z2-7-]+)<`)

// invites makes an invitation for a role, and has a guest sign up with it.
func (c *crawler) invites(t *testing.T, email string, role wire.Role) *crawler {
	t.Helper()
	p := pressing{
		from: c.base.JoinPath("/people"),
		to:   c.base.JoinPath("/invites"),
		form: url.Values{"role": {string(role)}},
	}
	if !c.renew(p) {
		t.Fatal("/people has no form for an invite")
	}
	_, body, err := c.fetch(p)
	code := inviteCode.FindStringSubmatch(body)
	if err != nil || code == nil {
		t.Fatalf("the invite: %v %s", err, body)
	}

	guest := newCrawler(t, c.base.String())
	guest.signs(t, "/sign-up", url.Values{"code": {code[1] + code[2]}, "email": {email}, "password": {crawlPassword}})
	return guest
}

// logEverything fills a server with everything that its pages can show.
func logEverything(server *harness.Node) {
	server.T.Helper()
	publishGreet(server)
	// Calls of one template, so that there is the same to press at any time of the day.
	calls, err := demo.Calls(time.Now())
	if err != nil {
		server.T.Fatal(err)
	}
	var replies []string
	for _, c := range calls {
		if c.Path != "/sync/events" {
			continue
		}
		for line := range strings.Lines(c.Body) {
			if strings.Contains(line, `"prompt_id":"support/reply"`) {
				replies = append(replies, line)
			}
		}
	}
	newest := demo.Call{Path: "/sync/events", Body: strings.Join(replies[len(replies)-100:], "")}
	calls = slices.DeleteFunc(calls, func(c demo.Call) bool { return c.Path != "/rest/prompt-templates" })
	for _, c := range append(calls, newest) {
		if err := c.Send(server.T.Context(), "http://"+server.Addr, harness.AdminKey); err != nil {
			server.T.Fatal(err)
		}
	}

	// A template that is archived, and a completion in Jinja's language.
	for _, t := range []struct {
		name string
		text map[string]any
	}{
		{"old greeting", map[string]any{"messages": []any{map[string]any{"role": "user", "content": "Hi."}}}},
		{"summary", map[string]any{
			"type": "completion", "template_format": "jinja2",
			"content": []any{map[string]any{"type": "text", "text": "Sum up {{ text }}."}},
		}},
	} {
		r := server.Call("POST", "/rest/prompt-templates", map[string]any{
			"prompt_template": map[string]any{"prompt_name": t.name},
			"prompt_version":  map[string]any{"prompt_template": t.text},
		}, "X-API-KEY", harness.AdminKey)
		if r.Status != http.StatusCreated {
			server.T.Fatalf("publish: %d %s", r.Status, r.Body)
		}
	}
	r := server.Call("DELETE", "/rest/prompt-templates/old%20greeting", nil, "X-API-KEY", harness.AdminKey)
	if r.Status >= 300 {
		server.T.Fatalf("archive: %d %s", r.Status, r.Body)
	}

	// Calls that failed, that call tools, that are in a group, and whose answer has no
	// known shape.
	failed := asked("Do you ship to Oslo?", "")
	failed["request_response"] = map[string]any{
		"error": map[string]any{"type": "rate_limit_error", "message": "Too many tokens."},
	}
	failed["status"], failed["tags"] = "ERROR", []string{"web"}
	failed["error_type"], failed["error_message"] = "PROVIDER_RATE_LIMIT", "429: Too many tokens."
	server.Track("/rest/track-request", harness.AdminKey, failed)

	tools := asked("What is the weather in Oslo?", "")
	tools["request_response"] = json.RawMessage(`{"model": "gpt-4o",
		"choices": [{"index": 0, "finish_reason": "tool_calls", "message": {"role": "assistant", "tool_calls": [
			{"id": "call_1", "type": "function",
				"function": {"name": "weather", "arguments": "{\"city\":\"Oslo\"}"}}]}}],
		"usage": {"prompt_tokens": 1, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 1}}}`)
	tools["tags"], tools["metadata"] = []string{"web", "weather"}, map[string]string{"user_id": "ann"}
	id := server.Track("/rest/track-request", harness.AdminKey, tools)
	server.Track("/rest/track-score", harness.AdminKey, map[string]any{"request_id": id, "score": 1, "name": "csat"})
	group := server.Call("POST", "/rest/create-group", map[string]any{"api_key": harness.AdminKey})
	server.Track("/rest/track-group", harness.AdminKey, map[string]any{"request_id": id, "group_id": group.JSON["id"]})

	odd := asked("Hello.", "")
	odd["function_name"], odd["request_response"] = "own.model", map[string]any{"shape": "of its own"}
	server.Track("/rest/track-request", harness.AdminKey, odd)
	server.Track("/rest/track-metadata", harness.AdminKey, map[string]any{
		"request_id": wire.NewID(), "metadata": map[string]string{"never": "came"},
	})

	// Sidecars, with and without trouble.
	behind := -3.0
	for _, h := range []wire.Heartbeat{
		{Name: "pod-1"},
		{
			Name: "pod-2", BacklogEvents: 1, BacklogBytes: 1, OldestSeconds: 1,
			HeldEvents: 1, DeadLetters: 1, Dropped: 1, LostEvents: 1, ClockAhead: &behind,
		},
	} {
		h.ID, h.Version, h.StartedAt = wire.NewID(), "0.1.0", time.Now()
		if r := server.Call("POST", "/sync/heartbeat", h, "X-API-KEY", harness.AdminKey); r.Status >= 300 {
			server.T.Fatalf("heartbeat: %d %s", r.Status, r.Body)
		}
	}
}

// crawlStarts are addresses that people send each other, beside the pages that links lead
// to.
var crawlStarts = []string{
	"/", "/?filter=tag:web+since:7d&bucket=day", "/requests", "/requests?filter=tag:web+since:7d+Oslo",
	"/requests?filter=customer:Acme+latency:>1ms", "/requests?filter=status:ERROR&col=status&col=model&col=tools",
	"/requests?filter=tag:%22nothing+has+this%22", "/template?name=old+greeting",
	"/template/statistics?name=greet+customers&span=since:7d", "/templates?status=deleted", "/sign-in", "/sign-up",
	"/docs/reverse-proxy",
}

// It is below a base path and behind nginx, where a link may also lead out.
func TestEveryLinkAndButtonOfTheDashboardLeadsSomewhere(t *testing.T) {
	t.Parallel()
	p := startProxied(t)
	owner := newCrawler(t, "http://"+strings.Replace(p.kept, "127.0.0.1", "localhost", 1)+basePath)
	owner.signs(t, "/sign-up", url.Values{
		"code": {harness.SetupCode(p.server)}, "email": {"ann@example.com"}, "password": {crawlPassword},
	})
	editor := owner.invites(t, "eve@example.com", wire.RoleEditor)
	viewer := owner.invites(t, "vic@example.com", wire.RoleViewer)
	early := owner.invites(t, "val@example.com", wire.RoleViewer) // sees the pages with nothing in them
	early.ofAKind, viewer.ofAKind, editor.ofAKind = 1, 1, 1
	early.crawl(basePath + "/")
	for _, fault := range early.faults {
		t.Errorf("as the first viewer: %s", fault)
	}
	logEverything(p.server)
	editor.zone = "Europe/Berlin"

	for _, walk := range []struct {
		role    string
		crawler *crawler
		least   int // pages
	}{{"viewer", viewer, 40}, {"editor", editor, 50}, {"owner", owner, 60}} {
		began := time.Now()
		starts := slices.Clone(crawlStarts)
		for i := range starts {
			starts[i] = basePath + starts[i]
		}
		walk.crawler.crawl(starts...)
		if res, body, err := walk.crawler.fetch(walk.crawler.at("/nowhere")); err == nil {
			walk.crawler.read(res.Request.URL, body) // its links are right, though it is no page
		}
		for _, fault := range walk.crawler.faults {
			t.Errorf("as %s: %s", walk.role, fault)
		}
		if len(walk.crawler.visited) < walk.least {
			t.Errorf("as %s only %d pages were seen", walk.role, len(walk.crawler.visited))
		}
		t.Logf("as %s: %d pages in %v", walk.role, len(walk.crawler.visited), time.Since(began))
	}
}

// TestTheCrawlerFindsWhatIsWrong is the control: pages below a base path, with one fault each.
func TestTheCrawlerFindsWhatIsWrong(t *testing.T) {
	t.Parallel()
	page := func(main string) string { return "<!doctype html><html><body><main>" + main + "</main></body></html>" }
	pages := map[string]string{
		"/base/": page(`<a href="/base/requests?filter=tag:web+since:7d">The list</a> <a href="/base/gone">Broken</a>
			<a href="/base/data">As data</a> <a href="/base/nil">An empty place</a>
			<form method="post" action="/base/refused">` +
			`<input type="hidden" name="csrf" value="x"><button>Do it</button></form>`),
		"/base/requests": page(`<p class="count">3 requests, newest first</p>
			<a href="/base/requests/export" download>Export</a>
			<a href="/base/requests/1?filter=tag:web+since:7d">Row</a>`),
		"/base/requests/1": page(`<a href="/base/requests?filter=tag:web+since:7d">Back</a>
			<a href="https://elsewhere.example/">Elsewhere</a> <a href="/out">Out</a> <img src="/icon.svg">
			<form action="/basement"><button>Go</button></form>`),
		"/out": page(""), "/basement": page(""),
		"/base/nil": page(`<p>Owned by &lt;nil&gt;, who has 1 events and {{.Name}}.</p>
			<form action="/base/nil"></form>`),
	}
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, known := pages[r.URL.Path]
		switch {
		case r.URL.Path == "/base/requests/export":
			w.Header().Set("Content-Type", "application/x-ndjson")
			fmt.Fprintf(w, `{"request_id":%q}`, wire.NewID())
		case r.URL.Path == "/base/data":
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{}`)
		case r.Method == http.MethodPost:
			http.Error(w, "Only owners can do this.", http.StatusForbidden)
		case !known:
			http.NotFound(w, r)
		default:
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			fmt.Fprint(w, text)
		}
	}))
	t.Cleanup(site.Close)

	c := newCrawler(t, site.URL+"/base")
	c.crawl("/base/")
	want := []string{
		`the link "Broken" on /base/ leads to /base/gone: 404`,
		`the link "As data" on /base/ leads to /base/data, which shows application/json`,
		`the button "Do it" on /base/ leads to /base/refused: 403`,
		`the link "Export" on /base/requests?filter=tag:web+since:7d loses a span, tag:web`,
		`which shows 3 requests, saves 1`,
		`leads elsewhere, to https://elsewhere.example/`,
		`/base/nil holds "&lt;nil&gt;"`,
		`/base/nil says "1 events"`,
		`/base/nil says "{{"`,
		`has a form to /base/nil without a button`,
		`leads out of /base/, to /out`,
		`leads out of /base/, to /basement`,
		`leads out of /base/, to /icon.svg`,
		`the file on /base/requests/1?filter=tag:web+since:7d is answered 404`,
	}
	for _, text := range want {
		if !slices.ContainsFunc(c.faults, func(fault string) bool { return strings.Contains(fault, text) }) {
			t.Errorf("the crawler does not find %s", text)
		}
	}
	if len(c.faults) != len(want) {
		t.Errorf("the crawler finds %d faults, want %d:\n%s", len(c.faults), len(want), strings.Join(c.faults, "\n"))
	}
}
