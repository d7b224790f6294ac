package frame

import (
	"cmp"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"promptspool/api/dashboard/address"
	"promptspool/api/wire"
	"promptspool/api/wire/jsonscan"
)

// People signs people up and in, lets owners manage those of their account, and keeps the audit log. Package auth
// documents the errors.
type People interface {
	SignUp() wire.SignUp
	Fresh(ctx context.Context) (bool, error)
	SignInBy() (by wire.SignInBy, emergency bool)
	EnterByIssuer(ctx context.Context, login wire.Login, from wire.Browser) (wire.SignedIn, error)
	Join(ctx context.Context, a wire.Application, ip string) (wire.SignedIn, error)
	SignIn(ctx context.Context, email, password string, from wire.Browser) (wire.SignedIn, error)
	Session(ctx context.Context, token wire.Secret) (wire.SignedIn, error)
	Accept(ctx context.Context, s wire.SignedIn, code wire.Secret, ip string) (wire.SignedIn, error)
	Open(ctx context.Context, s wire.SignedIn, project string) (wire.SignedIn, error)
	FoundProject(ctx context.Context, s wire.SignedIn, name string) error
	SignOut(ctx context.Context, token wire.Secret) error
	MadeFor(ctx context.Context, session string) (wire.User, error)
	SetPassword(ctx context.Context, by wire.User, old, password string) (wire.SignedIn, error)
	Note(ctx context.Context, by wire.User, action, target, detail string) error

	// The one-time codes are those in the links of invites and password resets.
	Invitation(ctx context.Context, code wire.Secret, ip string) (wire.Invite, error)
	ResetOf(ctx context.Context, code wire.Secret, ip string) (wire.User, error)
	ResetPassword(ctx context.Context, code wire.Secret, password, ip string) (wire.SignedIn, error)

	Members(ctx context.Context, by wire.User) ([]wire.User, error)
	Invite(ctx context.Context, by wire.User, role wire.Role) (wire.Secret, wire.Invite, error)
	Invites(ctx context.Context, by wire.User) ([]wire.Invite, error)
	Uninvite(ctx context.Context, by wire.User, id string) error
	SetRole(ctx context.Context, by wire.User, id string, role wire.Role) (wire.User, error)
	SetDisabled(ctx context.Context, by wire.User, id string, disabled bool) (wire.User, error)
	MakeReset(ctx context.Context, by wire.User, id string) (wire.Secret, wire.User, error)
	AuditLog(ctx context.Context, by wire.User, before string, limit int) ([]wire.AuditEntry, error)
}

// answer calls the page of a route, if the caller may. Callers who are not signed in but have to be are
// shown how to sign in. A form must carry the session's token.
func (c *Exchange) answer(r Route) (err error) {
	if r.Role() == "" {
		// FormValue, which pages use, would hide that a form could not be read.
		if err := c.readForm(); err != nil {
			return err
		}
		return r.Page(c)
	}

	c.SignedIn, err = c.session()
	signedOut := wire.IsCode(err, wire.CodeUnauthorized)
	get := c.Method == http.MethodGet

	// On a fresh server there is no one who could sign in. At an issuer one may have signed in.
	if signedOut && c.URL.RequestURI() == "/" && !c.renews() {
		if fresh, err := c.frame.People.Fresh(c.Context()); fresh && err == nil {
			return c.Redirect("/sign-up", "")
		}
	}

	// A link is followed after signing in. A redirect would lose a form, so a form is
	// answered with the sign-in page itself.
	switch {
	case signedOut && get && c.renews():
		return c.Redirect(viaIssuer(c.URL.RequestURI()), "")
	case signedOut && get:
		return c.Redirect("/sign-in?"+url.Values{"next": {c.URL.RequestURI()}}.Encode(), c.lostCookie())
	case signedOut && c.ByIssuer && c.URL.Path == "/sign-out":
		return c.forget()
	case signedOut:
		return c.expired()
	case err != nil:
		return err
	}

	if !get {
		if err := c.readForm(); err != nil {
			return err
		}

		// A form without this session's token was made by another site, or in an older
		// session of the same person. The latter gets the form back. A form of another project
		// must not act in this one, where a template may have the same name.
		made, ok := c.FormProject(c.PostForm.Get("csrf"))
		switch {
		case !ok:
			return c.otherSession()
		case made.AccountID != c.User.AccountID && !r.Personal:
			return c.otherProject(made.AccountName)
		}
	} else if project := c.URL.Query().Get("project"); project != "" {
		return c.openLink(project)
	}

	if err := c.User.Allow(r.Role()); err != nil {
		return err
	}

	return r.Page(c)
}

// readForm reads the form of a request into its PostForm.
func (c *Exchange) readForm() error {
	if err := c.ParseForm(); err != nil {
		return wire.Errorf(wire.CodeTooLarge, "This form could not be read: %w. The limit is 4 MiB.", err)
	}

	return nil
}

// session returns the session that the request belongs to.
func (c *Exchange) session() (wire.SignedIn, error) {
	if c.frame.People == nil {
		return wire.SignedIn{}, ErrNoPage
	}

	return c.frame.People.Session(c.Context(), c.browser().Session)
}

// FindReader finds out who is signed in, for a page that is shown to everybody. Only the
// menu depends on it.
func (c *Exchange) FindReader() {
	if s, err := c.session(); err == nil {
		c.SignedIn = s
	}
}

// browser returns where a sign-in comes from.
func (c *Exchange) browser() wire.Browser {
	from := wire.Browser{IP: ip(c.Request)}
	if cookie, err := c.Cookie(c.frame.cookie.Name); err == nil {
		from.Session = wire.Secret(cookie.Value)
	}

	return from
}

// ip returns the address that a request comes from. Failed sign-ins are counted by it.
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

// A session has one project open, which all its pages show. To open another one is a form of the
// menu, or a link with the parameter "project" to any page.

// Projects returns the projects that the reader may open, by name.
func (c *Exchange) Projects() []wire.Membership {
	return slices.SortedFunc(slices.Values(c.User.Projects), func(a, b wire.Membership) int {
		return cmp.Compare(a.AccountName, b.AccountName)
	})
}

// openLink opens the project that a link names, and shows the rest of the link's address.
func (c *Exchange) openLink(project string) error {
	if _, err := c.frame.People.Open(c.Context(), c.SignedIn, project); err != nil {
		return err
	}

	query := c.URL.Query()
	query.Del("project")

	return c.Redirect(address.Of(c.URL.EscapedPath(), query), "")
}

// openProject opens the project that was chosen in the menu.
func (c *Exchange) openProject() error {
	if _, err := c.frame.People.Open(c.Context(), c.SignedIn, c.PostForm.Get("project")); err != nil {
		return err
	}

	return c.Redirect(localAddress(c.PostForm.Get("back")), "")
}

// FoundProject makes a project that the reader owns, and opens it.
func (c *Exchange) FoundProject(name string) error {
	return c.frame.People.FoundProject(c.Context(), c.SignedIn, name)
}

// otherProject rejects a form of a page that shows another project than the one that is open.
func (c *Exchange) otherProject(made string) error {
	return wire.Errorf(wire.CodeConflict, "This form is of the project %s, but meanwhile %s was opened, in another "+
		"tab or window. Nothing was changed. Open %s again there, then go back here and send the form once more.",
		made, c.User.AccountName, made)
}

// inNeed is how many sidecars of an account need attention.
type inNeed struct {
	count int
	asOf  time.Time
}

// Fleet reads the project's sidecars, and remembers for the menu how many need attention.
func (c *Exchange) Fleet() (wire.Fleet, error) {
	fleet, err := c.frame.Sidecars.Fleet(c.Context(), c.Identity())
	c.frame.inNeed.Store(c.User.AccountID, inNeed{fleet.InNeed(), c.Now()})

	return fleet, err
}

// inNeed returns how many sidecars need attention. It does not read all of them for each page.
func (c *Exchange) inNeed() int {
	known, _ := c.frame.inNeed.Load(c.User.AccountID)
	if n, ok := known.(inNeed); ok && c.Now().Sub(n.asOf) < wire.HeartbeatEvery {
		return n.count
	}

	// The page is about something else.
	fleet, _ := c.Fleet()
	return fleet.InNeed()
}

// A person's input is not lost when their session ends before they send it. A form of a
// resumable route that comes without a session is answered with the sign-in page, which
// carries it along; once its author has signed in, it is shown to them again, and nothing
// is done before they send it themselves. The same happens to a form that comes with a
// newer session of its author, who has signed in meanwhile in another tab.
//
// No person must be led to send what another one wrote. These are the ways to try, and
// what is in each way:
//
//   - Another site posts a form to a resumable route, or to /sign-in with a form
//     inside: both are refused, as every post of another site is
//     (http.CrossOriginProtection). A link cannot carry a form: it is read from a
//     post's body only.
//   - Another person signs in on the page: a form names the session in which it was made,
//     and the server remembers whose that was, also when it has ended. The form is
//     dropped, unseen, unless that is the person who signed in. No one can name another
//     person's session: its name is the SHA-256 of a random token, and only in that
//     person's forms. It is not a credential: it neither signs in nor takes the place of
//     the CSRF token.
//   - The form is altered on its way through the sign-in page: its path must again be
//     that of a resumable route, and its fields are shown, checked and sent like any that
//     were typed. An attacker who could alter them could have typed them.
//   - The sign-in is sent again: the form is shown again, under a new CSRF token, and
//     still has to be sent. A form that was sent once is not sent twice by it.
//   - Someone without a session fills the server's memory: a form is held by the
//     browser, not by the server.
//
// Forms that delete, or change a role, a key, people or a password, are never carried
// along: they hold nothing that is hard to type again, and must be decided on by the
// person who sees the page.

// pendingForm is a form that waits for its author to sign in.
type pendingForm struct {
	Path    string     `json:"path"`    // where it is sent
	Session string     `json:"session"` // in which it was made
	Fields  url.Values `json:"fields"`
}

// pendingBytesMax bounds a form on the sign-in page. The form is encoded twice there, and
// must still be small enough to be sent from that page.
const pendingBytesMax = formBytesMax - 64<<10

// pending returns a request's form as the sign-in page carries it, or "" if it cannot.
func (c *Exchange) pending() string {
	// It belongs to a session that has ended.
	c.PostForm.Del("csrf")

	p := pendingForm{Path: c.URL.Path, Session: c.PostForm.Get("session"), Fields: c.PostForm}
	if _, ok := c.frame.reviewOf(p.Path); !ok {
		return ""
	}

	// A form whose author is unknown could not be given back to them later.
	if _, err := c.frame.People.MadeFor(c.Context(), p.Session); err != nil {
		return ""
	}

	// Texts cannot fail to encode.
	raw, _ := jsonscan.Marshal(p)
	text := string(raw)
	if len(url.QueryEscape(text)) > pendingBytesMax {
		return ""
	}

	return text
}

// reviewOf returns how the form of a path is shown again.
func (f *Frame) reviewOf(path string) (Route, bool) {
	_, pattern := f.mux.Handler(&http.Request{Method: http.MethodPost, URL: &url.URL{Path: path}})
	r, ok := f.reviews[pattern]

	return r, ok
}

// expired answers a form without a session with the sign-in page itself, which carries the
// form if it can.
func (c *Exchange) expired() error {
	if err := c.readForm(); err != nil {
		return err
	}

	v := c.signView()
	v.Next, v.Pending = c.formPage(), c.pending()
	message := "Your session has expired. Sign in to continue."
	if v.Pending != "" {
		message = "Your session has expired. Sign in to continue; your changes are kept."
	}
	v.Error = wire.Errorf(wire.CodeUnauthorized, "%s", message)

	return c.Show(http.StatusUnauthorized, "sign-in", "Sign in", "", v)
}

// formPage returns the page from which a form was sent, if it is one of ours.
func (c *Exchange) formPage() string {
	u := c.referer()
	if u == nil {
		return "/"
	}
	if !slices.Contains(c.frame.methods(u.Path), http.MethodGet) {
		// The page was itself the answer to a form.
		return "/"
	}

	// The page's notice is about something that was done before.
	q := u.Query()
	q.Del("done")

	return localAddress(address.Of(u.Path, q))
}

// otherSession answers a form that was made in another session than the one it came with.
func (c *Exchange) otherSession() error {
	// The person who signed in is perhaps not its author.
	author, err := c.frame.People.MadeFor(c.Context(), c.PostForm.Get("session"))
	r, ok := c.frame.reviewOf(c.URL.Path)
	switch {
	case err != nil || !ok || author.ID != c.User.ID:
		return errStaleForm
	case author.AccountID != c.User.AccountID:
		return c.otherProject(author.AccountName)
	}

	return c.showAgain(r, c.URL.Path, c.PostForm)
}

// continueForm continues with the form that the sign-in page carried, after a sign-in in another tab.
func (c *Exchange) continueForm() (err error) {
	c.SignedIn, err = c.session()
	if wire.IsCode(err, wire.CodeUnauthorized) {
		err = wire.Errorf(wire.CodeUnauthorized, "You have not signed in yet. Do so in a new tab, then come back.")
	}
	if err != nil {
		return c.signFault("sign-in", "Sign in", c.signView(), err)
	}

	return c.resume()
}

// resume continues, after a sign-in, with the form that the sign-in page carried.
func (c *Exchange) resume() error {
	var p pendingForm
	next := localAddress(c.PostForm.Get("next"))
	err := json.Unmarshal([]byte(c.PostForm.Get("pending")), &p)
	r, ok := c.frame.reviewOf(p.Path)
	if err != nil || !ok || p.Fields == nil {
		return c.Redirect(next, "")
	}

	author, err := c.frame.People.MadeFor(c.Context(), p.Session)
	if err != nil || author.ID != c.User.ID {
		return c.Redirect(next, "other-person")
	}
	c.SignedIn, err = c.frame.People.Open(c.Context(), c.SignedIn, author.AccountName)
	if err != nil {
		return err
	}

	return c.showAgain(r, p.Path, p.Fields)
}

// showAgain shows a form to its author, who has signed in again, to be checked and sent.
func (c *Exchange) showAgain(r Route, path string, fields url.Values) error {
	// The role may have been taken away since the form was made.
	if err := c.User.Allow(r.Role()); err != nil {
		return err
	}

	// The page that shows the form sees a request of the form's own path.
	again := *c
	again.Request = c.Clone(c.Context())
	again.URL = &url.URL{Path: path, RawQuery: "done=resumed"}
	again.PostForm, again.Form = fields, fields

	return r.Review(&again)
}

// reviewView is what the page that shows a short form again shows.
type reviewView struct {
	Action, Button string
	Shown          []reviewField
	Fields         url.Values
}

type reviewField struct{ Name, Value string }

// Review returns the review of a form with few fields. Only the named fields are shown;
// the others are sent along.
func Review(title, button string, names ...string) func(c *Exchange) error {
	return func(c *Exchange) error {
		v := reviewView{Action: c.URL.EscapedPath(), Button: button, Fields: url.Values{}}
		for name, values := range c.PostForm {
			// The page that shows the form has its own.
			if name != "csrf" && name != "session" {
				v.Fields[name] = values
			}
		}

		for _, name := range names {
			if value := c.PostForm.Get(name); value != "" {
				v.Shown = append(v.Shown, reviewField{name, value})
			}
		}

		return c.Show(http.StatusOK, "review", title, "", v)
	}
}
