package frame

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"time"

	"promptspool/api/wire"
	"promptspool/api/wire/jsonscan"
)

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
