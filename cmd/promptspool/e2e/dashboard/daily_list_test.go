//go:build linux

package dashboard

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"promptspool/cmd/promptspool/e2e/harness"
)

// person counts what somebody does in a browser to get somewhere: clicks, and lines that are typed and
// sent with Enter.
type person struct {
	*browser
	steps int
}

// opens leads a person to a page by the menu, from which their steps are counted.
func (b *browser) opens(page string) *person {
	b.t.Helper()
	b.visit("/")
	b.press(fmt.Sprintf(`.side nav a[href="/%s"]`, page))

	return &person{browser: b}
}

// clicks presses what leads to another page.
func (p *person) clicks(selector string) {
	p.t.Helper()
	p.steps++
	p.press(selector)
}

// unfolds clicks on what opens in the page.
func (p *person) unfolds(selector string) {
	p.t.Helper()
	p.steps++
	p.do("unfold "+selector, chromedp.Click(selector))
}

// filters types a line, which is a step, and sends it, which is another one.
func (p *person) filters(line string) {
	p.t.Helper()
	p.steps++
	p.fill("#line", line)
	p.steps++
	p.keyTo("\r")
}

// tookSteps fails the test if getting here took more steps.
func (p *person) tookSteps(most int) {
	p.t.Helper()
	p.t.Logf("%d steps", p.steps)
	if p.steps > most {
		p.t.Errorf("that took %d steps, want at most %d", p.steps, most)
	}
}

// rows returns the texts of the list's rows.
func (b *browser) rows() []string {
	b.t.Helper()
	const texts = `[...document.querySelectorAll("#list tr[data-href]")]
		.map((row) => row.innerText.replace(/\s+/g, " "))`
	rows, err := chromedp.Run(b.ctx, chromedp.Evaluate[[]string](texts))
	if err != nil {
		b.t.Fatal(err)
	}

	return rows
}

func TestASlowestCallIsOneClickAway(t *testing.T) {
	_, b := seeded(t)
	p := b.opens("requests")
	p.clicks("th:has(+ th + th) a[href*=latency_ms]")
	p.tookSteps(1)

	p.shows("#count", "slowest first")
	p.shows("tbody tr:first-child", "support/handbook", "2 min 05 s")
	p.holds("the heading says so", `document.querySelector("[aria-sort]").innerText.startsWith("Latency")`)
	p.holds("the tab says so", `document.title.startsWith("slowest first")`)
	p.screenshots("list-slowest")

	// The order stays, on the next page and under a filter.
	first := p.rows()[0]
	p.keyTo("n")
	if rows := p.rows(); len(rows) == 0 || rows[0] == first {
		t.Errorf("the next page begins with %q", rows)
	}
	p.filters("model:gpt*")
	p.shows("#count", "slowest first")
	p.press("[aria-sort] a")
	p.shows("#count", "fastest first")

	// A row opens wherever it is clicked, and the record leads back to the same list.
	p.press("tbody tr:nth-child(2 of [data-href]) .number")
	p.press(".trail a")
	p.shows("#count", "fastest first")
	p.filteredBy("model:gpt*")
}

// A page is saved as a view, opened again from the menu, changed, and saved once more in its place.
func TestAViewIsSavedAndReplaced(t *testing.T) {
	_, b := seeded(t)
	p := b.opens("requests")
	p.filters("status:error")
	p.unfolds(".save-view summary")
	p.fill(".save-view [name=name]", "what failed")
	p.clicks(".save-view .primary")
	p.tookSteps(4)

	b.visit("/")
	b.press(`.side nav a[href*="named=what+failed"]`)
	b.filteredBy("status:error")
	b.press("thead a[href*=latency_ms]")
	b.holds("its name is there", `document.querySelector(".save-view [name=name]").value === "what failed"`)
	b.screenshots("view")
	b.do("save", chromedp.Click(".save-view summary"))
	b.press("[formaction$=project-views]")
	b.shows(".notice", "saved")

	b.visit("/views")
	b.shows("tbody tr:nth-child(1)", "what failed", "the project")
	b.shows("tbody tr:nth-child(2)", "what failed", "me")
	b.press("tbody tr:nth-child(1) td:nth-child(2)")
	b.shows("#count", "slowest first")
}

// The palette leads to anything by the keyboard alone, from wherever one types.
func TestThePaletteLeadsToAnything(t *testing.T) {
	_, b := seeded(t)
	source := axe(t)
	palette := func() {
		t.Helper()
		b.do("Ctrl-K", chromedp.Func(func(ctx context.Context, tab *chromedp.Target) error {
			_, err := cdp.Call(ctx, tab, input.DispatchKeyEvent, input.DispatchKeyEventParams{
				Type: input.DispatchKeyEventTypeKeyDown, Key: "k", Modifiers: 2,
			})
			return err
		}))
		b.holds("it is open, with all it has", `document.querySelector("#palette[open]") !== null &&
			document.activeElement.matches("#palette input") && document.querySelectorAll("#found li").length > 12`)
	}
	b.visit("/requests")
	b.do("type", chromedp.Focus("#line"))
	palette()
	b.accessible(source, "the palette")
	b.key(kb.Escape)
	b.holds("Escape closes it", `document.querySelector("#palette[open]") === null`)

	palette()
	b.fill("#palette input", "support/tr")
	b.shows("#found [aria-selected=true]", "support/triage")
	b.keyTo("\r")
	b.shows("h1", "support/triage")

	id, err := chromedp.Run(b.ctx, chromedp.Evaluate[string](
		`fetch("/requests").then((page) => page.text()).then((text) => text.match(/requests\/([0-9a-f-]{36})/)[1])`,
		chromedp.EvalAwaitPromise))
	if err != nil {
		t.Fatal(err)
	}
	palette()
	b.fill("#palette input", id)
	b.keyTo("\r")
	b.holds("it is the request", fmt.Sprintf(`location.pathname === "/requests/%s"`, id))

	// The same without a script.
	b.do("no scripts", scripts(false))
	b.press(".side a.palette")
	b.do("type", chromedp.SetValue("main [name=q]", "support/tr"))
	b.press("main .finder button")
	b.press(".found a")
	b.do("scripts", scripts(true))
	b.holds("it is the page", `location.pathname === "/template"`)
}

func TestAConversationIsReadInItsOrder(t *testing.T) {
	_, b := seeded(t)
	p := b.opens("requests")
	p.filters("user:" + demoTalkUser)
	p.clicks("th:first-child a")
	p.tookSteps(3)
	p.shows("#count", "oldest first")
	p.screenshots("list-conversation")

	// Each is followed by the next one, also request by request.
	rows := p.rows()
	p.press("tr[data-href] .c-call")
	for _, row := range rows[1:3] {
		p.keyTo("j")
		p.shows("main", strings.Fields(row)[2]) // when it started
	}

	// From any of them, one step leads to the whole conversation, where each turn has only what it added.
	p.steps = 0
	p.clicks(`[data-key="t"]`)
	p.tookSteps(1)
	p.shows(".strip", demoTalkUser, fmt.Sprint(len(rows), " turns"))
	p.screenshots("conversation")
	chat, from := p.text(".chat"), 0
	for _, text := range []string{
		"Hi! Where is my order", "track_parcel", "Order A-", "Tomorrow I am not at home", "Yes. I have noted",
		"Do I have to sign", "No signature", "is damaged?", "Thanks, that was quick 👍", "You are welcome",
		"solved in 5",
	} {
		at := strings.Index(chat[from:], text)
		if at < 0 {
			t.Fatalf("%q is not in its place:\n%s", text, chat)
		}
		from += at
	}
	said, _, _ := strings.Cut(chat, "Summarize the conversation")
	if n := strings.Count(said, "Hi! Where is my order"); n != 1 {
		t.Errorf("the first question is there %d times:\n%s", n, chat)
	}

	// To a request and back, to the sessions beside it, and to the question before it is deleted.
	p.press("#turn-2 aside a")
	p.shows("h1", "support/agent")
	p.keyTo("t")
	session := p.text("h1")
	p.press("#delete")
	p.shows("#erase", fmt.Sprint(len(rows), " requests"), session)
	p.press("#erase a.button")
	p.shows("h1", session)

	// The conversation is a session: the filter goes along to the list of sessions, which is sorted and saved.
	p.visit("/requests?filter=user:" + demoTalkUser)
	p.press(".tabs a[href*='/sessions']")
	p.filteredBy("user:" + demoTalkUser)
	p.filters("user:" + demoTalkUser + " turns:>4")
	p.press("th a[href*='sort=turns']")
	p.shows(".count", "1 session, most turns first")
	p.holds("it is saved", `fetch(document.querySelector(".export a[href*=csv]").href).then((answer) => answer.text())
		.then((text) => text.split("\n")[1].split(",")[0] === document.querySelector("td.name").innerText)`)
	p.press("td[data-label=cost]")
	p.holds("the row opens", `location.pathname.startsWith("/sessions/")`)

	// Those with errors are walked by keys, and lead back to their rows.
	for _, list := range []string{"/sessions", "/traces"} {
		p.visit(list + "?filter=errors:>0")
		// A busy server shows a page without some texts: it is asked again.
		p.holds("rows say what they are about", `fetch(location).then((answer) => answer.text()).then((text) =>
			[...new DOMParser().parseFromString(text, "text/html").querySelectorAll(".c-call")]
				.some((cell) => [...cell.children].every((part) => part.textContent)))`)
		p.press("tbody tr:nth-child(2) .c-call")
		p.shows("#place", "2 of ")
		p.keyTo("j")
		p.shows("#place", "3 of ")
		p.keyTo("u")
		p.filteredBy("errors:>0")
		p.holds("its row has the focus",
			`document.querySelector("tbody tr:nth-child(3) .name a") === document.activeElement`)
	}
}

func TestASpikeLeadsToItsCalls(t *testing.T) {
	_, b := seeded(t)
	b.visit("/?group=status")
	p := &person{browser: b}
	p.unfolds(".times summary")
	p.clicks(".times a[href*='7d']")

	// The part of a bar that says "ERROR 60" or more.
	const mark = `(() => {
		const failed = (part) => Number(/UTC: ERROR (\d+)$/.exec(part.querySelector("title").textContent)?.[1]);
		const spike = [...document.querySelectorAll(".chart a")].find((part) => failed(part) >= %d);
		spike.id = "spike";
		return failed(spike);
	})()`
	failed, err := chromedp.Run(b.ctx, chromedp.Evaluate[int](fmt.Sprintf(mark, demoOutageFailed)))
	if err != nil {
		t.Fatalf("no part of a bar has the calls that failed: %v", err)
	}
	p.steps = 0
	p.clicks("#spike")
	p.tookSteps(1)
	p.shows("#count", fmt.Sprint(failed, " requests"))
	p.shows("#list", "529 - Overloaded")
	p.shows(".chips", "status", "since:", "before:")
	p.screenshots("list-spike")

	// So does the tile.
	b.visit("/?filter=")
	b.press(".tiles .note a")
	b.shows("#count", fmt.Sprint(demoFailed, " requests"))
}

func TestWhatCostsMostIsTwoClicksAway(t *testing.T) {
	_, b := seeded(t)
	b.visit("/?filter=since:30d")
	p := &person{browser: b}
	p.clicks(".tiles a[href*='metric=cost']")
	b.chooses("[name=group]", "metadata.customer")
	b.shows(".cockpit .legend", "Acme", "others")
	b.waitsFor(".groups tbody", "Sahara")
	b.shows(".groups tbody tr", "Acme")
	b.do("the table of the chart", chromedp.Click(".cockpit figure summary"))
	b.shows(".cockpit figure tbody", "$0.0")
	b.screenshots("overview-cost-by-customer")

	// What is chosen stays with another time and another filter, and each group leads to its calls.
	p.unfolds(".times summary")
	b.press(".times a[href*='7d']")
	b.holds("the choice is kept", `location.search.includes("metric=cost") && location.search.includes("customer")`)
	b.shows(".head", "Compared with the period before")
	b.press(".groups td.name a")
	b.filteredBy("since:7d customer:Acme")
}

func TestTheListIsUsedByTheKeyboardAlone(t *testing.T) {
	_, b := seeded(t)
	p := b.opens("requests")
	p.key("/")
	p.holds("/ leads to the line", `document.activeElement.id === "line"`)
	p.key("j?")
	p.holds("a field takes letters as letters",
		`document.activeElement.value.endsWith("j?") && !document.querySelector("#help").open`)
	p.fill("#line", demoPhrase)
	p.keyTo("\r")
	p.strikes("/")
	p.key("since:30d")
	p.holds("/ goes on behind the line",
		fmt.Sprintf(`document.querySelector("#line").value === "%s since:30d"`, demoPhrase))
	p.do("leave the field", chromedp.Evaluate[chromedp.Void](`document.activeElement.blur()`))
	p.key("?")
	p.shows("#help", "open the row", "next page", "search")
	if keys := p.text("#help"); strings.Contains(keys, "score it") {
		t.Errorf("keys of a request are shown above a list:\n%s", keys)
	}
	p.key("s" + kb.Escape)
	p.holds("Escape closes it", `!document.querySelector("#help").open`)

	p.filters(fmt.Sprintf("%q", demoPhrase))
	p.shows("#count", fmt.Sprint(demoPhraseAnswers, " requests"))
	row := func(n int) string {
		const focused = `[...document.querySelectorAll("tr[data-href]")].findIndex(` +
			`(row) => row.contains(document.activeElement)) === %d`

		return fmt.Sprintf(focused, n)
	}
	for i, step := range []struct {
		keys string
		row  int
	}{{"j", 0}, {"j", 1}, {"j", 2}, {"j", 2}, {"k", 1}, {"k", 0}, {"k", 0}, {"j", 1}} {
		p.key(step.keys)
		p.holds(fmt.Sprintf("step %d, %s, moves", i, step.keys), row(step.row))
	}
	record, err := chromedp.Run(b.ctx, chromedp.Evaluate[string](`document.activeElement.pathname`))
	if err != nil {
		t.Fatal(err)
	}
	p.keyTo(kb.Enter)
	p.isAt(record)

	// The way back leads to the row.
	p.keyTo("u")
	p.holds("u leads back to the row", row(1))
	p.keyTo(kb.Enter)
	p.isAt(record)
	p.do("go back", chromedp.NavigateBack())
	p.holds("so does the browser", row(1))

	// A half word becomes the value that it begins, of those that most requests have, and what follows
	// is a part of that value.
	p = b.opens("requests")
	p.do("type", chromedp.SendKeys("#line", "customer:"))
	p.holds("the most frequent come first", `(() => {
		const counts = [...document.querySelectorAll("#offers span")]
			.map((n) => Number(n.textContent.replace(/\D/g, "")));
		return counts.length === 8 && counts.every((n, i) => n > 0 && (i === 0 || counts[i - 1] >= n));
	})()`)
	p.fill("#line", "status:error -model:(gpt-5 or cl")
	p.holds("one of several is offered", `document.querySelector("#offers li")?.dataset.text.startsWith("claude")`)
	p.do("press Tab", chromedp.SendKeys("#line", kb.Tab))
	p.holds("Tab takes it at its place",
		`document.querySelector("#line").value.startsWith("status:error -model:(gpt-5 or claude-")`)
	p.fill("#line", "")
	p.do("type", chromedp.SendKeys("#line", "template:tri"))
	p.holds("a part of the name is enough",
		`document.querySelector("#offers [aria-selected=true]")?.innerText.startsWith("support/triage")`)
	p.key("\r")
	p.holds("Enter takes it", `document.querySelector("#line").value === "template:support/triage "`)
	p.key("@")
	p.holds("versions and labels follow", `(() => {
		const offers = [...document.querySelectorAll("#offers li")].map((o) => o.dataset.text);
		return offers[0] === "support/triage@5" && offers.includes("support/triage@prod");
	})()`)
	p.key("3")
	p.holds("those that begin so", `document.querySelectorAll("#offers li").length === 1 &&
		/@3\s+\d+/.test(document.querySelector("#offers").innerText)`)
	p.keyTo("\r")
	p.filteredBy("template:support/triage@3")
	p.shows("tr[data-href]", "support/triage v3")

	// Headings are reached by Tab, and Enter sorts.
	p = b.opens("requests")
	p.do("reach the heading", chromedp.Focus("th a[href*=cost]"))
	p.keyTo(kb.Enter)
	p.shows("#count", "most expensive first")
}

func TestAListFitsAPhoneAndAViewIsRemembered(t *testing.T) {
	_, b := seeded(t)
	source := axe(t)
	p := b.opens("requests")
	p.unfolds(".columns summary")
	for _, choice := range []string{"cost", "model", "compact"} {
		p.clicks(".columns [value=" + choice + "]") // applies at once, and the choices stay open
	}
	p.shows("thead", "Model")
	p.accessible(source, "a compact list")

	// A click on the menu forgets the address, and not the view.
	p = b.opens("requests")
	p.holds("the view is remembered", `document.querySelector(".list.compact thead").innerText.includes("Model") &&
		!document.querySelector("thead").innerText.includes("Cost") && location.search === ""`)

	b.do("look by phone", chromedp.EmulateViewport(390, 900))
	for _, page := range []string{"/requests", "/requests?filter=status:error", "/requests?filter=customer:Sahara"} {
		b.visit(page)
		b.holds(page+" fits", `document.documentElement.scrollWidth <= 390 &&
			document.querySelector("#list").scrollWidth <= document.querySelector("#list").clientWidth`)
		b.holds("a card shows the texts", `document.querySelector(".c-call").getBoundingClientRect().width > 300`)
	}
	for _, page := range []string{
		"/?filter=since:7d", "/templates", "/template/statistics?name=support/reply", "/keys", "/people", "/projects",
		"/audit", "/users",
	} {
		b.cards(page)
	}
	b.look(source)
	for _, v := range b.violations("target-size") {
		t.Errorf("too small for a finger: %+v", v.Nodes)
	}
	b.do("spoil", chromedp.Evaluate[chromedp.Void](`document.querySelector("thead").style.fontSize = "5px"`))
	if b.violations("target-size") == nil {
		t.Error("axe-core finds nothing against letters of 5 pixels to press")
	}

	// A record, the question before it is deleted, and the form of an export.
	b.visit("/requests")
	for _, step := range []struct{ click, has string }{
		{"tr[data-href] a", ".actions"},
		{".actions a[href*='/requests/delete']", "#erase"},
		{".trail a", ".export"},
	} {
		b.press(step.click)
		b.stays(step.has)
		b.do("unfold", chromedp.Evaluate[chromedp.Void](
			`document.querySelectorAll(".export, .actions .more").forEach((box) => { box.open = true; })`))
		b.holds("the page fits", `document.documentElement.scrollWidth <= 390`)
		b.look(source)
		for _, v := range b.violations("target-size") {
			t.Errorf("too small for a finger at %s: %+v", step.has, v.Nodes)
		}
	}
	b.do("jump", chromedp.Evaluate[chromedp.Void](`document.querySelector("main").style.marginTop = "200px"`))
	harness.Reached(t, 10*time.Second, func() bool { return b.shift() > 0 },
		"a page that jumps by 200 pixels is not noticed")
	b.do("as before", chromedp.EmulateViewport(1440, 900))
}

// cards opens a page on a phone, whose rows are cards: nothing is cut off, and numbers say what they are.
func (b *browser) cards(page string) {
	b.t.Helper()
	b.visit(page)
	b.haveCards(page)
}

// haveCards is cards for the page that is open.
func (b *browser) haveCards(page string) {
	b.t.Helper()
	b.holds(page+" has cards", `(() => {
		const cells = [...document.querySelectorAll(".cards tbody td")].filter((cell) => cell.checkVisibility());
		return document.documentElement.scrollWidth <= 390 && cells.length > 0 && cells.every((cell) => {
			const label = getComputedStyle(cell, "::before").content;
			return cell.getBoundingClientRect().right <= 380 && (cell.matches(":not(.number)") || label.length > 2);
		});
	})()`)
}

func TestTemplatesOfABotAreSeenWhole(t *testing.T) {
	_, b := seeded(t)
	b.do("a small window", chromedp.EmulateViewport(1280, 800))
	b.visit("/template/statistics?name=support/reply")
	b.holds("nothing is cut off, and no row is high", `(() => {
		const box = document.querySelector(".scroll");
		return box.scrollWidth <= box.clientWidth && document.querySelectorAll(".versions tbody tr").length === 8 &&
			[...document.querySelectorAll(".versions tbody tr")].every((row) => row.offsetHeight < 65);
	})()`)
	b.shows(".versions", "Close with the agent's first name.", " scores")
	b.screenshots("statistics-seeded")

	// A heading sorts without a script, and a choice applies at once with one. The order stays.
	rates := `[...document.querySelectorAll(".versions td:last-child")].map((cell) => parseFloat(cell.innerText))`
	b.do("no scripts", scripts(false))
	b.press(".versions th:last-child a")
	b.holds("most errors come first", `document.querySelector("[aria-sort=descending]").innerText === "Errors" &&
		`+rates+`.every((rate, i, all) => i === 0 || rate <= all[i - 1])`)
	b.press(".versions th:last-child a")
	b.holds("fewest errors come first", `document.querySelector("[aria-sort=ascending]").innerText === "Errors" &&
		`+rates+`.every((rate, i, all) => i === 0 || rate >= all[i - 1])`)
	b.do("scripts", scripts(true))
	b.visit("/template/statistics?name=support/reply&by=cost")
	b.do("choose", chromedp.Evaluate[chromedp.Void](`const span = document.querySelector("[name=span]");
		span.value = "since:7d"; span.dispatchEvent(new Event("change", { bubbles: true }))`))
	if err := b.poll(`location.search.includes("span=since%3A7d")`); err != nil {
		t.Errorf("the time does not apply at once: %v", err)
	}
	b.waitsFor("[aria-sort=descending]", "Total cost")
	for _, page := range []string{"/?filter=since:30d&by=p95", "/templates?by=calls", "/audit", "/keys", "/people"} {
		b.visit(page)
		b.holds(page+" has all columns in sight", `[...document.querySelectorAll("main > .scroll, #counted .scroll")]
			.filter((box) => box.checkVisibility()).every((box) => box.scrollWidth <= box.clientWidth)`)
	}

	// The editor shows what apps get, and a test what a version would have sent in a conversation.
	b.visit("/template/edit?name=support/agent")
	b.shows("#preview", "You are the support agent of ")
	b.holds("with its variables", `document.querySelectorAll("#preview mark").length > 0 &&
		!document.querySelector("#preview .fault")`)
	b.screenshots("edit-seeded")
	b.visit("/template/backtest?name=support/reply")
	b.shows("main", "of the conversation that the app added are not compared.")
	b.holds("no turn of it is missing", `![...document.querySelectorAll(".diff td:nth-child(2)")]
		.some((cell) => cell.innerText.startsWith("# assistant"))`)
	b.screenshots("backtest-seeded")

	b.do("look by phone", chromedp.EmulateViewport(390, 900))
	b.visit("/templates")
	b.holds("its fields can be used", `document.documentElement.scrollWidth <= 390 &&
		[...document.querySelectorAll(".several :is(input, select)")].every((field) => {
			const box = field.getBoundingClientRect();
			return box.width >= 70 && box.right <= 390;
		})`)
	b.holds("names break at their signs", `document.querySelector(".name wbr") !== null`)
	b.do("as before", chromedp.EmulateViewport(1440, 900))
}
