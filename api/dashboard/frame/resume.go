package frame

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"

	"promptspool/api/dashboard/address"
	"promptspool/api/wire"
	"promptspool/api/wire/jsonscan"
)

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
