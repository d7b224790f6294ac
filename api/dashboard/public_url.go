package dashboard

import (
	"cmp"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"promptspool/api/wire"
)

// This file is all that knows at which address the dashboard is opened. Below a base path
// (the path of Config.PublicURL), calls come without it, and everything here is written
// without it: links, forms, redirects. It is put in front of them on their way out.
//
// Whether a browser keeps a session depends on the address, too. These are the cookies:
//
//   - __Host-promptspool, Path=/: over TLS or on localhost, with a host of our own. The
//     prefix (RFC 6265bis) makes sure that no other host has set it.
//   - __Secure-promptspool, Path=/base: the same below a base path, which __Host- excludes.
//   - promptspool: with Config.CookiesInsecure, also over plain HTTP.
//
// X-Forwarded-Proto is believed here: package api removes it unless a trusted proxy sent it.

// sessionCookie names the cookie of a session on a host of our own.
const sessionCookie = "__Host-promptspool"

// newCookie returns the cookie of a session, without its value.
func (c *Config) newCookie() http.Cookie {
	cookie := http.Cookie{
		Name:     sessionCookie,
		Path:     cmp.Or(c.basePath(), "/"),
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
func (d *Dashboard) setSession(w http.ResponseWriter, s wire.SignedIn) {
	cookie := d.cookie
	cookie.Value = string(s.Token)
	cookie.Expires = s.ExpiresAt.Add(wire.SessionKept) // a session that has ended still shows whose browser this is
	if s.Token == "" {
		cookie.MaxAge, cookie.Expires = -1, time.Time{}
	}

	http.SetCookie(w, &cookie)
}

// lostCookie returns the word of a notice if a browser that has just signed in comes
// without a session.
func (d *Dashboard) lostCookie(r *http.Request) string {
	if _, err := r.Cookie(d.cookie.Name); err == nil {
		return "" // it came, but its session has ended
	}

	from := d.referer(r)
	if from != nil && slices.Contains([]string{"/sign-in", "/sign-up", "/reset-password"}, from.Path) {
		return "no-cookie"
	}

	return ""
}

// basePath returns the path below which people open the dashboard, or "".
func (c *Config) basePath() string {
	if c.PublicURL == nil {
		return ""
	}

	return c.PublicURL.Path
}

// linkAttributes are the attributes of our pages that hold addresses.
var linkAttributes = []string{
	"action", "data-copy-from", "data-names", "data-preview", "data-suggest", "data-whole", "formaction", "href", "src",
}

// newLinks returns what puts base in front of the addresses in a page. Text and the values
// of attributes, whatever somebody logged, never contain a bare quotation mark, so what is
// found is always an attribute.
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
func (d *Dashboard) below(w http.ResponseWriter) http.ResponseWriter {
	if _, isBelow := w.(*belowBase); isBelow || d.basePath() == "" {
		return w
	}

	return &belowBase{w, d}
}

type belowBase struct {
	http.ResponseWriter
	d *Dashboard
}

// WriteHeader also changes the address of a redirect.
func (w *belowBase) WriteHeader(status int) {
	if to := w.Header().Get("Location"); strings.HasPrefix(to, "/") {
		w.Header().Set("Location", w.d.basePath()+to)
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write takes a page in one piece.
func (w *belowBase) Write(b []byte) (int, error) {
	if !strings.HasPrefix(w.Header().Get("Content-Type"), "text/html") {
		return w.ResponseWriter.Write(b)
	}
	if _, err := w.d.links.WriteString(w.ResponseWriter, string(b)); err != nil {
		return 0, err
	}

	return len(b), nil
}

// innermost returns the writer that the dashboard was called with.
func innermost(w http.ResponseWriter) http.ResponseWriter {
	if below, ok := w.(*belowBase); ok {
		return below.ResponseWriter
	}

	return w
}

// publicAddress returns the public address, or "" if there is none.
func (d *Dashboard) publicAddress() string {
	if d.PublicURL == nil {
		return ""
	}

	return d.PublicURL.String()
}

// base returns this server's address: the public one, or else as the caller wrote it.
func (d *Dashboard) base(r *http.Request) string {
	switch {
	case d.PublicURL != nil:
		return d.publicAddress()
	case d.isHTTPS(r):
		return "https://" + r.Host
	}

	return "http://" + r.Host
}

// isHTTPS reports whether the browser called over TLS, as far as we can know.
func (d *Dashboard) isHTTPS(r *http.Request) bool {
	proto := r.Header.Get("X-Forwarded-Proto")
	if r.TLS != nil || proto != "" {
		return r.TLS != nil || proto == "https"
	}

	// A proxy that is not trusted cannot say so, but passes on the Host of our address.
	return d.PublicURL != nil && d.PublicURL.Scheme == "https" && hostname(r) == d.PublicURL.Hostname()
}

// referer returns the page of ours that a call came from, without the base path, or nil.
func (d *Dashboard) referer(r *http.Request) *url.URL {
	from, err := url.Parse(r.Referer())
	if err != nil || from.Host != r.Host && (d.PublicURL == nil || from.Host != d.PublicURL.Host) {
		return nil
	}

	if path, isBelow := strings.CutPrefix(from.Path, d.basePath()+"/"); isBelow {
		from.Path, from.RawPath = "/"+path, ""
	}

	return from
}

// connection is what may be wrong with how a page was reached.
type connection struct {
	NotKept     bool   // the browser will discard the session's cookie
	Unencrypted bool   // the cookie is kept, and whoever is on the way can read it
	Host        string // where the page was opened, if that is not at Public
	Public      string // the public address, or ""
}

func (d *Dashboard) connection(r *http.Request) connection {
	// Browsers trust localhost without TLS, and keep the cookie there.
	if isLocal(hostname(r)) {
		return connection{}
	}

	v := connection{Public: d.publicAddress()}
	v.Unencrypted = d.CookiesInsecure && !d.isHTTPS(r)
	v.NotKept = !d.CookiesInsecure && !d.isHTTPS(r)
	if d.PublicURL != nil && hostname(r) != d.PublicURL.Hostname() {
		v.Host = r.Host
	}

	return v
}

// hostname returns the host that a call names, without its port.
func hostname(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		host = strings.Trim(r.Host, "[]")
	}

	return strings.ToLower(host)
}

// isLocal reports whether a host is the browser's own machine.
func isLocal(host string) bool {
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || net.ParseIP(host).IsLoopback()
}
