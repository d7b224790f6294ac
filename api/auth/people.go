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
	invite, err := p.invite(ctx, a.Code)
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
func (p *People) invite(ctx context.Context, code wire.Secret) (none [32]byte, err error) {
	if code == "" {
		if p.signUp != wire.SignUpOpen {
			return none, errCode()
		}
		return none, nil
	}
	h := hash(wire.Secret(strings.TrimSpace(string(code))))
	i, err := p.store.Invite(ctx, h)
	switch {
	case wire.IsCode(err, wire.CodeNotFound):
		return none, errCode()
	case err != nil:
		return none, err
	case !i.Setup && p.signUp == wire.SignUpClosed:
		return none, wire.Errorf(wire.CodeForbidden, "Signing up is closed on this server. An operator opens it with --signup invite.")
	case !p.now().Before(i.ExpiresAt):
		return none, errCode()
	}
	return h, nil
}

func errCode() error {
	return wire.Errorf(wire.CodeForbidden, "This needs a code that is still good: an owner's invite, or, on a fresh server, "+
		"the setup code that the server printed when it started.")
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
	if err := p.throttle.check(ctx, now, email, ip); err != nil {
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
		if err := p.throttle.failed(ctx, now, email, ip); err != nil {
			return wire.SignedIn{}, err
		}
		return wire.SignedIn{}, wire.Errorf(wire.CodeUnauthorized, "Email and password do not fit.")
	}
	if err := p.throttle.succeeded(ctx, email); err != nil {
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

func errSignedOut() error { return wire.Errorf(wire.CodeUnauthorized, "Nobody is signed in. Sign in.") }

// SignOut ends a session.
func (p *People) SignOut(ctx context.Context, token wire.Secret) error {
	return p.store.DeleteSession(ctx, hash(token))
}
