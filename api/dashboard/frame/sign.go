package frame

import (
	"context"
	"embed"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"promptspool/api/dashboard/address"
	"promptspool/api/wire"
	"promptspool/api/wire/jsonscan"
)

//go:embed sign-in.html sign-up.html reset.html password.html review.html
var signHTML embed.FS

// SignIn returns the pages on which people sign in and out, and what a reader sets on every page.
func SignIn() Section {
	return Section{
		HTML: signHTML,
		Routes: []Route{
			{Pattern: "GET /sign-in", Page: (*Exchange).signInPage},
			{Pattern: "POST /sign-in", Page: (*Exchange).signIn},
			{Pattern: "POST /sign-in/continue", Page: (*Exchange).continueForm},
			{Pattern: "GET /sign-in/oidc", Page: (*Exchange).beginAtIssuer},
			{Pattern: "GET /sign-in/oidc/callback", Page: (*Exchange).finishAtIssuer},
			{Pattern: "GET /sign-up", Page: (*Exchange).signUpPage},
			{Pattern: "POST /sign-up", Page: (*Exchange).signUp},
			{Pattern: "GET /reset-password", Page: (*Exchange).resetPage},
			{Pattern: "POST /reset-password", Page: (*Exchange).resetPassword},

			{Pattern: "POST /join", Page: (*Exchange).join, Personal: true},
			{Pattern: "POST /project", Page: (*Exchange).openProject, Personal: true},
			{Pattern: "POST /sign-out", Page: (*Exchange).signOut, Personal: true},
			{Pattern: "GET /password", Page: (*Exchange).passwordPage},
			{Pattern: "POST /password", Page: (*Exchange).setPassword, Personal: true},
			{Pattern: "POST /zone", Page: (*Exchange).chooseZone, Personal: true},
		},
		Notices: map[string]string{
			"signed-out": "You have signed out.",
			"password":   "Your password has been changed. All your other sessions have been signed out.",
			"resumed":    "You are signed in again. Nothing has been sent yet: check your changes, then send them.",
			"other-person": "You signed in as someone else. The changes that were not sent yet belonged to " +
				"another person, and were discarded.",
			"no-cookie": "You signed in, but your browser did not keep the session's cookie. " +
				"Allow cookies for this site, and see whether this page names another reason.",
			"joined":      "You have joined this project. The menu leads to your other ones.",
			"at-end":      "The list ends here.",
			"back-to-tab": "You are signed in. Go back to the tab with your changes, and continue there.",
		},
	}
}

// signView is what the pages to sign in, to sign up and to choose a new password show.
type signView struct {
	Email, Next, Account, Code string
	Pending                    string       // a form that waits, see session.go; "" for none
	Invite                     *wire.Invite // the invite that Code belongs to, if any
	Error                      *wire.Error
	Connection                 connection
	Open                       bool   // accounts can be created without an invite
	Issuer                     string // the host at which people sign in without a password; "" for none
	Passwords, Emergency       bool   // who may use one: everyone; the owner for emergencies
}

// ViaIssuer returns the address that leads through the issuer. Beside a form that waits it is opened in
// another tab.
func (v signView) ViaIssuer() string {
	if v.Pending != "" {
		return viaIssuer("/?done=back-to-tab")
	}
	return viaIssuer(v.Next)
}

func (c *Exchange) signView() signView {
	by, emergency := c.frame.People.SignInBy()
	v := signView{
		Email:      c.FormValue("email"),
		Next:       localAddress(c.FormValue("next")),
		Account:    c.FormValue("project"),
		Code:       c.FormValue("code"),
		Connection: c.connection(),
		Open:       c.frame.People.SignUp() == wire.SignUpOpen,
		Passwords:  by != wire.SignInByIssuer,
		Emergency:  emergency,

		// From a post's body only: a link must not carry a form.
		Pending: c.PostForm.Get("pending"),
	}
	if c.frame.Issuer != nil {
		v.Issuer = c.frame.Issuer.Address().Host
	}

	return v
}

func (c *Exchange) signInPage() error {
	return c.Show(http.StatusOK, "sign-in", "Sign in", "", c.signView())
}

func (c *Exchange) signIn() error {
	f := c.PostForm
	s, err := c.frame.People.SignIn(c.Context(), f.Get("email"), f.Get("password"), c.browser())
	if err != nil {
		return c.signFault("sign-in", "Sign in", c.signView(), err)
	}

	// A form that was waiting is shown immediately, to the session that begins here.
	c.setSession(s)
	c.SignedIn = s

	return c.resume()
}

// signFault shows a form again with its error. Its fields are also kept when the server is
// too busy to sign people in.
func (c *Exchange) signFault(name, title string, v signView, err error) error {
	e := wire.AsError(err)
	if e.Status() >= 500 && e.Code != wire.CodeUnavailable {
		return err
	}

	setRetryAfter(c.W.Header(), e)
	v.Error = e

	return c.Show(e.Status(), name, title, "", v)
}

// signUpPage shows the reader of an invite's link which project they would join: as who they are,
// if they are signed in.
func (c *Exchange) signUpPage() error {
	v, err := c.signUpView()
	if err != nil {
		return c.signFault("sign-up", "Sign up", v, err)
	}
	title := "Sign up"
	if v.Invite != nil {
		c.FindReader()
	}
	if c.User.ID != "" {
		title = "Join a project"
	}

	return c.Show(http.StatusOK, "sign-up", title, "", v)
}

// signUpView returns the view of the form, and an error if its code is not valid.
func (c *Exchange) signUpView() (signView, error) {
	v := c.signView()
	if v.Code == "" {
		return v, nil
	}

	invite, err := c.frame.People.Invitation(c.Context(), wire.Secret(v.Code), ip(c.Request))
	if err != nil {
		return v, err
	}
	v.Invite = &invite
	v.Next = address.Of(c.URL.Path, url.Values{"code": {v.Code}})

	return v, nil
}

// join lets a reader who is signed in into the project of an invite.
func (c *Exchange) join() error {
	v, err := c.signUpView()
	if err == nil {
		c.SignedIn, err = c.frame.People.Accept(c.Context(), c.SignedIn, wire.Secret(v.Code), ip(c.Request))
	}
	if err != nil {
		return c.signFault("sign-up", "Join a project", v, err)
	}

	return c.Redirect("/", "joined")
}

func (c *Exchange) signUp() error {
	v, err := c.signUpView()
	if err != nil {
		return c.signFault("sign-up", "Sign up", v, err)
	}

	f := c.PostForm
	application := wire.Application{
		Email:    f.Get("email"),
		Password: f.Get("password"),
		Code:     wire.Secret(f.Get("code")),
		Account:  f.Get("project"),
	}
	s, err := c.frame.People.Join(c.Context(), application, ip(c.Request))
	if err != nil {
		return c.signFault("sign-up", "Sign up", v, err)
	}

	c.setSession(s)
	// The key is for the project of this person.
	c.SignedIn = s
	if v.Invite == nil || v.Invite.Setup {
		if err := c.makeFirstKey(v.Invite != nil); err != nil {
			return err
		}
	}

	return c.Redirect("/", "")
}

// resetPage asks the reader of a reset link for a new password.
func (c *Exchange) resetPage() error {
	v := c.signView()
	u, err := c.frame.People.ResetOf(c.Context(), wire.Secret(v.Code), ip(c.Request))
	if err != nil {
		return c.resetFault(err)
	}
	v.Email = u.Email

	return c.Show(http.StatusOK, "reset", "Choose a new password", "", v)
}

func (c *Exchange) resetPassword() error {
	code := wire.Secret(c.PostForm.Get("code"))
	s, err := c.frame.People.ResetPassword(c.Context(), code, c.PostForm.Get("password"), ip(c.Request))
	if err != nil {
		return c.resetFault(err)
	}

	c.setSession(s)

	return c.Redirect("/", "password")
}

// resetFault shows an error: with the form if another password would be accepted,
// otherwise without it.
func (c *Exchange) resetFault(err error) error {
	v := c.signView()
	if !wire.IsCode(err, wire.CodeInvalid) {
		v.Code = ""
	}

	return c.signFault("reset", "Choose a new password", v, err)
}

func (c *Exchange) signOut() error {
	if err := c.frame.People.SignOut(c.Context(), c.Token); err != nil {
		return err
	}
	return c.forget()
}

// forget takes an ended session out of the browser, and ends the one at the issuer.
func (c *Exchange) forget() error {
	c.setSession(wire.SignedIn{})
	c.Remember(c.firstKeyCookie(), "", -time.Second)
	if c.ByIssuer && c.frame.Issuer != nil {
		if to := c.frame.Issuer.SignOut(c.Context(), c.IDToken, c.Base()+"/sign-in"); to != "" {
			return c.Redirect(to, "")
		}
	}

	return c.Redirect("/sign-in", "signed-out")
}

func (c *Exchange) passwordPage() error {
	return c.Show(http.StatusOK, "password", "Change your password", "", c.signView())
}

func (c *Exchange) setPassword() error {
	s, err := c.frame.People.SetPassword(c.Context(), c.User, c.PostForm.Get("old"), c.PostForm.Get("password"))
	if wire.IsCode(err, wire.CodeUnauthorized) {
		// The original message mentions an email, which this form does not ask for.
		err = wire.Errorf(wire.CodeUnauthorized, "The current password is wrong.")
	}
	if err != nil {
		return c.signFault("password", "Change your password", c.signView(), err)
	}

	c.setSession(s)

	return c.Redirect("/password", "password")
}

// Issuer is where people sign in instead of by a password. Package auth/oidc documents its methods.
type Issuer interface {
	Address() *url.URL
	Begin(ctx context.Context, callback string) (string, wire.LoginAttempt, error)
	Finish(ctx context.Context, callback string, q url.Values, kept wire.LoginAttempt) (wire.Login, error)
	SignOut(ctx context.Context, idToken, back string) string
}

// A sign-in at the issuer is an attempt, which is kept in a cookie of the browser that began it. It is not
// in this server's memory, so that any server of several can finish it. A browser that opens several tabs
// begins several attempts, in a cookie each.
const (
	issuerPage     = "/sign-in/oidc"
	issuerCallback = issuerPage + "/callback"
	attemptSuffix  = "-attempt-"
	attemptAge     = 10 * time.Minute
	attemptsMax    = 8 // that one browser has at the same time

	// A request has only so much room for the cookies of attempts with addresses: longer addresses, and those
	// of further attempts, are replaced by the first page. Six tabs that begin together see none of each other's.
	nextBytesMax     = 768
	attemptsBytesMax = 4000
)

// viaIssuer returns the address that leads through the issuer to a page.
func viaIssuer(next string) string {
	return issuerPage + "?" + url.Values{"next": {next}}.Encode()
}

// renews reports whether a session of the issuer has just ended, which a pass through it renews.
func (c *Exchange) renews() bool {
	// A script could not follow: the issuer is another site.
	mode := c.Header.Get("Sec-Fetch-Mode")
	return c.ByIssuer && c.frame.Issuer != nil && (mode == "" || mode == "navigate")
}

// beginAtIssuer sends the browser to the issuer.
func (c *Exchange) beginAtIssuer() error {
	if c.frame.Issuer == nil {
		return ErrNoPage
	}
	// A page of another site does not choose where a sign-in leads: the person does, here.
	site := c.Header.Get("Sec-Fetch-Site")
	if c.FormValue("next") != "" && (site == "cross-site" || site == "same-site") {
		return c.signInPage()
	}
	address, attempt, err := c.frame.Issuer.Begin(c.Context(), c.Base()+issuerCallback)
	if err != nil {
		return c.issuerFault(err, wire.LoginAttempt{Next: c.FormValue("next")})
	}

	value := func() string {
		// Texts cannot fail to encode.
		raw, _ := jsonscan.Marshal(attempt)
		return base64.RawURLEncoding.EncodeToString(raw)
	}
	attempt.Next = c.FormValue("next")
	from := c.referer()
	attempt.Asked = from != nil && from.Path == "/sign-up"
	name, kept := c.attemptCookie(attempt.State), c.dropAttempts()
	if len(attempt.Next) > nextBytesMax || kept+len(name)+len(value()) > attemptsBytesMax {
		attempt.Next = ""
	}
	c.Remember(name, value(), attemptAge)

	return c.Redirect(address, "")
}

// finishAtIssuer begins the session of a person whom the issuer sends back.
func (c *Exchange) finishAtIssuer() error {
	if c.frame.Issuer == nil {
		return ErrNoPage
	}

	q := c.URL.Query()
	attempt := c.attempt(q.Get("state"))
	login, err := c.frame.Issuer.Finish(c.Context(), c.Base()+issuerCallback, q, attempt)
	if err != nil {
		return c.issuerFault(err, attempt)
	}

	// An invite lets a person in who is not known yet, but no link alone: its page asks everybody first.
	next := localAddress(attempt.Next)
	page, _ := url.Parse(next)
	invited := page != nil && page.Path == "/sign-up"
	if invited && attempt.Asked {
		login.Invite = wire.Secret(page.Query().Get("code"))
	}
	s, err := c.frame.People.EnterByIssuer(c.Context(), login, c.browser())
	switch {
	case wire.IsCode(err, wire.CodeForbidden) && invited && !attempt.Asked:
		return c.Redirect(next, "")
	case err != nil:
		return c.issuerFault(err, attempt)
	}
	c.setSession(s)
	if s.Joined {
		next = "/"
	}

	return c.Redirect(next, "")
}

// issuerFault shows the sign-in page with what went wrong at the issuer.
func (c *Exchange) issuerFault(err error, attempt wire.LoginAttempt) error {
	// The operator has to know of a wrong secret, or an issuer that is away; not of any link, or of each
	// person in a crowd, who may retry.
	if wire.AsError(err).RetryAfter == 0 && (attempt.State != "" || wire.IsCode(err, wire.CodeUnavailable)) {
		c.frame.Logger.Warn("signing in at the identity provider failed", "error", err)
	}
	v := c.signView()
	v.Next = localAddress(attempt.Next)

	return c.signFault("sign-in", "Sign in", v, err)
}

// attemptCookie returns the name of the cookie of an attempt. The issuer compares the state itself.
func (c *Exchange) attemptCookie(state string) string {
	return c.frame.cookie.Name + attemptSuffix + state[:min(len(state), 8)]
}

// attempt returns what the browser keeps of the attempt with this state, once: its cookie is deleted.
func (c *Exchange) attempt(state string) (a wire.LoginAttempt) {
	if cookie, err := c.Cookie(c.attemptCookie(state)); err == nil {
		c.Remember(cookie.Name, "", -time.Second)
		raw, _ := base64.RawURLEncoding.DecodeString(cookie.Value)
		// One that is not whole fits no state.
		_ = json.Unmarshal(raw, &a)
	}
	return a
}

// dropAttempts deletes the oldest attempts, and returns the bytes of those that stay.
func (c *Exchange) dropAttempts() (kept int) {
	attempts := 0
	for _, cookie := range slices.Backward(c.Cookies()) {
		if !strings.HasPrefix(cookie.Name, c.frame.cookie.Name+attemptSuffix) {
			continue
		}
		attempts++
		if attempts >= attemptsMax {
			c.Remember(cookie.Name, "", -time.Second)
			continue
		}
		kept += len(cookie.Name) + len(cookie.Value)
	}

	return kept
}
