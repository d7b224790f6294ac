package frame

import (
	"cmp"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"promptspool/api/wire"
	"promptspool/api/wire/calendar"
)

// Only this file knows at which address the dashboard is opened. Below a base path (the
// path of Config.PublicURL), requests come without it, and everything here is written
// without it: links, forms, redirects. It is put in front of them on their way out.
//
// Whether a browser keeps a session depends on the address, too. These are the cookies:
//
//   - __Host-promptspool, Path=/: over TLS or on localhost, on our own host. The prefix
//     (RFC 6265bis) makes sure that no other host has set it.
//   - __Secure-promptspool, Path=/base: the same below a base path, which __Host- excludes.
//   - promptspool: with Config.CookiesInsecure, also over plain HTTP.
//
// X-Forwarded-Proto is believed here: package api removes it unless a trusted proxy sent it.

// sessionCookie names the cookie of a session on our own host.
const sessionCookie = "__Host-promptspool"

// newCookie returns the cookie of a session, without its value.
func (c *Config) newCookie() http.Cookie {
	cookie := http.Cookie{
		Name:     sessionCookie,
		Path:     cmp.Or(c.BasePath(), "/"),
		Secure:   !c.CookiesInsecure,
		HttpOnly: true,
		SameSite: http.SameSiteLaxMode,
	}

	// Browsers keep a cookie of the first prefix with Path=/ only, and of both over TLS only.
	switch {
	case c.CookiesInsecure:
		cookie.Name = "promptspool"
	case cookie.Path != "/":
		cookie.Name = "__Secure-promptspool"
	}

	return cookie
}

// setSession stores a session in the browser. The zero session deletes the cookie.
func (c *Exchange) setSession(s wire.SignedIn) {
	cookie := c.frame.cookie
	cookie.Value = string(s.Token)
	// A session that has ended still shows whose browser this is.
	cookie.Expires = s.ExpiresAt.Add(wire.SessionKept)
	if s.Token == "" {
		cookie.MaxAge, cookie.Expires = -1, time.Time{}
	}

	http.SetCookie(c.W, &cookie)
}

// Remember stores in the browser how a person wants to see pages: over TLS only where
// sessions are.
func (c *Exchange) Remember(name, value string, age time.Duration) {
	cookie := c.frame.cookie
	cookie.Name, cookie.Value, cookie.MaxAge = name, value, int(age.Seconds())

	http.SetCookie(c.W, &cookie)
}

// lostCookie returns the word of a notice if a browser that has just signed in comes
// without a session.
func (c *Exchange) lostCookie() string {
	if _, err := c.Cookie(c.frame.cookie.Name); err == nil {
		// It came, but its session has ended.
		return ""
	}

	from := c.referer()
	if from != nil && slices.Contains([]string{"/sign-in", "/sign-up", "/reset-password"}, from.Path) {
		return "no-cookie"
	}

	return ""
}

// BasePath returns the path below which people open the dashboard, or "".
func (c *Config) BasePath() string {
	if c.PublicURL == nil {
		return ""
	}

	return c.PublicURL.Path
}

// linkAttributes are the attributes of our pages that hold addresses.
var linkAttributes = []string{
	"action", "data-all", "data-copy-from", "data-names", "data-preview", "data-suggest", "data-waits", "data-whole",
	"formaction", "href", "src",
}

// newLinks returns what puts base in front of the addresses in a page. Text and the
// values of attributes, whatever was logged, never contain a bare quotation mark, so what
// is found is always an attribute.
func newLinks(base string) *strings.Replacer {
	var pairs []string
	for _, name := range linkAttributes {
		attribute := " " + name + `="`
		pairs = append(pairs, attribute+"/", attribute+base+"/")
	}

	return strings.NewReplacer(pairs...)
}

// below returns a writer that puts the base path in front of the addresses in pages and
// redirects.
func (f *Frame) below(w http.ResponseWriter) http.ResponseWriter {
	if _, isBelow := w.(*belowBase); isBelow || f.BasePath() == "" {
		return w
	}

	return &belowBase{w, f}
}

type belowBase struct {
	http.ResponseWriter
	frame *Frame
}

// WriteHeader also changes the address of a redirect.
func (w *belowBase) WriteHeader(status int) {
	if to := w.Header().Get("Location"); strings.HasPrefix(to, "/") {
		w.Header().Set("Location", w.frame.BasePath()+to)
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write takes a page in one piece.
func (w *belowBase) Write(b []byte) (int, error) {
	if !strings.HasPrefix(w.Header().Get("Content-Type"), "text/html") {
		return w.ResponseWriter.Write(b)
	}
	if _, err := w.frame.links.WriteString(w.ResponseWriter, string(b)); err != nil {
		return 0, err
	}

	return len(b), nil
}

// Writer returns the writer that the dashboard was called with.
func (c *Exchange) Writer() http.ResponseWriter {
	if below, ok := c.W.(*belowBase); ok {
		return below.ResponseWriter
	}

	return c.W
}

// PublicAddress returns the public address, or "" if there is none.
func (c *Config) PublicAddress() string {
	if c.PublicURL == nil {
		return ""
	}

	return c.PublicURL.String()
}

// Base returns this server's address: the public one, or else as the caller wrote it.
func (c *Exchange) Base() string {
	switch {
	case c.frame.PublicURL != nil:
		return c.frame.PublicAddress()
	case c.isHTTPS():
		return "https://" + c.Host
	}

	return "http://" + c.Host
}

// isHTTPS reports whether the browser called over TLS, as far as we can know.
func (c *Exchange) isHTTPS() bool {
	proto := c.Header.Get("X-Forwarded-Proto")
	if c.TLS != nil || proto != "" {
		return c.TLS != nil || proto == "https"
	}

	// A proxy that is not trusted cannot say so, but passes on the Host of our address.
	public := c.frame.PublicURL

	return public != nil && public.Scheme == "https" && hostname(c.Request) == public.Hostname()
}

// referer returns the page of ours that the request came from, without the base path, or nil.
func (c *Exchange) referer() *url.URL {
	public := c.frame.PublicURL
	from, err := url.Parse(c.Referer())
	if err != nil || from.Host != c.Host && (public == nil || from.Host != public.Host) {
		return nil
	}

	if path, isBelow := strings.CutPrefix(from.Path, c.frame.BasePath()+"/"); isBelow {
		from.Path, from.RawPath = "/"+path, ""
	}

	return from
}

// connection is what may be wrong with how a page was reached.
type connection struct {
	NotKept     bool   // the browser will discard the session's cookie
	Unencrypted bool   // the cookie is kept, and can be read on the way
	Host        string // where the page was opened, if that is not at Public
	Public      string // the public address, or ""
}

func (c *Exchange) connection() connection {
	// Browsers trust localhost without TLS, and keep the cookie there.
	if isLocal(hostname(c.Request)) {
		return connection{}
	}

	f := c.frame
	v := connection{Public: f.PublicAddress()}
	v.Unencrypted = f.CookiesInsecure && !c.isHTTPS()
	v.NotKept = !f.CookiesInsecure && !c.isHTTPS()
	if f.PublicURL != nil && hostname(c.Request) != f.PublicURL.Hostname() {
		v.Host = c.Host
	}

	return v
}

// hostname returns the host that a request names, without its port.
func hostname(r *http.Request) string { return strings.ToLower((&url.URL{Host: r.Host}).Hostname()) }

// isLocal reports whether a host is the browser's own machine.
func isLocal(host string) bool {
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || net.ParseIP(host).IsLoopback()
}

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
		// An age below zero deletes it.
		kept = -time.Second
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
