//go:build linux

package dashboard

import (
	"context"
	"fmt"
	"net/url"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// A reader in Los Angeles sees days of Los Angeles, in lists, charts and links, or those of UTC.
func TestDaysAreTheReadersEverywhere(t *testing.T) {
	_, b := seeded(t)
	b.travels("America/Los_Angeles")
	there, err := time.LoadLocation("America/Los_Angeles")
	if err != nil {
		t.Fatal(err)
	}

	// The browser itself says what a moment is there. Swedes write times as we do.
	const shown = `[...document.querySelectorAll("#list time")]`
	local := shown + `.every((t) => new Date(t.dateTime).toLocaleString("sv").endsWith(t.textContent))`
	const onDay = `.every((t) => new Date(t.dateTime).toLocaleDateString("sv") === "%s")`
	b.visit("/docs") // whose script tells the zone
	b.visit("/requests")
	b.holds("the list is in the reader's zone", local)
	b.do("open the menu", chromedp.Click(".me summary"))
	b.shows("#zone", "Times in America/Los_Angeles")
	b.shows(".times summary", "All time", "America/Los_Angeles")

	// A bar of a day leads to that day, from midnight to midnight.
	day := time.Now().In(there).AddDate(0, 0, -3).Format(time.DateOnly)
	b.visit("/?" + url.Values{"filter": {"since:30d"}}.Encode())
	b.screenshots("overview-zone")
	b.do("the table of the chart", chromedp.Click(".cockpit figure summary"))
	const links = `[...document.querySelectorAll(".cockpit figure td a")]`
	mark := fmt.Sprintf(links+`.find((a) => a.text === "%s").id = "that"`, day)
	b.do("mark the day", chromedp.Evaluate[chromedp.Void](mark))
	b.press("#that")
	b.holds("all are of that day", local+" && "+shown+fmt.Sprintf(
		`.length > 10 && `+shown+onDay, day))
	b.holds("under the day", fmt.Sprintf(`document.querySelectorAll(".date").length === 1 &&
		document.querySelector(".date").textContent.includes("%s")`, shownHeading(t, day)))
	b.shows(".times summary", shownDay(t, day), "America/Los_Angeles")
	b.screenshots("requests-zone")

	// The switch is remembered, and the link means the same time.
	b.do("open the menu", chromedp.Click(".me summary"))
	b.press("#zone button")
	b.do("open the menu", chromedp.Click(".me summary"))
	b.shows("#zone", "Times in UTC")
	b.shows(".times summary", "to", "UTC")
	b.holds("the list is in UTC", shown+`.length > 10 && `+shown+
		`.every((t) => t.dateTime.includes(t.textContent))`)
	b.visit("/requests?" + url.Values{"from": {day}, "to": {day}}.Encode())
	b.shows(".times summary", shownDay(t, day), "UTC")
	b.do("open the menu", chromedp.Click(".me summary"))
	b.press("#zone button")
	b.holds("and back again", local+fmt.Sprintf(` && `+shown+onDay, day))
}

// travels makes the browser one of another zone.
func (b *browser) travels(zone string) {
	b.t.Helper()
	b.do("travel to "+zone, chromedp.Func(func(ctx context.Context, tab *chromedp.Target) error {
		there := emulation.SetTimezoneOverrideParams{TimezoneID: zone}
		_, err := cdp.Call(ctx, tab, emulation.SetTimezoneOverride, there)
		return err
	}))
}

// shownDay returns a day as pages show it.
func shownDay(t *testing.T, day string) string {
	at, err := time.Parse(time.DateOnly, day)
	if err != nil {
		t.Fatal(err)
	}
	if at.Year() != time.Now().Year() {
		return at.Format("Jan 2, 2006")
	}

	return at.Format("Jan 2")
}

// shownHeading is a day of this year as it stands above its requests.
func shownHeading(t *testing.T, day string) string {
	at, err := time.Parse(time.DateOnly, day)
	if err != nil {
		t.Fatal(err)
	}

	return at.Format("Monday, January 2")
}
