//go:build linux

package dashboard

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"reflect"
	"strings"
	"testing"

	permission "github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"promptspool/cmd/promptspool/e2e/harness"
	"promptspool/metrics/partstest"
)

// list returns the ids of the requests that a filter finds, newest first.
func list(n *harness.Node, filter string) (ids []string) {
	n.T.Helper()
	search := map[string]any{"filter": filter, "per_page": 100}
	r := n.Call("POST", "/api/public/v2/requests/search", search, "X-API-KEY", harness.AdminKey)
	var page struct {
		Items []struct {
			RequestID string `json:"request_id"`
		}
	}
	if err := json.Unmarshal(r.Body, &page); err != nil || len(page.Items) == 0 {
		n.T.Fatalf("%s finds nothing: %d %s", filter, r.Status, r.Body)
	}
	for _, item := range page.Items {
		ids = append(ids, item.RequestID)
	}

	return ids
}

// keyTo presses a key that leads to another page, and waits for that page.
func (b *browser) keyTo(key string) {
	b.t.Helper()
	b.does("key "+key, chromedp.KeyEvent(key))
}

// allowClipboard lets pages write to the clipboard and read it, as they may in a window in front.
func (b *browser) allowClipboard() {
	b.t.Helper()
	b.do("allow the clipboard", chromedp.Func(func(ctx context.Context, tab *chromedp.Target) error {
		for _, name := range []string{"clipboard-read", "clipboard-write"} {
			_, err := cdp.Call(ctx, tab, permission.SetPermission, permission.SetPermissionParams{
				Permission:       &permission.PermissionDescriptor{Name: name},
				Setting:          permission.PermissionSettingGranted,
				BrowserContextID: chromedp.FromContext(b.ctx).BrowserContextID,
			})
			if err != nil {
				return err
			}
		}
		_, err := cdp.Call(ctx, tab, emulation.SetFocusEmulationEnabled,
			emulation.SetFocusEmulationEnabledParams{Enabled: true})
		return err
	}))
}

// copied returns what is on the clipboard once the page says so.
func (b *browser) copied() string {
	b.t.Helper()
	b.holds("it is said to be copied", `document.querySelector("#said").textContent === "Copied"`)
	b.do("forget", chromedp.Evaluate[chromedp.Void](`document.querySelector("#said").textContent = ""`))
	text, err := chromedp.Run(b.ctx,
		chromedp.Evaluate[string](`navigator.clipboard.readText()`, chromedp.EvalAwaitPromise))
	if err != nil {
		b.t.Fatalf("the clipboard: %v", err)
	}

	return text
}

func TestALongPromptIsReadWhole(t *testing.T) {
	server, b := seeded(t)
	id := list(server, "template:support/handbook status:success")[0]
	record := server.Get("/api/public/v2/requests/" + id)
	var read struct {
		Blueprint struct {
			Template struct {
				Messages []struct{ Content []struct{ Text string } }
			} `json:"prompt_template"`
		} `json:"prompt_blueprint"`
	}
	if err := json.Unmarshal(record.Body, &read); err != nil {
		t.Fatal(err)
	}
	messages := read.Blueprint.Template.Messages
	prompt := messages[len(messages)-1].Content[0].Text
	last := prompt[strings.LastIndex(strings.TrimSpace(prompt), ". ")+2:]

	b.visit("/requests/" + id)
	b.holds("the page is small", `performance.getEntriesByType("navigation")[0].encodedBodySize < 20480`)
	b.shows(".is-user .fold", "Show all 36 KiB")
	if strings.Contains(b.text(".is-user"), last) {
		t.Error("the prompt is not folded")
	}
	b.holds("the system prompt is folded", `document.querySelector(".is-system .folded:not([open])") !== null`)
	b.screenshots("record-folded")
	b.do("show all", chromedp.Click(".is-user [data-whole]"))
	b.waitsFor(".is-user", strings.TrimSpace(last))
	b.shows(".is-user .fold", "Fold")
	b.do("fold", chromedp.Click(".is-user [data-whole]"))
	b.waitsFor(".is-user .fold", "Show all 36 KiB")
	b.key("e")
	b.waitsFor(".is-user", strings.TrimSpace(last))
	b.shows(".is-system", "Answer in the customer's language.")

	b.visit("/requests/" + id + "?filter=CUSTOMER's")
	b.shows(".is-system .hit", "customer's")
}

func TestMarkdownIsLaidOutAndShownAsSentByAKey(t *testing.T) {
	server, b := seeded(t)
	b.visit("/requests/" + list(server, "template:ops/weekly-digest status:success")[0])
	b.holds("there is a table", `document.querySelectorAll(".out .md table td").length > 5`)
	b.holds("and a list", `document.querySelector(".out .md ol li em").innerText === "before"`)
	b.screenshots("record-markdown")
	b.keyTo("r")
	b.shows(".out .text", "|---|", "*before*")
	b.keyTo("r")
	b.holds("a table again", `document.querySelector(".out .md table") !== null`)

	b.visit("/requests/" + list(server, `template:support/reply output:"def handle"`)[0])
	b.holds("code is in colours", `document.querySelector(".md pre .k").innerText === "def"`)
	b.visit("/requests/" + list(server, "template:support/triage is:json")[0])
	b.holds("JSON is in colours", `document.querySelectorAll(".out pre.json .m").length > 0`)

	b.visit("/requests/" + list(server, "template:support/reply customer:Sahara status:success")[0])
	b.holds("Arabic is read from the right", `document.querySelector(".out .md").matches(":dir(rtl)")`)
}

func TestWhatWasSearchedForIsMarked(t *testing.T) {
	server, b := seeded(t)
	p := b.opens("requests")
	p.filters(fmt.Sprintf("%q", demoPhrase))
	p.tookSteps(2)
	p.shows("#count", fmt.Sprint(demoPhraseAnswers, " requests"))
	p.holds("each row shows the phrase, marked", fmt.Sprintf(
		`[...document.querySelectorAll("#list .answer mark")].length === %d`, demoPhraseAnswers))
	p.accessible(axe(t), "a list with marks")
	b.press("tbody tr a")
	b.holds("the phrase is marked", fmt.Sprintf(`[...document.querySelectorAll(".out mark.hit")]
		.some((mark) => mark.innerText.toLowerCase() === %q)`, demoPhrase))
	b.screenshots("record-hits")

	id := list(server, "template:support/handbook input:kettle")[0]
	b.visit("/requests?filter=template:support/handbook+input:kettle")
	b.holds("excerpts show what is around a hit",
		`document.querySelector("#list tr[data-href] mark") !== null`)
	b.visit("/requests/" + id + "?filter=KETTLE")
	b.waitsFor("#matches output", "1 of ")
	b.holds("the whole text is shown", `document.querySelector(".is-user .fold").innerText === "Fold" &&
		document.querySelectorAll(".is-user mark.hit").length > 1`)
	b.holds("the first is in sight", `(() => {
		const box = document.querySelector("mark.current").getBoundingClientRect();
		return box.top >= 0 && box.bottom <= innerHeight;
	})()`)
	b.screenshots("record-matches")
	b.do("the next one", chromedp.Click("[data-match='1']"))
	b.waitsFor("#matches output", "2 of ")
	b.key("N")
	b.key("N")
	b.holds("before the first is the last",
		`/^(\d+) of \1$/.test(document.querySelector("#matches output").textContent)`)
}

func TestYesterdaysFailuresOfAVersionAreWalkedByKeys(t *testing.T) {
	server, b := seeded(t)
	const filter = "status:error template:support/triage@3 time:yesterday"
	ids := list(server, filter)
	if len(ids) != demoYesterdayFailed {
		t.Fatalf("%d calls failed yesterday", len(ids))
	}

	p := b.opens("requests")
	p.shows("#count", "3,140 requests, newest first")
	p.filters(filter)
	p.tookSteps(2)
	p.shows("#count", fmt.Sprint(demoYesterdayFailed, " requests"))
	for _, row := range p.rows() {
		if !strings.Contains(row, "failed") || !strings.Contains(row, "v3") ||
			!strings.Contains(row, "Request timed out after 30 s.") {
			t.Errorf("a row shows %s", row)
		}
	}
	p.holds("all rows are tinted", `[...document.querySelectorAll("#list tr[data-href]")].every((row) =>
		getComputedStyle(row).backgroundColor !== getComputedStyle(document.querySelector("#list")).backgroundColor)`)
	p.screenshots("list-failed")
	b.key("j")
	b.keyTo("\r")
	at := func(i int) {
		t.Helper()
		b.holds(fmt.Sprintf("record %d is shown", i), fmt.Sprintf(`location.pathname === "/requests/%s"`, ids[i]))
	}
	at(0)
	b.shows("#place", fmt.Sprintf("1 of %d", len(ids)))
	b.holds("the tab says what it shows",
		`document.title === "failed · support/triage v3 · gpt-5-mini · promptspool"`)
	b.shows(".failed", "other calls failed like this that day.")
	for i := 1; i < len(ids); i++ {
		b.keyTo("j")
		at(i)
	}
	b.holds("the last one has no next", `document.querySelector("[rel=next]") === null`)
	b.shows("#place", fmt.Sprintf("%d of %d", len(ids), len(ids)))
	b.keyTo("k")
	at(len(ids) - 2)

	b.key("?")
	b.shows("#help", "next and previous one of the list", "score it")
	b.key("j")
	b.holds("an open dialog keeps its keys", `document.querySelector("#help").open`)
	b.do("close it", chromedp.Click("#help button"))
	b.holds("it is closed", `!document.querySelector("#help").open`)
	at(len(ids) - 2)
	b.keyTo("u")
	b.shows(".chips", "template:support/triage@3")
	b.holds("its row has the focus",
		fmt.Sprintf(`document.activeElement.pathname === "/requests/%s"`, ids[len(ids)-2]))
}

func TestACallIsCopiedAndLoggedAgain(t *testing.T) {
	partstest.Need(t, "curl")
	partstest.Need(t, "python3")
	partstest.Need(t, "node")
	server, b := founded(t)
	b.allowClipboard()

	const answer = "It's **\"fine\"** \\ 日本\n\n```sh\necho $HOME\n```"
	call := asked("Is it? <b>&amp;</b> \U0001F600 / \u2028", answer)
	call["kwargs"].(map[string]any)["stream"] = false
	call["kwargs"].(map[string]any)["user"] = nil
	id := server.Track("/rest/track-request", harness.AdminKey, call)
	long := strings.Repeat("It's a long prompt. ", 210_000) // 4 MB
	longID := server.Track("/rest/track-request", harness.AdminKey, asked(long, "Yes."))

	b.visit("/requests/" + id)
	b.key("c")
	if got := b.copied(); got != answer {
		t.Errorf("the answer is copied as %q", got)
	}
	for selector, want := range map[string]string{
		".is-user [data-copy-from]": "Is it? <b>&amp;</b> \U0001F600 / \u2028",
		"[data-copy=request-id]":    id,
	} {
		b.do("press by keyboard", chromedp.Focus(selector), chromedp.KeyEvent("\r"))
		if got := b.copied(); got != want {
			t.Errorf("%s copies %q, want %q", selector, got, want)
		}
	}

	programs := map[string][]string{
		"curl":       {"sh", "-c"},
		"Python":     {"python3", "-c"},
		"JavaScript": {"node", "--input-type=module", "-e"},
	}
	// runs copies a program from the menu, runs it, and returns what it is answered. Another URL takes the
	// place of the provider's.
	runs := func(call, language, url string) []byte {
		t.Helper()
		b.do("open the menu", chromedp.Click(".actions .more summary"),
			chromedp.Click(fmt.Sprintf("//div[contains(@class, 'menu-list')]//button[.='%s as %s']", call, language)))
		text := b.copied()
		b.key(kb.Escape)
		b.holds("the menu is closed, and its button has the focus",
			`document.activeElement === document.querySelector(".actions .more:not([open]) summary")`)
		if url != "" {
			text = strings.ReplaceAll(text, "https://api.openai.com", url)
		}

		command := programs[language]
		again := exec.Command(command[0], append(command[1:], text)...)
		again.Env = append(os.Environ(), "PROMPTSPOOL_KEY="+harness.AdminKey, "OPENAI_API_KEY=sk-mine")
		out, err := again.Output()
		if err != nil {
			t.Fatalf("%s as %s: %v\n%s", call, language, err, text)
		}
		return out
	}

	// Each logs what was logged, in a shell and in Python.
	request := server.Get("/api/public/v2/requests/" + id).JSON["request"]
	for _, language := range []string{"curl", "Python"} {
		var logged struct {
			RequestID string `json:"request_id"`
		}
		out := runs("Log call", language, "")
		if err := json.Unmarshal(out, &logged); err != nil || logged.RequestID == "" {
			t.Fatalf("%v\n%s", err, out)
		}
		sent := server.Get("/api/public/v2/requests/" + logged.RequestID).JSON["request"]
		if !reflect.DeepEqual(sent, request) {
			t.Errorf("what is logged again in %s is\n%s\nbut it was\n%s", language, sent, request)
		}
	}

	// Or calls the provider as the app did.
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var kwargs any
		err := json.NewDecoder(r.Body).Decode(&kwargs)
		if err != nil || !reflect.DeepEqual(kwargs, request.(map[string]any)["kwargs"]) ||
			r.Method != "POST" || r.URL.Path != "/v1/chat/completions" ||
			r.Header.Get("Content-Type") != "application/json" || r.Header.Get("Authorization") != "Bearer sk-mine" {
			t.Errorf("the provider gets %s %s %v %v %v", r.Method, r.URL, r.Header, kwargs, err)
		}
		_, _ = io.WriteString(w, "answered")
	}))
	defer provider.Close()
	for language := range programs {
		if out := runs("Provider call", language, provider.URL); strings.TrimSpace(string(out)) != "answered" {
			t.Errorf("%s is answered %s", language, out)
		}
	}

	// 4 MB are shown and copied whole.
	b.visit("/requests/" + longID)
	b.do("show all", chromedp.Click(".is-user [data-whole]"))
	b.holds("it is shown whole", fmt.Sprintf(`[...document.querySelectorAll(".is-user .piece")]
		.reduce((n, piece) => n + piece.textContent.length, 0) === %d`, len(long)))
	b.do("copy", chromedp.Click(".is-user [data-copy-from]"))
	if got := b.copied(); got != long {
		t.Errorf("%d of %d bytes are copied", len(got), len(long))
	}
}

func TestAFailedCallShowsWhyFirst(t *testing.T) {
	server, b := founded(t)
	failedCall := func(response any, fields map[string]any) string {
		call := asked("What does it cost?", "")
		call["request_response"] = response
		for name, value := range fields {
			call[name] = value
		}
		return server.Track("/rest/track-request", harness.AdminKey, call)
	}

	const message = "Gave up after 3 attempts: <b>429</b>"
	limited := failedCall(
		map[string]any{"error": map[string]any{
			"type": "tokens", "message": "Slow down.", "code": "rate_limit_exceeded",
		}},
		map[string]any{"status": "ERROR", "error_type": "PROVIDER_RATE_LIMIT", "error_message": message},
	)
	unparsed := failedCall(map[string]any{"weird": []int{1}}, nil)
	long := failedCall(map[string]any{"weird": strings.Repeat("x", 6_000)}, nil)

	b.visit("/requests/" + limited)
	b.shows("main .fault", "PROVIDER_RATE_LIMIT", message, `"code": "rate_limit_exceeded"`)
	b.holds("it comes before the conversation", `Boolean(document.querySelector(".fault").compareDocumentPosition(
		document.querySelector(".talk")) & Node.DOCUMENT_POSITION_FOLLOWING)`)
	if talk := b.text(".talk"); strings.Contains(talk, "parse") {
		t.Errorf("the conversation says %s", talk)
	}
	b.screenshots("failed")
	if r := server.Record(limited, harness.Events(1)); r.ErrorMessage != message || !r.Readable {
		t.Errorf("the record says %q, readable %t", r.ErrorMessage, r.Readable)
	}

	// So does the command.
	for id, want := range map[string]string{
		limited:  "PROVIDER_RATE_LIMIT\n  " + message + "\n\nResponse:\n  {\n    \"error\": {\n",
		unparsed: "We could not parse this response. Raw response:\n  {\n    \"weird\": [\n",
	} {
		out, _ := harness.Run(t, 0, "requests", "get", id[:18], "--url", "http://"+server.Addr)
		if !strings.Contains(out, want) {
			t.Errorf("requests get:\n%s", out)
		}
	}

	// A chosen set of columns without the status does not hide that a call failed.
	b.visit("/requests?col=model")
	b.shows("tr.failed:nth-child(3 of [data-href]) td:first-child", "failed")
	b.visit("/requests")
	b.screenshots("failed-list")

	b.visit("/requests/" + unparsed)
	b.shows(".talk", "We could not parse this response. Raw response:", `"weird": [`)
	b.screenshots("unparsed")

	b.visit("/requests/" + long)
	b.shows(".talk .raw", "Response (5.9 KiB)")
	b.holds("a long response is folded", `!document.querySelector(".talk .raw").open`)
	b.do("unfold", chromedp.Click(".talk .raw summary"))
	b.do("show all", chromedp.Click(".talk .raw [data-whole]"))
	b.waitsFor(".talk .raw", strings.Repeat("x", 6_000))
	b.foldsALongConversation(server)
}

// foldsALongConversation looks at a call with more messages than a page, alone and in a review.
func (b *browser) foldsALongConversation(server *harness.Node) {
	b.t.Helper()
	call := asked("", strings.Repeat("It will come. ", 40))
	messages := []any{map[string]any{"role": "system", "content": "Be kind."}}
	for i := range 30 {
		messages = append(messages, map[string]any{"role": []string{"user", "assistant"}[i%2],
			"content": fmt.Sprintf("Message %d. ", i) + strings.Repeat("Of many words. ", 20)})
	}
	messages = append(messages, map[string]any{"role": "user", "content": "When? A zebra asks."})
	call["kwargs"].(map[string]any)["messages"], call["tags"] = messages, []string{"long"}
	id := server.Track("/rest/track-request", harness.AdminKey, call)

	const inSight = `(() => {
		const box = document.querySelector(".talk > .out").getBoundingClientRect();
		const judge = document.querySelector(".judge")?.getBoundingClientRect();
		return box.top > 0 && box.top + 60 < (judge?.left < box.right ? judge.top : innerHeight);
	})()`
	b.do("a phone", chromedp.EmulateViewport(390, 800))
	for _, page := range []string{"/requests/" + id, "/review?filter=tag:long"} {
		b.visit(page)
		b.holds("the response is in sight", inSight)
		b.holds("what was before is folded",
			`document.querySelector(".earlier:not([open])").innerText.endsWith("messages")`)
		b.screenshots("folded-" + page[1:4])
		b.do("a phone", chromedp.EmulateViewport(390, 800))
	}
	b.visit("/requests/" + id)
	b.key("g")
	b.holds("g leads to the top", `scrollY === 0`)
	b.key("G")
	b.holds("G leads to the response", inSight)
	b.key("e")
	b.holds("e opens what is folded", `document.querySelector(".earlier").open`)
	b.visit("/requests/" + id + "?filter=zebra")
	b.holds("it opens at the hit", `document.querySelector("mark.current").innerText === "zebra" && scrollY > 0`)
	b.do("as before", chromedp.EmulateViewport(1440, 900))
}
