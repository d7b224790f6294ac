package dashboard

import (
	"net"
	"net/http"
	"net/url"
	"strings"

	"promptspool/api/wire"
)

// call is one call of a page, with the session of whoever makes it.
type call struct {
	*http.Request
	w http.ResponseWriter
	wire.SignedIn
}

// identity returns the identity that the call's reads and writes are made with.
func (c *call) identity() wire.Identity {
	return wire.Identity{
		Account:  c.User.AccountID,
		KeyID:    "user:" + c.User.ID,
		Scope:    wire.ScopeFull,
		Verified: true,
	}
}

// handle registers a page for signed-in people with at least the given role. A form must
// carry the session's token.
func (d *Dashboard) handle(pattern string, role wire.Role, page func(c *call) error) {
	d.routes = append(d.routes, Route{pattern, role})

	d.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		c := &call{Request: r, w: w}
		if err := d.authorize(c, role, page); err != nil {
			d.fail(c, err)
		}
	})
}

// authorize calls page if the caller is signed in with at least the given role. Callers
// who are not signed in are shown how to sign in.
func (d *Dashboard) authorize(c *call, role wire.Role, page func(c *call) error) (err error) {
	c.SignedIn, err = d.session(c.Request)
	get := c.Method == http.MethodGet

	// A link is followed after signing in. A redirect would lose a form, so a form is
	// answered with the sign-in page itself.
	switch {
	case wire.IsCode(err, wire.CodeUnauthorized) && get:
		return c.redirect("/sign-in?"+url.Values{"next": {c.URL.RequestURI()}}.Encode(), d.lostCookie(c.Request))
	case wire.IsCode(err, wire.CodeUnauthorized):
		return d.expired(c)
	case err != nil:
		return err
	}

	if !get {
		if err := c.readForm(); err != nil {
			return err
		}

		// A form without this session's token was made by another site, or in an older
		// session of the same person. The latter gets the form back.
		if !c.Bears(c.PostForm.Get("csrf")) {
			return d.otherSession(c)
		}
	}

	if err := c.User.Allow(role); err != nil {
		return err
	}

	return page(c)
}

// readForm reads the form of a call into its PostForm.
func (c *call) readForm() error {
	if err := c.ParseForm(); err != nil {
		return wire.Errorf(wire.CodeTooLarge, "This form could not be read: %w. The limit is 4 MiB.", err)
	}

	return nil
}

// session returns the session that a call belongs to.
func (d *Dashboard) session(r *http.Request) (wire.SignedIn, error) {
	cookie, err := r.Cookie(d.cookie.Name)
	if err != nil || d.People == nil {
		return wire.SignedIn{}, wire.Errorf(wire.CodeUnauthorized,
			"Your session has expired. Sign in to continue.")
	}

	return d.People.Session(r.Context(), wire.Secret(cookie.Value))
}

// findReader finds out who is signed in, for a page that is shown to everybody. Only the
// menu depends on it.
func (d *Dashboard) findReader(c *call) {
	if s, err := d.session(c.Request); err == nil {
		c.SignedIn = s
	}
}

// browser returns where a sign-in comes from.
func (d *Dashboard) browser(r *http.Request) wire.Browser {
	from := wire.Browser{IP: ip(r)}
	if cookie, err := r.Cookie(d.cookie.Name); err == nil {
		from.Session = wire.Secret(cookie.Value)
	}

	return from
}

// ip returns the address that a call comes from. Failed sign-ins are counted by it.
func ip(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}

	return host
}

// localAddress returns next if it is an address on this server, otherwise the first page:
// a link must not send people who sign in to another site.
func localAddress(next string) string {
	// Browsers read "//host" and "/\host" as the address of another host.
	elsewhere := !strings.HasPrefix(next, "/") || strings.HasPrefix(next, "//")
	if elsewhere || strings.ContainsAny(next, "\\\r\n\t") {
		return "/"
	}

	return next
}
