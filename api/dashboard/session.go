package dashboard

import (
	"net"
	"net/http"
	"net/url"
	"strings"

	"promptspool/api/wire"
)

// sessionCookie is kept by a browser over TLS or on localhost only, for this host only (RFC 6265bis, the __Host- prefix).
const sessionCookie = "__Host-promptspool"

// call is a page's call by somebody who is signed in.
type call struct {
	*http.Request
	w http.ResponseWriter
	wire.SignedIn
}

// identity is in whose name the call asks.
func (c *call) identity() wire.Identity {
	return wire.Identity{Account: c.User.AccountID, KeyID: "user:" + c.User.ID, Scope: wire.ScopeFull, Verified: true}
}

// handle makes a route of pages that takes somebody of a role who is signed in. A form must carry the session's token.
func (d *Dashboard) handle(pattern string, role wire.Role, page func(c *call) error) {
	d.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		s, err := d.session(r)
		switch {
		case wire.IsCode(err, wire.CodeUnauthorized) && r.Method == http.MethodGet:
			http.Redirect(w, r, "/sign-in?"+url.Values{"next": {r.URL.RequestURI()}}.Encode(), http.StatusSeeOther)
			return
		case err == nil && r.Method != http.MethodGet:
			err = form(r, s)
		}
		if err == nil {
			err = s.User.Allow(role)
		}
		c := &call{Request: r, w: w, SignedIn: s}
		if err == nil {
			err = page(c)
		}
		if err != nil {
			d.fail(c, err)
		}
	})
}

// form reads a form, which must carry the session's token.
func form(r *http.Request, s wire.SignedIn) error {
	if err := r.ParseForm(); err != nil {
		return wire.Errorf(wire.CodeTooLarge, "This form could not be read: %w. It may have at most 4 MiB.", err)
	}
	if !s.Bears(r.PostForm.Get("csrf")) {
		return errStaleForm
	}
	return nil
}

// session finds who is signed in.
func (d *Dashboard) session(r *http.Request) (wire.SignedIn, error) {
	cookie, err := r.Cookie(sessionCookie)
	if err != nil {
		return wire.SignedIn{}, wire.Errorf(wire.CodeUnauthorized, "Nobody is signed in.")
	}
	return d.People.Session(r.Context(), wire.Secret(cookie.Value))
}

// setSession puts a session into the browser; the zero one takes it out.
func setSession(w http.ResponseWriter, s wire.SignedIn) {
	cookie := &http.Cookie{
		Name: sessionCookie, Value: string(s.Token), Path: "/", Expires: s.ExpiresAt,
		Secure: true, HttpOnly: true, SameSite: http.SameSiteLaxMode,
	}
	if s.Token == "" {
		cookie.MaxAge = -1
	}
	http.SetCookie(w, cookie)
}

// ip is where a call comes from, for the count of failed sign-ins.
func ip(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}

// local is next if that is a page of ours, else the first page: a link must not send somebody who signs in elsewhere.
func local(next string) string {
	if !strings.HasPrefix(next, "/") || strings.HasPrefix(next, "//") || strings.ContainsAny(next, "\\\r\n\t") {
		return "/"
	}
	return next
}

// insecure says whether a browser will not keep the session: it came over plain HTTP, and not to this machine itself.
func insecure(r *http.Request) bool {
	host, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		host = r.Host
	}
	loopback := host == "localhost" || strings.HasSuffix(host, ".localhost") || net.ParseIP(strings.Trim(host, "[]")).IsLoopback()
	return r.TLS == nil && r.Header.Get("X-Forwarded-Proto") != "https" && !loopback
}
