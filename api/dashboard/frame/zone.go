package frame

import (
	"net/http"
	"net/url"
	"regexp"
	"time"

	"promptspool/api/wire/calendar"
)

// Pages show times in the reader's zone, which the browser's script tells in a cookie, or in UTC
// if the reader chose that, or if there is no script.
const (
	zoneCookie = "zone"
	utcCookie  = "utc"
)

// shownZone is the zone of the times in a page.
type shownZone struct {
	*time.Location
	Browser string // the name of the zone that the reader's browser is in; "" if it is unknown
	Back    string // the page to return to when another zone is chosen
}

// zone returns the zone that a reader wants times in.
func (c *Exchange) zone() shownZone {
	z := shownZone{Location: time.UTC, Back: "/"}
	if c.Method == http.MethodGet {
		z.Back = c.URL.RequestURI()
	}

	var there *time.Location
	if cookie, err := c.Cookie(zoneCookie); err == nil {
		// A name is escaped in a cookie.
		if name, err := url.QueryUnescape(cookie.Value); err == nil && name != "" {
			if zone, ok := calendar.ParseZone(name); ok {
				there = zone
			}
		}
	}
	if there == nil {
		return z
	}

	z.Browser = there.String()
	if cookie, err := c.Cookie(utcCookie); err != nil || cookie.Value != "1" {
		z.Location = there
	}

	return z
}

// Choice reports whether there is another zone to choose.
func (z shownZone) Choice() bool { return z.Browser != "" && z.Browser != time.UTC.String() }

// IsUTC reports whether times are in UTC.
func (z shownZone) IsUTC() bool { return z.Location == time.UTC }

// chooseZone stores whether the reader wants times in UTC.
func (c *Exchange) chooseZone() error {
	kept := 365 * 24 * time.Hour
	if c.PostForm.Get("utc") != "1" {
		kept = -time.Second // deletes it
	}
	c.Remember(utcCookie, "1", kept)

	return c.Redirect(localAddress(c.PostForm.Get("back")), "")
}

// shownTime matches the templates "time", "day", "minute" and "clock". Text is escaped, so nothing that was logged
// looks like them.
var shownTime = regexp.MustCompile(`<time datetime="([^"]+)"(?: class="(day|minute|clock)")?>([^<]*)</time>`)

// localize turns the times in a page into those of the zone. It keeps the templates free
// of their reader's zone.
func (z shownZone) localize(page []byte) []byte {
	if z.IsUTC() {
		return page
	}

	return shownTime.ReplaceAllFunc(page, func(element []byte) []byte {
		part := shownTime.FindSubmatch(element)
		at, err := time.Parse(time.RFC3339, string(part[1]))
		if err != nil {
			return element
		}

		format := time.DateTime
		switch string(part[2]) {
		case "day":
			format = dayLayout
		case "minute":
			format = "2006-01-02 15:04"
		case "clock":
			format = time.TimeOnly
		}
		text := `<time datetime="` + string(part[1]) + `" title="` + string(part[3]) + `">`

		return []byte(text + at.In(z.Location).Format(format) + `</time>`)
	})
}

// dayLayout is how a page shows a day of this year.
const dayLayout = "Jan 2"
