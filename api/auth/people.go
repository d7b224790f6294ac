package auth

import (
	"context"
	"encoding/base32"
	"encoding/base64"
	"net/mail"
	"strings"
	"time"

	"promptspool/api/wire"
)

const (
	sessionAge    = 7 * 24 * time.Hour
	inviteAge     = 7 * 24 * time.Hour
	emailBytesMax = 254
	hashersMax    = 2
)

// PeopleConfig is what a People is made of.
type PeopleConfig struct {
	Store  PeopleStore      // required
	SignUp wire.SignUp      // "": wire.SignUpInvite
	Now    func() time.Time // nil: time.Now
}

// People are those who sign in at the dashboard. Safe for concurrent use. It keeps nothing but its Store.
type People struct {
	store    PeopleStore
	signUp   wire.SignUp
	now      func() time.Time
	hashers  hashers
	throttle throttle
}

// NewPeople makes a People over config.Store.
func NewPeople(config PeopleConfig) *People {
	if config.SignUp == "" {
		config.SignUp = wire.SignUpInvite
	}
	if config.Now == nil {
		config.Now = time.Now
	}
	return &People{config.Store, config.SignUp, config.Now, make(hashers, hashersMax), throttle{config.Store}}
}

// SignUp tells who may sign up.
func (p *People) SignUp() wire.SignUp { return p.signUp }

// Setup gives the code with which the first person of a fresh server signs up, as an owner of the account `default`, or "" if
// somebody has. Each call makes another code; all of them end when one is used.
func (p *People) Setup(ctx context.Context) (code wire.Secret, err error) {
	if has, err := p.store.HasUsers(ctx); has || err != nil {
		return "", err
	}
	now := p.now().UTC()
	code = newCode()
	return code, p.store.CreateInvite(ctx, hash(code), wire.Invite{
		ID: wire.NewID(), AccountName: BootstrapAccount, Role: wire.RoleOwner, CreatedAt: now, ExpiresAt: now.AddDate(10, 0, 0), Setup: true,
	})
}

// newCode makes what is read aloud or pasted once: 100 random bits.
func newCode() wire.Secret {
	text := strings.ToLower(base32.StdEncoding.EncodeToString(random(15)))
	return wire.Secret(text[:5] + "-" + text[5:10] + "-" + text[10:15] + "-" + text[15:20])
}

func newToken(n int) string { return base64.RawURLEncoding.EncodeToString(random(n)) }

// Join signs somebody up. wire.CodeInvalid names the fields at fault; wire.CodeForbidden says that a code is missing or
// not good; wire.CodeConflict that the email or the account's name is taken.
func (p *People) Join(ctx context.Context, a wire.Application) (wire.User, error) {
	email, faults := checkEmail(a.Email)
	if fault := checkPassword(a.Password); fault != "" {
		faults = append(faults, wire.FieldError{Field: "password", Reason: fault})
	}
	if a.Code == "" && p.signUp == wire.SignUpOpen {
		faults = append(faults, checkAccount(a.Account)...)
	}
	if faults != nil {
		return wire.User{}, wire.Invalid(faults...)
	}
	invite, _, err := p.invite(ctx, a.Code)
	if err != nil {
		return wire.User{}, err
	}
	var password string
	if err := p.hashers.run(ctx, func() { password = hashPassword(a.Password) }); err != nil {
		return wire.User{}, err
	}
	now := p.now().UTC()
	u, err := p.store.CreateUser(ctx, wire.User{
		ID: wire.NewID(), AccountName: a.Account, Email: email, Role: wire.RoleOwner, CreatedAt: now, SessionsFrom: now,
	}, password, invite)
	switch {
	case wire.IsCode(err, wire.CodeNotFound):
		return wire.User{}, errCode()
	case wire.IsCode(err, wire.CodeConflict):
		return wire.User{}, wire.Errorf(wire.CodeConflict, "This email or this account's name is taken. Sign in, or choose another.")
	}
	return u, err
}

// invite judges a code before the costly part of signing up; CreateUser judges it again.
func (p *People) invite(ctx context.Context, code wire.Secret) (h [32]byte, i wire.Invite, err error) {
	if code == "" {
		if p.signUp != wire.SignUpOpen {
			return h, i, errCode()
		}
		return h, i, nil
	}

	h = hashCode(code)
	i, err = p.store.Invite(ctx, h)
	switch {
	case wire.IsCode(err, wire.CodeNotFound):
		return h, i, errCode()
	case err != nil:
		return h, i, err
	case !i.Setup && p.signUp == wire.SignUpClosed:
		return h, i, errClosed()
	case !p.now().Before(i.ExpiresAt):
		return h, i, errCode()
	}
	return h, i, nil
}

func errClosed() error {
	return wire.Errorf(wire.CodeForbidden,
		"Signing up is closed on this server. An operator opens it with --signup invite.")
}

func errCode() error {
	return wire.Errorf(wire.CodeForbidden, "This code is invalid or has expired. "+
		"Ask an owner of the account for a new link; on a fresh server, use the setup code that it printed when it started.")
}

// hashCode is the hash of a code as a person pasted it.
func hashCode(code wire.Secret) [32]byte { return hash(wire.Secret(strings.TrimSpace(string(code)))) }

// Invitation tells what a code invites to, before it is used. ip is where the call comes from.
// wire.CodeForbidden if the code is not good, wire.CodeTooMany after too many of those.
func (p *People) Invitation(ctx context.Context, code wire.Secret, ip string) (wire.Invite, error) {
	_, i, err := p.invite(ctx, code)
	return i, p.judgeCode(ctx, err, ip)
}

// judgeCode counts a code that is not good, and refuses further ones for a while when an address has tried many. It
// does not look at good ones: a code has 100 random bits, so nobody finds one by trying, and a link must work also for
// those who share their address with somebody who tries.
func (p *People) judgeCode(ctx context.Context, err error, ip string) error {
	if !wire.IsCode(err, wire.CodeForbidden) {
		return err
	}

	now := p.now().UTC()
	many := "Too many invalid codes. Wait 15 minutes, then try again."
	if err := p.throttle.check(ctx, now, many, codeSource(ip)); err != nil {
		return err
	}
	if err := p.throttle.failed(ctx, now, codeSource(ip)); err != nil {
		return err
	}
	return err
}

// checkEmail brings an email into the form that it is kept in.
func checkEmail(email string) (string, []wire.FieldError) {
	email = strings.ToLower(strings.TrimSpace(email))
	a, err := mail.ParseAddress(email)
	if err != nil || a.Address != email || len(email) > emailBytesMax {
		return "", []wire.FieldError{{Field: "email", Reason: "must be an email address, like ann@example.com"}}
	}
	return email, nil
}

// SignIn begins a session; ip is where the call comes from. wire.CodeUnauthorized if email and password do not fit, without
// telling which is wrong; wire.CodeTooMany after too many of those from one address or for one email.
func (p *People) SignIn(ctx context.Context, email, password, ip string) (wire.SignedIn, error) {
	email = strings.ToLower(strings.TrimSpace(email))
	now := p.now().UTC()
	many := "Too many failed sign-ins. Wait 15 minutes, or ask an owner of your account for a link to reset your password."
	if err := p.throttle.check(ctx, now, many, emailSource(email), ipSource(ip)); err != nil {
		return wire.SignedIn{}, err
	}
	u, stored, err := p.store.UserByEmail(ctx, email)
	if wire.IsCode(err, wire.CodeNotFound) {
		stored, err = nobody, nil
	}
	if err != nil {
		return wire.SignedIn{}, err
	}
	fits := false
	if len(password) <= passwordBytesMax {
		if err := p.hashers.run(ctx, func() { fits = verifyPassword(stored, password) }); err != nil {
			return wire.SignedIn{}, err
		}
	}
	if !fits || u.ID == "" || u.DisabledAt != nil {
		if err := p.throttle.failed(ctx, now, emailSource(email), ipSource(ip)); err != nil {
			return wire.SignedIn{}, err
		}
		return wire.SignedIn{}, wire.Errorf(wire.CodeUnauthorized, "Wrong email or password.")
	}
	if err := p.throttle.forget(ctx, emailSource(email)); err != nil {
		return wire.SignedIn{}, err
	}
	return p.begin(ctx, u)
}

// begin makes a session with a token of its own.
func (p *People) begin(ctx context.Context, u wire.User) (wire.SignedIn, error) {
	now := p.now().UTC()
	s := wire.SignedIn{Token: wire.Secret(newToken(32)), User: u, ExpiresAt: now.Add(sessionAge)}
	err := p.store.CreateSession(ctx, hash(s.Token), wire.Session{UserID: u.ID, CreatedAt: now, ExpiresAt: s.ExpiresAt})
	return s, err
}

// Session finds who is signed in by the token of a cookie; wire.CodeUnauthorized if nobody is.
func (p *People) Session(ctx context.Context, token wire.Secret) (wire.SignedIn, error) {
	if token == "" || len(token) > secretBytesMax {
		return wire.SignedIn{}, errSignedOut()
	}
	s, u, err := p.store.Session(ctx, hash(token))
	switch {
	case wire.IsCode(err, wire.CodeNotFound):
		return wire.SignedIn{}, errSignedOut()
	case err != nil:
		return wire.SignedIn{}, err
	case !p.now().Before(s.ExpiresAt) || u.DisabledAt != nil || s.CreatedAt.Before(u.SessionsFrom):
		return wire.SignedIn{}, errSignedOut()
	}
	return wire.SignedIn{Token: token, User: u, ExpiresAt: s.ExpiresAt}, nil
}

func errSignedOut() error {
	return wire.Errorf(wire.CodeUnauthorized, "Your session has expired. Sign in to continue.")
}

// SignOut ends a session.
func (p *People) SignOut(ctx context.Context, token wire.Secret) error {
	return p.store.EndSession(ctx, hash(token), p.now().UTC())
}

// MadeFor finds the person for whom a form was made, by the session that it names (see wire.SignedIn.FormSession), also
// when that has ended. wire.CodeNotFound if no such session is remembered.
func (p *People) MadeFor(ctx context.Context, session string) (wire.User, error) {
	none := wire.Errorf(wire.CodeNotFound, "This form is of no session that is remembered.")
	h, ok := wire.ParseFormSession(session)
	if !ok {
		return wire.User{}, none
	}

	s, u, err := p.store.Session(ctx, h)
	if err == nil && !p.now().Before(s.ExpiresAt.Add(wire.SessionKept)) {
		err = none
	}
	return u, err
}
