//go:build linux

package dashboard

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"

	"promptspool/api/wire"
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

func TestADashboardIsUsedByTheKeyboardAlone(t *testing.T) {
	server, b := founded(t)
	var ids []string
	for n := range 3 {
		ids = append(ids, server.Track("/rest/track-request", harness.AdminKey,
			asked(fmt.Sprint("question ", n), "answer")))
	}

	b.visit("/requests")
	b.key("/")
	b.holds("/ searches", `document.activeElement.matches("[name=filter]")`)
	b.key("j?")
	b.holds("a field takes letters as letters",
		`document.activeElement.value.endsWith("j?") && !document.querySelector("#help").open`)
	b.visit("/requests?filter=status:success")
	b.strikes("/")
	b.key("since:7d")
	b.holds("/ goes on behind the line", `document.querySelector("#line").value === "status:success since:7d"`)
	b.do("leave the field", chromedp.Evaluate[chromedp.Void](`document.activeElement.blur()`))
	b.key("?")
	b.holds("? helps", `document.querySelector("#help").open`)
	b.do("close it", chromedp.Click("#help button"))
	b.holds("its button ends it", `!document.querySelector("#help").open`)

	b.visit("/requests")
	row := func(n int) string {
		const focused = `[...document.querySelectorAll("tr[data-href]")].findIndex(` +
			`(row) => row.contains(document.activeElement)) === %d`

		return fmt.Sprintf(focused, n)
	}

	for i, step := range []struct {
		keys string
		row  int
	}{{"j", 0}, {"j", 1}, {"j", 2}, {"j", 2}, {"k", 1}, {"k", 0}, {"k", 0}, {"j", 1}} {
		b.key(step.keys)
		b.holds(fmt.Sprintf("step %d, %s, moves", i, step.keys), row(step.row))
	}

	if _, err := chromedp.RunResponse(b.ctx, chromedp.KeyEvent("\r")); err != nil {
		t.Fatal(err)
	}
	opened := fmt.Sprintf(`location.pathname === "/requests/%s"`, ids[1])
	b.holds("enter opens the row", opened)

	// The way back leads to the row.
	b.keyTo("u")
	b.holds("u leads back to the row", row(1))
	b.keyTo("\r")
	b.holds("enter opens it again", opened)
	b.do("go back", chromedp.NavigateBack())
	b.holds("so does the browser", row(1))
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

// logDays logs calls over the last days as sidecars would have delivered them, with three
// versions of a template, each better than the one before.
func logDays(server *harness.Node, days int) (calls int) {
	server.T.Helper()
	r := rand.New(rand.NewPCG(7, 7))
	now := time.Now().UTC()
	var lines []byte
	add := func(kind wire.Kind, id string, at time.Time, body map[string]any) {
		raw, err := json.Marshal(body)
		if err != nil {
			server.T.Fatal(err)
		}
		e := wire.Event{ID: wire.NewID(), Kind: kind, RequestID: id, AcceptedAt: at, Sidecar: "pod-1", Body: raw}
		lines = e.AppendLine(lines)
	}
	for at := now.Add(-time.Duration(days) * 24 * time.Hour); at.Before(now); {
		busy := 1.1 + math.Sin(float64(at.Unix())/86400*2*math.Pi) // by the time of day
		at = at.Add(time.Duration(r.ExpFloat64() * float64(50*time.Minute) / busy))
		if at.After(now) {
			break
		}

		calls++

		age := now.Sub(at).Hours() / 24 / float64(days)
		version := 1
		if age < 0.7 && r.IntN(4) > 0 {
			version = 2
		}
		if age < 0.35 && r.IntN(5) > 0 {
			version = 3
		}

		status, model := "SUCCESS", []string{"gpt-4o-mini", "gpt-4o-mini", "gpt-4o"}[r.IntN(3)]
		if r.IntN(40) == 0 {
			status = "ERROR"
		}

		took, id := 0.4+0.3*float64(4-version)+r.ExpFloat64()*0.5, wire.NewID()
		add(wire.KindRequest, id, at, map[string]any{
			"function_name": "openai.chat.completions.create",
			"provider_type": "openai",
			"status":        status,
			"kwargs": map[string]any{"model": model, "messages": []any{
				map[string]any{"role": "user", "content": "Do you ship to Oslo?"},
			}},
			"request_response": map[string]any{
				"model": model,
				"choices": []any{map[string]any{
					"index":         0,
					"finish_reason": "stop",
					"message":       map[string]any{"role": "assistant", "content": "Yes, we do!"},
				}},
				"usage": map[string]any{"prompt_tokens": 300 + r.IntN(300), "completion_tokens": 40 + r.IntN(90)},
			},
			"request_start_time":     float64(at.UnixMilli())/1000 - took,
			"request_end_time":       float64(at.UnixMilli()) / 1000,
			"tags":                   []string{[]string{"web", "mobile"}[r.IntN(2)]},
			"metadata":               map[string]string{"customer": []string{"Nordlys", "Brisa", "Kawa"}[r.IntN(3)]},
			"prompt_id":              "greet customers",
			"prompt_version":         version,
			"prompt_input_variables": map[string]string{"shop": "Nordlys"},
		})
		if r.IntN(2) == 0 {
			add(wire.KindScore, id, at.Add(time.Second), map[string]any{
				"request_id": id, "name": "tone", "score": min(45+12*version+r.IntN(20), 100),
			})
		}
	}
	res := server.Call("POST", "/sync/events", lines, "X-API-KEY", harness.AdminKey)
	if res.Status != http.StatusOK || strings.Contains(string(res.Body), "invalid") {
		server.T.Fatalf("%d %s", res.Status, res.Body)
	}

	return calls
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
	server, b := founded(t)
	publishVersions(server)
	calls := logDays(server, 7)
	b.visit("/?filter=since:7d")
	b.shows(".tiles", fmt.Sprint(calls))
	b.holds("there is a bar for every four hours",
		`document.querySelectorAll(".charts figure:first-child .chart a").length > 20`)
	b.screenshots("overview")
	b.holds("no label of a chart is cut", `[...document.querySelectorAll(".chart text")].every((label) => {
		const [at, chart] = [label.getBoundingClientRect(), label.closest("svg").getBoundingClientRect()];
		return at.width > 0 && at.left >= chart.left && at.right <= chart.right &&
			at.top >= chart.top && at.bottom <= chart.bottom + 1;
	})`)

	b.prints("h1, .tiles, .chart, table")

	b.do("unfold", chromedp.Click(".charts figure:first-child summary"))
	counted := strings.Fields(b.text(".charts figure:first-child tbody tr:last-child"))
	b.press(".charts figure:first-child tbody tr:last-child a")
	good, _ := strconv.Atoi(counted[len(counted)-2])
	other, _ := strconv.Atoi(counted[len(counted)-1])
	b.shows("main", fmt.Sprint(good+other, " request"))
	b.shows(".chips", "since:", "before:")

	b.visit("/template/statistics?name=greet+customers&span=since:7d")
	b.shows("tbody", "best")
	b.screenshots("statistics")
	b.press(".chart circle")
	b.shows("main", `template:"greet customers"`, "version:")
}
