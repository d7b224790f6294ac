//go:build linux

package dashboard

import (
	"testing"

	"promptspool/cmd/promptspool/e2e/harness"
)

// TestAReaderFindsAPageAndSeesWhereItIs reads the documentation as somebody who is not signed in.
func TestAReaderFindsAPageAndSeesWhereItIs(t *testing.T) {
	server := harness.StartServer(t, t.TempDir(), "127.0.0.1:0")
	server.Takes()
	b := openBrowser(t, server)

	b.visit("/docs")
	p := &person{browser: b}
	p.key("/")
	p.key("lost setup code")
	p.keyTo("\r")
	b.shows("main", "pages for")
	b.press(`.hits a[href^="/docs/people"]`)
	b.shows("h1", "People, roles and keys")
	b.holds("the section is in sight", `(() => {
		const at = document.getElementById("the-first-owner").getBoundingClientRect();
		return at.top >= 0 && at.bottom <= innerHeight;
	})()`)

	// Far down in the list of all pages, the page itself is in sight, with its sections.
	b.visit("/docs/api-sidecars")
	b.holds("the page is marked where one sees it", `(() => {
		const list = document.querySelector(".contents"), entry = list.querySelector("[aria-current]");
		const [all, at] = [list.getBoundingClientRect(), entry.getBoundingClientRect()];
		return entry.textContent === "API: sidecars" && at.top >= all.top && at.bottom <= all.bottom;
	})()`)
	b.press(`.contents a[href="#deliver-events"]`)
	b.holds("a section is one click away", `location.hash === "#deliver-events"`)
}
