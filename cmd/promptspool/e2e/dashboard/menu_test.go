//go:build linux

package dashboard

import (
	"context"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// shift returns by how much the page has jumped since it was opened: the sum of all its layout
// shifts, also of those that follow input. CLS has only the worst burst of the others.
func (b *browser) shift() float64 {
	b.t.Helper()
	const watch = `new Promise(done => {
		let sum = 0;
		const add = entries => entries.forEach(e => sum += e.value);
		const watcher = new PerformanceObserver(list => add(list.getEntries()));
		watcher.observe({type: "layout-shift", buffered: true});

		// Shifts are noted when a frame is drawn: the second callback runs after the first frame.
		requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(() => {
			add(watcher.takeRecords());
			done(sum);
		})));
	})`
	sum, err := chromedp.Run(b.ctx, chromedp.Evaluate[float64](watch, chromedp.EvalAwaitPromise))
	if err != nil {
		b.t.Fatal(err)
	}

	return sum
}

// stays fails the test if the page jumps until it has what a selector finds, or after that.
func (b *browser) stays(selector string) {
	b.t.Helper()
	b.holds("it is the page with "+selector, `document.querySelector("`+selector+`") !== null`)
	if sum := b.shift(); sum > 0.01 {
		b.t.Errorf("the page with %s jumps by %.3f", selector, sum)
	}
}

// scripts switches the scripts of pages on or off.
func scripts(on bool) step {
	return chromedp.Func(func(ctx context.Context, tab *chromedp.Target) error {
		off := emulation.SetScriptExecutionDisabledParams{Value: !on}
		_, err := cdp.Call(ctx, tab, emulation.SetScriptExecutionDisabled, off)
		return err
	})
}

// menus checks the menus as they are before script.js has run: a small window starts with them
// folded, so that the page does not jump, and a wide one shows all of them.
func (b *browser) menus() {
	b.t.Helper()
	b.do("no scripts", scripts(false))
	for path, menu := range map[string]string{"/requests": ".side .menu", "/docs": ".contents"} {
		link, word := menu+` nav > a`, menu+` > summary`
		sees := `document.querySelector("` + link + `").checkVisibility({contentVisibilityAuto: true}) === `
		has := ` && document.querySelector("` + word + `").checkVisibility() === `

		b.do("look by phone", chromedp.EmulateViewport(390, 900))
		b.visit(path)
		b.holds(path+" starts with a folded menu", sees+`false`+has+`true`)
		b.do("unfold", chromedp.Click(word))
		b.holds(path+" unfolds its menu", sees+`true`+has+`true`)

		b.do("as before", chromedp.EmulateViewport(1440, 900))
		b.visit(path)
		b.holds(path+" has its menu beside it", sees+`true`+has+`false`)
		b.do("follow", chromedp.Click(link))
	}
	b.do("scripts", scripts(true))
}
