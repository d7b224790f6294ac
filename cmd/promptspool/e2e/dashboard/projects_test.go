//go:build linux

package dashboard

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"promptspool/cmd/promptspool/e2e/harness"
)

// tab opens another tab of the same browser, with the same cookies.
func (b *browser) tab() *browser {
	b.t.Helper()
	ctx, closeTab := chromedp.NewContext(b.ctx)
	b.t.Cleanup(closeTab)
	other := &browser{t: b.t, base: b.base, ctx: ctx}
	if err := chromedp.Do(ctx); err != nil {
		b.t.Fatalf("a tab of chromium: %v", err)
	}
	other.do("set up", prefers("light"), chromedp.EmulateViewport(1440, 900))

	return other
}

// keyOf makes a key of another project than the default one.
func keyOf(t *testing.T, server *harness.Node, project string) string {
	t.Helper()
	var made struct{ Key string }
	out, errs, code := harness.RunWith(t, nil, "keys", "create", "--data", server.Data,
		"--project", project, "--scope", "full", "-o", "json")
	if err := json.Unmarshal([]byte(out), &made); err != nil || code != 0 {
		t.Fatalf("keys create: %d %s %v", code, errs, err)
	}

	return made.Key
}

func TestOnePersonWorksInSeveralProjects(t *testing.T) {
	server, b := founded(t)
	source := axe(t)
	publishGreet(server)
	shop := keyOf(t, server, "shop")
	id := server.Track("/rest/track-request", shop, asked("Where is my parcel?", "On its way."))
	server.Track("/rest/track-score", shop, map[string]any{"request_id": id, "score": 80, "name": "csat"})
	b.visit("/")
	if b.text(".projects") != "" {
		t.Error("one project alone is offered to be left")
	}

	// Ann, who is signed in, joins with a click.
	b.visit(harness.LinkPath(t, harness.PeopleSay(t, server, "invite", "--project", "shop", "--role", "editor")))
	b.shows("main", "shop as an editor", "To join as someone else, sign out")
	b.accessible(source, "joining a project")
	b.screenshots("join-project")
	b.press("main .primary")
	b.shows("main", "You have joined this project.")
	b.shows(".projects summary", "shop")
	b.holds("she is no owner here", `document.querySelector(".side nav [href='/keys']") === null`)

	// The menu opens the other one, on the same page.
	b.visit("/templates")
	b.shows("main", "No templates yet")
	b.do("open the menu", chromedp.Click(".projects summary"))
	b.shows(".projects form", "default\nowner", "shop\neditor", "All projects")
	b.accessible(source, "the menu of projects")
	b.screenshots("switcher")
	b.key(kb.Escape)
	b.holds("Escape closes it", `!document.querySelector(".projects[open]")`)
	b.do("open the menu", chromedp.Click(".projects summary"))
	b.press(".projects [value=default]")
	b.shows(".projects summary", "default")
	b.shows("main", "greet customers")

	// A tab in which the project was changed by another one changes nothing.
	b.visit("/template/edit?name=greet+customers")
	b.fill("#text-0", "Greet in verse.")
	second := b.tab()
	second.visit("/projects")
	second.shows("main", "default", "shop", "csat 80.0")
	second.accessible(source, "/projects")
	second.screenshots("projects")
	second.do("open the form", chromedp.Click("main .new summary"))
	second.fill("main [name=name]", "shop")
	second.press("main .card .primary")
	second.shows("[role=alert]", "There is a project shop already.")
	second.accessible(source, "a project that there is")
	second.screenshots("new-project")
	second.press(`main a[href*="project=shop"]`)
	second.shows(".projects summary", "shop")
	second.holds("the parameter is gone", `!location.search.includes("project") && location.search.includes("since")`)
	b.press("[value=save]")
	b.shows("main", "This form is of the project default, but meanwhile shop was opened")
	b.accessible(source, "a form of another project")
	b.screenshots("other-project")

	second.visit("/?project=default")
	b.do("go back", chromedp.NavigateBack())
	b.waitsFor(".projects summary", "default")
	if text := b.value("#text-0"); text != "Greet in verse." {
		t.Errorf("after going back, the editor has %q", text)
	}
	b.press("[value=save]")
	b.shows("main", "Saved.", "Greet in verse.")

	// Without scripts, and by phone.
	b.do("no scripts", scripts(false), chromedp.EmulateViewport(390, 900))
	b.visit("/requests")
	b.do("unfold", chromedp.Click(".side .menu > summary"))
	b.do("open the menu", chromedp.Click(".projects summary"))
	b.screenshots("switcher-by-phone")
	b.do("look by phone", chromedp.EmulateViewport(390, 900))
	b.press(".projects [value=shop]")
	b.shows("main", "Where is my parcel?")
	b.holds("nothing is wider than the phone", `document.documentElement.scrollWidth <= 390`)
	b.do("as before", scripts(true), chromedp.EmulateViewport(1440, 900))

	// Beside the server: out of one project, and of all.
	list := harness.PeopleSay(t, server, "list")
	if !strings.Contains(list, "ann@example.com  default,shop  owner,editor") {
		t.Errorf("people list does not print ann once, with both projects: %s", list)
	}
	got := harness.Say(t, "people", "disable", "ann@example.com", "--data", server.Data)
	if got.Code != 1 || !strings.Contains(got.Err, "ann@example.com is the last owner of the project default") {
		t.Errorf("the last owner of one project is disabled in all: %+v", got)
	}
}

// An owner makes a target, copies its secret, tries it, and sees what waits while it refuses.
func TestATargetIsSetUpAndLookedAt(t *testing.T) {
	t.Parallel()
	var refuses atomic.Bool
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if refuses.Load() {
			http.Error(w, "try later", http.StatusServiceUnavailable)
		}
	}))
	defer hook.Close()
	server := harness.Launch(t, t.TempDir(), "127.0.0.1:0",
		"server", "--name", "central", "--webhook-allow", "127.0.0.0/8")
	b := openSignedIn(t, server, signUp(t, server))
	source := axe(t)

	b.visit("/targets")
	b.shows("main", "No targets yet", "New target")
	b.screenshots("targets-none")
	b.fill("[name=name]", "on-call")
	b.fill("[name=url]", hook.URL+"/hook")
	b.press(".new-key .primary")
	b.shows(".once", "whsec_", "shown only once")
	b.accessible(source, "a new target")
	b.screenshots("target-made")
	b.press("[action$='/test'] .primary")
	b.shows("body", "The target took the test.")

	refuses.Store(true)
	b.press("[action$='/test'] .primary")
	b.shows(".fault", "it answered 503: try later")
	publishGreet(server)
	b.visit("/targets/on-call")
	const told = `["Next attempt", "greet customers"].every((text) => document.body.innerText.includes(text))`
	if err := b.poll(told + ` || location.reload()`); err != nil {
		t.Fatal(err)
	}
	b.shows("main", "failing", "greet customers", "Discard")
	b.accessible(source, "a target that fails")
	b.faultless("a target that fails")
	b.screenshots("target")
	b.do("on a phone", chromedp.EmulateViewport(390, 900))
	b.fits("a target that fails")
	b.haveCards("a target that fails")
	b.do("on a desk", chromedp.EmulateViewport(1440, 900))
	b.visit("/targets")
	b.accessible(source, "targets")
	b.screenshots("targets")

	// A rule for this target, over a saved view, is tried and saved.
	server.Call("PUT", "/api/public/v2/views/failures", `{"address":"/requests?filter=status:error"}`,
		"X-API-KEY", harness.AdminKey)
	b.visit("/alerts")
	b.shows("main", "No alerts yet", "New alert")
	b.do("open the form", chromedp.Click(".new summary"))
	b.fill("[name=name]", "failures-per-customer")
	b.fill("[name=measure]", "requests")
	b.fill("[name=threshold]", "10")
	b.fill("[name=by]", "customer")
	b.do("choose", chromedp.SetValue("[name=view]", "failures"), chromedp.Click("[name=targets][value=on-call]"))
	b.screenshots("alert-new")
	b.press("[name=try]")
	b.shows("[role=status]", "It would have fired 0 times")
	b.holds("the form keeps its target", `document.querySelector("[name=targets][value=on-call]").checked`)
	b.accessible(source, "a rule that is tried")
	b.screenshots("alert-tried")
	b.press(".new-key .primary")
	b.shows("main", "The alert is saved.", "requests above 10 in 5 min, by customer", "failures", "ok")
	b.accessible(source, "alerts")
	b.screenshots("alerts")
	b.do("on a phone", chromedp.EmulateViewport(390, 900))
	b.fits("alerts")
	b.haveCards("alerts")
}
