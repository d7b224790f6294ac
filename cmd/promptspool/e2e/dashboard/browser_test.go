//go:build linux

package dashboard

import (
	"context"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"

	"promptspool/cmd/promptspool/e2e/harness"
	"promptspool/metrics/partstest"
)

// browser is a window of the tests' Chromium. An error in its console fails the test.
type browser struct {
	t    *testing.T
	ctx  context.Context
	base string // of the server: http://localhost:port
	soon bool   // a page is looked at while its numbers are still counted

	mu     sync.Mutex
	errors []string // under mu; of the console
}

// stepTimeMax bounds one step in a browser.
const stepTimeMax = time.Minute

// pollEvery is how often poll looks at a page. By default it would look whenever the page
// is painted, which on a busy machine may be never.
const pollEvery = 50 * time.Millisecond

// headlessShell is Chromium without the browser around its pages, which takes half of the processor.
// `make test` installs it. Elsewhere the tests use the Chromium or Chrome that they find.
const headlessShell = "/usr/lib/chromium/chromium-headless-shell"

// chromium starts the Chromium in which all tests open their windows: to start one costs
// as much as a short scene.
var chromium = sync.OnceValues(func() (context.Context, error) {
	// As root a sandbox cannot be made. The other flags keep Chromium from calling
	// anybody but us, and from spending processes on isolating sites and on pages that
	// nobody returns to: all pages here are ours. No page lives so long that compiling
	// its script well would pay: without it the tests take a quarter less of the processor.
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-features", "Translate,BackForwardCache,SpareRendererForSitePerProcess,PaintHolding"),
		chromedp.Flag("js-flags", "--no-opt --no-maglev"), chromedp.Flag("in-process-gpu", true),
		chromedp.Flag("disable-site-isolation-trials", true), chromedp.Flag("renderer-process-limit", "1"),
		chromedp.UserDataDir(filepath.Join(harness.Folder, "chromium")))
	if _, err := os.Stat(headlessShell); err == nil {
		options = append(options, chromedp.ExecPath(headlessShell))
	}

	allocated, stop := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, closeAll := chromedp.NewContext(allocated)
	harness.AtEnd(func() {
		closeAll()
		stop()
	})

	return ctx, chromedp.Do(ctx) // starts it; it must not end with a step's timeout
})

// openBrowser opens a window on a server, with cookies and storage of its own.
func openBrowser(t *testing.T, server *harness.Node) *browser {
	t.Helper()

	partstest.Need(t, "chromium")
	shared, err := chromium()
	if err != nil {
		t.Fatalf("chromium: %v (make test installs it)", err)
	}
	_, port, _ := strings.Cut(server.Addr, ":")
	b := &browser{t: t, base: "http://localhost:" + port} // where cookies that want TLS are kept without it

	ctx, closeWindow := chromedp.NewContext(shared, chromedp.WithNewBrowserContext())
	t.Cleanup(func() {
		closeWindow()
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, e := range b.errors {
			t.Errorf("the browser's console: %s", e)
		}
	})
	b.ctx = ctx
	if err := chromedp.Do(ctx); err != nil { // opens it; the window must not close with the first step's timeout
		t.Fatalf("a window of chromium: %v", err)
	}
	go b.hear(chromedp.Console(ctx))
	b.do("set up", prefers("light"), chromedp.EmulateViewport(1440, 900))

	return b
}

// hear collects what the console says against a page, until the tab is closed. A page
// that reports an error rightly has the status of one.
func (b *browser) hear(console iter.Seq2[chromedp.ConsoleMessage, error]) {
	for m, err := range console {
		if err != nil {
			return
		}
		expected := strings.Contains(m.Text, "responded with a status of 4")
		if m.Type != chromedp.ConsoleError && !m.IsException() || expected {
			continue
		}
		b.mu.Lock()
		b.errors = append(b.errors, m.URL+": "+m.Text)
		b.mu.Unlock()
	}
}

// step is one thing to do in a browser.
type step = chromedp.Action[chromedp.Void]

// do carries out steps. One that cannot be done fails the test, with what the page showed.
func (b *browser) do(name string, steps ...step) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, stepTimeMax)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		b.t.Fatalf("%s: %v\nthe page shows:\n%s", name, err, b.text("main"))
	}
}

// visit opens a page.
func (b *browser) visit(path string) {
	b.t.Helper()
	b.do("visit "+path, chromedp.Navigate(b.base+path))
	b.settles()
}

// settles waits until the page has counted all that it shows: on a busy machine its script does so after the
// page is there, and puts new parts in the place of those that a test may hold.
func (b *browser) settles() {
	b.t.Helper()
	if b.soon {
		return
	}
	if err := b.poll(`!document.querySelector(".counting")?.offsetParent`); err != nil {
		b.t.Fatalf("the page does not end counting: %v\n%s", err, b.text("main"))
	}
}

// signsOut opens the menu of the person who is signed in, and presses Sign out.
func (b *browser) signsOut() {
	b.t.Helper()
	b.do("open the menu", chromedp.Click(".me summary"))
	b.press(`.me form[action$="/sign-out"] button`)
}

// press clicks on what leads to another page, and waits for that page.
func (b *browser) press(selector string) {
	b.t.Helper()
	b.does("press "+selector, chromedp.Click(selector))
}

// fill writes a text into a field, all in one go, as from the clipboard: a key press
// costs as much as all of it. What was in the field is replaced.
func (b *browser) fill(selector, text string) {
	b.t.Helper()
	insert := chromedp.Func(func(ctx context.Context, tab *chromedp.Target) error {
		_, err := cdp.Call(ctx, tab, input.InsertText, input.InsertTextParams{Text: text})
		return err
	})
	b.do("fill "+selector, chromedp.Focus(selector), selectAll, insert)
}

// selectAll selects what is in the field that has the focus.
var selectAll = chromedp.Evaluate[chromedp.Void](`document.activeElement.select()`)

// choose sets a select.
func (b *browser) choose(selector, value string) {
	b.t.Helper()
	b.do("choose "+selector, chromedp.SetValue(selector, value))
}

// does carries out a step that leads to another page, and waits for that page.
func (b *browser) does(name string, action step) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, stepTimeMax)
	defer cancel()
	if _, err := chromedp.RunResponse(ctx, action); err != nil {
		b.t.Fatalf("%s: %v\nthe page shows:\n%s", name, err, b.text("main"))
	}
	b.settles()
}

// chooses sets a select that applies at once, and waits for the page that it leads to.
func (b *browser) chooses(selector, value string) {
	b.t.Helper()
	b.does("choose "+selector, chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`(() => {
		const field = document.querySelector(%q);
		field.value = %q;
		field.dispatchEvent(new Event("change", { bubbles: true }));
	})()`, selector, value)))
}

// text returns the text of a part of the page; "" if there is no such part.
func (b *browser) text(selector string) (text string) {
	ctx, cancel := context.WithTimeout(b.ctx, stepTimeMax)
	defer cancel()
	expression := fmt.Sprintf("document.querySelector(%q)?.innerText ?? ''", selector)
	text, _ = chromedp.Run(ctx, chromedp.Evaluate[string](expression))

	return text
}

// shows fails the test unless a part of the page shows all the texts.
func (b *browser) shows(selector string, texts ...string) {
	b.t.Helper()
	shown := b.text(selector)
	for _, text := range texts {
		if !strings.Contains(shown, text) {
			b.t.Fatalf("%s does not show %q but:\n%s", selector, text, shown)
		}
	}
}

// filteredBy fails unless a list is filtered by a line.
func (b *browser) filteredBy(line string) {
	b.t.Helper()
	b.holds("it is filtered by "+line, fmt.Sprintf(`document.querySelector("#line").value === %q`, line))
}

// poll waits until an expression is true. It asks again when the page is just being
// replaced, also by itself.
func (b *browser) poll(expression string) error {
	ctx, cancel := context.WithTimeout(b.ctx, stepTimeMax)
	defer cancel()
	for {
		_, err := chromedp.Run(ctx, chromedp.Poll[bool](expression, chromedp.WithPollingInterval(pollEvery)))
		replaced := err != nil && (strings.Contains(err.Error(), "Cannot find context") ||
			strings.Contains(err.Error(), "target navigated"))
		if !replaced || ctx.Err() != nil {
			return err
		}
	}
}

// waitsFor waits until a script makes a part of the page show a text.
func (b *browser) waitsFor(selector, text string) {
	b.t.Helper()
	condition := fmt.Sprintf("document.querySelector(%q)?.innerText.includes(%q)", selector, text)
	if err := b.poll(condition); err != nil {
		b.t.Fatalf("%s does not come to show %q: %v\nthe page shows:\n%s", selector, text, err, b.text(selector))
	}
}

// screenshots saves the page as it is, light and dark, wide and narrow, in the folder
// PROMPTSPOOL_SCREENSHOTS, if that is set.
func (b *browser) screenshots(name string) {
	b.t.Helper()
	dir := os.Getenv("PROMPTSPOOL_SCREENSHOTS")
	if dir == "" {
		return
	}
	for _, scheme := range []string{"light", "dark"} {
		for _, width := range []int64{1440, 390} {
			b.do("look "+scheme, prefers(scheme), chromedp.EmulateViewport(width, 900))
			image, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
			if err != nil {
				b.t.Fatal(err)
			}
			path := filepath.Join(dir, fmt.Sprintf("%s-%s-%d.png", name, scheme, width))
			if err := os.WriteFile(path, image, 0o600); err != nil {
				b.t.Fatal(err)
			}
		}
	}
	b.do("as before", prefers("light"), chromedp.EmulateViewport(1440, 900))
}

// prefers sets the colour scheme that the browser's user prefers, and no motion: a click
// must not meet a page that still scrolls.
func prefers(scheme string) step {
	return emulates(emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{
			{Name: "prefers-color-scheme", Value: scheme},
			{Name: "prefers-reduced-motion", Value: "reduce"},
		},
	})
}

// emulates makes the browser show pages as on other media, or for another user.
func emulates(media emulation.SetEmulatedMediaParams) step {
	return chromedp.Func(func(ctx context.Context, tab *chromedp.Target) error {
		_, err := cdp.Call(ctx, tab, emulation.SetEmulatedMedia, media)
		return err
	})
}
