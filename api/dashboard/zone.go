package dashboard

import (
	"cmp"
	"net/http"
	"net/url"
	"regexp"
	"time"

	"promptspool/api/wire"
	"promptspool/api/wire/calendar"
)

// Pages show times in the reader's zone, which the browser's script tells in a cookie, or in UTC
// if the reader chose that, or if there is no script.
const (
	zoneCookie = "zone"
	utcCookie  = "utc"
)

func (d *Dashboard) zoneRoutes() {
	d.handle("POST /zone", wire.RoleViewer, d.chooseZone)
}

// shownZone is the zone of the times in a page.
type shownZone struct {
	*time.Location
	Browser string // the name of the zone that the reader's browser is in; "" if it is unknown
	Back    string // the page to return to when another zone is chosen
}

// zone returns the zone that a reader wants times in.
func (c *call) zone() shownZone {
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
func (d *Dashboard) chooseZone(c *call) error {
	cookie := http.Cookie{
		Name:     utcCookie,
		Value:    "1",
		Path:     d.cookie.Path,
		MaxAge:   365 * 24 * 60 * 60,
		HttpOnly: true,
		SameSite: http.SameSiteLaxMode,
	}
	if c.PostForm.Get("utc") != "1" {
		cookie.MaxAge = -1
	}
	http.SetCookie(c.w, &cookie)

	return c.redirect(localAddress(c.PostForm.Get("back")), "")
}

// shownTime matches the templates "time" and "day". Text is escaped, so nothing that was logged
// looks like them.
var shownTime = regexp.MustCompile(`<time datetime="([^"]+)"( class="day")?>([^<]*)</time>`)

// localize turns the times in a page into those of the zone. It keeps the templates free of who
// reads them.
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

		layout := time.DateTime
		if len(part[2]) > 0 {
			layout = dayLayout
		}
		text := `<time datetime="` + string(part[1]) + `" title="` + string(part[3]) + `">`

		return []byte(text + at.In(z.Location).Format(layout) + `</time>`)
	})
}

// dayLayout is how a page shows a day of this year.
const dayLayout = "Jan 2"

// rangeText returns the time from a moment until before another in words. Either may be zero.
func rangeText(from, to, now time.Time, zone *time.Location) string {
	from, to, now = from.In(zone), to.In(zone), now.In(zone)
	isDay := func(t time.Time) bool {
		return t.Equal(calendar.StartOfDay(t.Year(), t.Month(), t.Day(), zone))
	}
	// The zero time may be in the year 0 of a zone.
	days := (from.Year() <= 1 || isDay(from)) && (to.Year() <= 1 || isDay(to))

	// A year that is not this one is named, and seconds where there is not much more.
	brief := from.Year() > 1 && to.Sub(from) < time.Hour
	print := func(t time.Time) string {
		layout := "Jan 2"
		if t.Year() != now.Year() {
			layout += ", 2006"
		}
		if !days {
			layout += " 15:04"
			if brief && t.Second() != 0 {
				layout += ":05"
			}
		}
		return t.Format(layout)
	}

	last := to
	if days {
		last = to.Add(-1) // a range of days names the last one
	}
	switch {
	case from.Year() <= 1 && to.Year() <= 1:
		return "All time"
	case to.Year() <= 1:
		return "Since " + print(from)
	case from.Year() <= 1:
		return "Until " + print(last)
	case print(from) == print(last):
		return print(from)
	}

	return print(from) + " to " + print(last)
}

// zoneName names a zone of a filter, which may be nil for UTC.
func zoneName(zone *time.Location) string { return cmp.Or(zone, time.UTC).String() }
