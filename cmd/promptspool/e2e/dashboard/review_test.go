//go:build linux

package dashboard

import (
	"encoding/json"
	"fmt"

	"github.com/chromedp/chromedp"

	"promptspool/api/wire"
	"promptspool/cmd/promptspool/e2e/harness"
)

// reviews scores ten of forty calls by the keyboard alone, from the list on, and takes the last one back.
func (b *browser) reviews(server *harness.Node) {
	b.t.Helper()
	b.visit("/requests?filter=tag:demo&sort=latency_ms")
	b.key("?")
	b.shows("#help", "review these calls")
	b.do("close the help", chromedp.Evaluate[chromedp.Void](`document.querySelector("#help").close()`))
	b.keyTo("r")
	b.shows("#review", "0 of 40 done", "default", "Save", "Skip")
	b.do("stay", chromedp.Evaluate[chromedp.Void](`window.stays = true`))

	keys := 0
	strike := func(key string) {
		keys++
		b.key(key)
	}
	for n := range 10 {
		strike(fmt.Sprint(n))
		strike("\r")
		b.waitsFor("#progress", fmt.Sprintf("%d of 40 done", n+1))
	}
	if keys > 20 {
		b.t.Errorf("ten scores took %d keys", keys)
	}
	b.holds("no page was loaded for it",
		`window.stays && document.querySelector("#said").textContent.includes("10 of 40")`)

	// The last one again, with another value and a reason, and one that is left for later.
	b.key("z")
	b.waitsFor("#progress", "9 of 40 done")
	b.holds("what was given is there", `document.querySelector(":checked").value === "90"`)
	b.key("t")
	b.key("r")
	b.key("It is right.\r")
	b.waitsFor("#progress", "10 of 40 done")
	call := `document.querySelector("[name=call]").value`
	b.do("look", chromedp.Evaluate[chromedp.Void](`window.skipped = `+call))
	b.key("x")
	b.holds("another call follows", call+` !== window.skipped && window.stays`)
	b.shows("#progress", "10 of 40 done")
	b.key("?")
	b.shows("#help", "skip the call", "back to the call before", "say why")
	b.screenshots("review")

	// What was given is in her name: 0, 10 ... 80, and 100 for 90.
	r := server.Call("POST", "/api/public/v2/requests/search", []byte(`{"per_page":100}`),
		"X-API-KEY", harness.AdminKey)
	var page wire.SearchPage
	if err := json.Unmarshal(r.Body, &page); err != nil {
		b.t.Fatalf("%d %s: %v", r.Status, r.Body, err)
	}
	given, sum := 0, 0.0
	for _, row := range page.Items {
		for _, score := range row.Scores {
			if score.Author == "ann@example.com" {
				given, sum = given+1, sum+score.Number
			}
		}
	}
	if given != 10 || sum != 460 {
		b.t.Errorf("she gave %d scores of %v together, want 10 of 460", given, sum)
	}
}
