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
	notice string // what the page says has been done; "" if its address says it
}

// identity is in whose name the call asks.
func (c *call) identity() wire.Identity {
	return wire.Identity{Account: c.User.AccountID, KeyID: "user:" + c.User.ID, Scope: wire.ScopeFull, Verified: true}
}

// handle makes a route of pages that takes somebody of a role who is signed in. A form must carry the session's token.
func (d *Dashboard) handle(pattern string, role wire.Role, page func(c *call) error) {
	d.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		c := &call{Request: r, w: w}
		err := d.enter(c, role, page)
		if err != nil {
			d.fail(c, err)
		}
	})
}

// enter answers a call if it comes from somebody of a role who is signed in, else with the way to sign in.
func (d *Dashboard) enter(c *call, role wire.Role, page func(c *call) error) (err error) {
	c.SignedIn, err = d.session(c.Request)
	get := c.Method == http.MethodGet
	switch {
	case wire.IsCode(err, wire.CodeUnauthorized) && get:
		return c.done("/sign-in?"+url.Values{"next": {c.URL.RequestURI()}}.Encode(), "")
	case wire.IsCode(err, wire.CodeUnauthorized):
		return d.expired(c)
	case err != nil:
		return err
	}

	if !get {
		if err := c.readForm(); err != nil {
			return err
		}
		if !c.Bears(c.PostForm.Get("csrf")) {
			return d.otherSession(c)
		}
	}
	if err := c.User.Allow(role); err != nil {
		return err
	}
	return page(c)
}

// readForm reads a form.
func (c *call) readForm() error {
	if err := c.ParseForm(); err != nil {
		return wire.Errorf(wire.CodeTooLarge, "This form could not be read: %w. It may have at most 4 MiB.", err)
	}
	return nil
}

// session finds who is signed in.
func (d *Dashboard) session(r *http.Request) (wire.SignedIn, error) {
	cookie, err := r.Cookie(sessionCookie)
	if err != nil || d.People == nil {
		return wire.SignedIn{}, wire.Errorf(wire.CodeUnauthorized, "Your session has expired. Sign in to continue.")
	}
	return d.People.Session(r.Context(), wire.Secret(cookie.Value))
}

// setSession puts a session into the browser; the zero one takes it out.
func setSession(w http.ResponseWriter, s wire.SignedIn) {
	cookie := &http.Cookie{
		Name: sessionCookie, Value: string(s.Token), Path: "/",
		Expires: s.ExpiresAt.Add(wire.SessionKept), // a session that has ended still shows whose browser this is
		Secure:  true, HttpOnly: true, SameSite: http.SameSiteLaxMode,
	}
	if s.Token == "" {
		cookie.MaxAge = -1
	}
	http.SetCookie(w, cookie)
}

// browser is where somebody signs in from.
func browser(r *http.Request) wire.Browser {
	from := wire.Browser{IP: ip(r)}
	if cookie, err := r.Cookie(sessionCookie); err == nil {
		from.Session = wire.Secret(cookie.Value)
	}
	return from
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
