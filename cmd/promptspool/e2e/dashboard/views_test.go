//go:build linux

package dashboard

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"promptspool/api/dashboard/number"
	"promptspool/cmd/promptspool/e2e/harness"
)

// key presses a key of the keyboard, as somebody without a mouse does.
func (b *browser) key(keys string) {
	b.t.Helper()
	b.do("key "+keys, chromedp.KeyEvent(keys))
}

// strikes presses a key as a keyboard does: a page that takes the key keeps its letter from being typed.
func (b *browser) strikes(key string) {
	b.t.Helper()
	b.do("strike "+key, chromedp.Func(func(ctx context.Context, tab *chromedp.Target) error {
		for _, event := range []input.DispatchKeyEventParams{
			{Type: input.DispatchKeyEventTypeKeyDown, Key: key, Text: key},
			{Type: input.DispatchKeyEventTypeKeyUp, Key: key},
		} {
			if _, err := cdp.Call(ctx, tab, input.DispatchKeyEvent, event); err != nil {
				return err
			}
		}
		return nil
	}))
}

// holds fails the test unless an expression becomes true in the page.
func (b *browser) holds(name, expression string) {
	b.t.Helper()
	if err := b.poll(expression); err != nil {
		b.t.Fatalf("%s: %v\nthe page shows:\n%s", name, err, b.text("main"))
	}
}

// asked returns a call to log.
func asked(content any, answer string) map[string]any {
	return map[string]any{
		"function_name": "openai.ChatCompletion.create",
		"kwargs": map[string]any{
			"model": "gpt-4o-mini", "messages": []any{map[string]any{"role": "user", "content": content}},
		},
		"request_response": map[string]any{"model": "gpt-4o-mini", "choices": []any{map[string]any{
			"index": 0, "message": map[string]any{"role": "assistant", "content": answer},
		}}},
		"request_start_time": 1, "request_end_time": 2.5,
	}
}

// pixel is a PNG of one red pixel.
const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="

func TestImagesInARequestAreShownAndNothingIsFetched(t *testing.T) {
	server, b := founded(t)
	var elsewhere atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
	t.Cleanup(other.Close)
	id := server.Track("/rest/track-request", harness.AdminKey, asked([]any{
		map[string]any{"type": "text", "text": "What is this?"},
		map[string]any{"type": "image_url", "image_url": map[string]any{"url": "data:image/png;base64," + pixel}},
		map[string]any{"type": "image_url", "image_url": map[string]any{"url": other.URL + "/a.png"}},
		map[string]any{"type": "image_url", "image_url": map[string]any{"url": `data:image/svg+xml;base64,PHN2Zy8+`}},
	}, "A red pixel."))

	b.visit("/requests/" + id)
	b.holds("the image is drawn", `document.querySelectorAll(".talk img").length === 1 && `+
		`document.querySelector(".talk img").naturalWidth === 1`)
	b.holds("the other is a link", fmt.Sprintf(
		`document.querySelector('.talk a[href="%s/a.png"]').rel === "noopener noreferrer"`, other.URL))
	b.screenshots("images")
	b.press(".talk a.enlarge")
	b.holds("the image is shown by itself", `document.contentType === "image/png" && `+
		`document.images[0].naturalWidth === 1`)
	if elsewhere.Load() > 0 {
		t.Errorf("the page fetched %d things from elsewhere", elsewhere.Load())
	}
}

// prints fails the test unless the page, printed, shows everything that a selector finds
// and nothing to press, in black on white, also for somebody who prefers dark pages.
func (b *browser) prints(content string) {
	b.t.Helper()
	b.do("print", emulates(emulation.SetEmulatedMediaParams{
		Media:    "print",
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "dark"}},
	}))
	b.holds("the paper shows what the page says", fmt.Sprintf(
		`[...document.querySelectorAll(%q)].some((part) => part.checkVisibility())`, content))
	b.holds("the paper shows nothing to press", `[...document.querySelectorAll("button, .button, input, `+
		`main > form select, .bucket, nav, .filter > .row, .filter .more, .pager")]`+
		`.every((part) => !part.checkVisibility())`)
	b.holds("it is black on white",
		`getComputedStyle(document.documentElement).color === "rgb(0, 0, 0)" && `+
			`getComputedStyle(document.documentElement).backgroundColor === "rgb(255, 255, 255)"`)

	if dir := os.Getenv("PROMPTSPOOL_SCREENSHOTS"); dir != "" {
		image, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
		if err != nil || os.WriteFile(filepath.Join(dir, "print.png"), image, 0o600) != nil {
			b.t.Fatal(err)
		}
	}
	b.do("as before", prefers("light"))
}

func TestDaysAreDrawnAndEachBarLeadsToItsRequests(t *testing.T) {
	server, b := seeded(t)
	since := "since:" + time.Now().UTC().AddDate(0, 0, -6).Format(time.DateOnly) // does not move while we look
	b.visit("/?filter=" + since)
	calls := server.Total(map[string]any{"filter": since})
	b.waitsFor(".tiles", fmt.Sprint("Requests\n", number.Grouped(int64(calls)), "\n"))
	b.holds("there is a bar for every four hours",
		`document.querySelectorAll(".cockpit .chart a").length > 20`)
	b.screenshots("overview")
	b.holds("no label of a chart is cut", `[...document.querySelectorAll(".plot :is(text, li)")].every((label) => {
		const [at, card] = [label.getBoundingClientRect(), label.closest("figure").getBoundingClientRect()];
		return at.width > 0 && at.left >= card.left && at.right <= card.right &&
			at.top >= card.top && at.bottom <= card.bottom;
	})`)

	b.prints("h1, .tiles, .chart, table")

	b.do("unfold", chromedp.Click(".values summary"))
	b.do("mark the last calls", chromedp.Evaluate[chromedp.Void](`[...document.querySelectorAll(".values tbody tr")]
		.findLast((row) => row.cells[1].textContent !== "0").id = "last"`))
	counted := strings.Fields(b.text("#last"))
	b.press("#last a")
	b.shows("main", counted[3]+" request") // after the day, the time and the zone
	b.shows(".chips", "since:", "before:")

	b.visit("/template/statistics?name=support/reply&span=since:7d")
	b.shows("main", "Is version 8 better?")
	b.shows(".verdicts", "Version 7", "too few:")
	b.do("help", chromedp.Click(".verdicts-head summary"))
	b.shows(".how", "no difference shown", "Holm")
	b.do("no help", chromedp.Click(".verdicts-head summary"))
	b.screenshots("statistics")
	b.press(".chart a:last-child")
	b.shows("main", "template:support/reply", "version:")
}

func TestChartsAreReadZoomedAndIsolated(t *testing.T) {
	_, b := seeded(t)
	const page = "/?filter=since:7d&metric=cost&group=metadata.customer"
	b.visit(page)
	b.waitsFor(".cockpit .legend", "others")

	// The mouse shows the values of a time, here and in the tiles. A drag zooms, and back undoes it.
	const of = `[...document.querySelectorAll(".chart, .spark")]`
	from, to := b.placeIn(".cockpit .chart", 0.3), b.placeIn(".cockpit .chart", 0.6)
	y := from.y
	b.do("point", chromedp.MouseEvent("mouseMoved", from.x, y))
	b.waitsFor(".readout", "UTC")
	b.holds("one line is in all charts", of+`.length > 6 && `+of+`.every((svg) => svg.querySelector(".cross"))`)
	b.holds("the tiles have the values of that time", `document.querySelectorAll(".metrics > .then").length > 6`)
	b.screenshots("overview-crosshair")
	left := chromedp.Button("left")
	b.do("press", chromedp.MouseEvent("mouseMoved", from.x, y), chromedp.MouseEvent("mousePressed", from.x, y, left),
		chromedp.MouseEvent("mouseMoved", to.x, y))
	b.does("let go", chromedp.MouseEvent("mouseReleased", to.x, y, left))
	b.holds("it zooms", `/time:2\d{3}-\S+\.\.2\d{3}-\S+$/.test(document.querySelector("#line").value) &&
		location.search.includes("metric=cost") && location.search.includes("customer")`)
	b.does("back", chromedp.NavigateBack())
	b.filteredBy("since:7d")

	// A series alone stands at the bottom, and its times lead to its calls.
	b.waitsFor(".cockpit .legend", "others")
	b.do("isolate", chromedp.Click(".legend > span:nth-of-type(2)"))
	b.holds("one is left", `[...document.querySelectorAll(".cockpit .chart > .bar")]
		.filter((bar) => bar.checkVisibility()).length === 1`)

	// The keyboard does the same from one stop, and a table has the numbers.
	b.do("to the chart", chromedp.Focus(".cursor"))
	b.key(kb.Home + kb.ArrowRight)
	b.holds("the values are told", `document.activeElement.ariaValueNow === "2" && document.activeElement
		.ariaValueText.startsWith(document.querySelector(".cockpit tbody tr:nth-child(2) td").textContent)`)
	b.key(kb.ArrowDown)
	b.holds("another is alone", `document.querySelector(".legend > [aria-current]").textContent ===
		document.querySelector(".legend > span").textContent`)
	b.key(" ")
	b.holds("the table is open", `document.querySelector(".cockpit figure details").open`)
	b.accessible(axe(t), page)
	b.do("to the chart", chromedp.Focus(".cursor"))
	b.key(kb.End + kb.ArrowLeft)
	b.keyTo(kb.Enter)
	b.holds("the calls of that customer", `/^customer:\S+ time:\S+$/.test(document.querySelector("#line").value)`)
}

// place is a point of a window.
type place struct{ x, y float64 }

// placeIn returns a point in the middle of a part of the page, at a share of its width.
func (b *browser) placeIn(selector string, share float64) place {
	b.t.Helper()
	at, err := chromedp.Run(b.ctx, chromedp.Evaluate[[]float64](fmt.Sprintf(`(() => {
		const box = document.querySelector(%q).getBoundingClientRect();
		return [box.left + %f * box.width, box.top + box.height / 2];
	})()`, selector, share)))
	if err != nil {
		b.t.Fatal(err)
	}

	return place{at[0], at[1]}
}
