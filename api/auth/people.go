package auth

import (
	"context"
	"encoding/base32"
	"encoding/base64"
	"errors"
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
	strangersMax  = 32
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
	return &People{config.Store, config.SignUp, config.Now, newHashers(), throttle{config.Store}}
}

// SignUp tells who may sign up.
func (p *People) SignUp() wire.SignUp { return p.signUp }

// Setup gives the code with which a server's operator signs up as an owner of the account `default`, or "" if that has an
// owner. Nobody else can found it: keys of it are made by default. Each call makes another code; all of them end when one is used.
func (p *People) Setup(ctx context.Context) (code wire.Secret, err error) {
	if has, err := p.store.HasOwner(ctx, BootstrapAccount); has || err != nil {
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

// Join signs somebody up, and begins a session. ip is where the call comes from. wire.CodeInvalid names the fields at fault; wire.CodeForbidden says that a code is missing or
// not good; wire.CodeConflict that the email or the account's name is taken: which one, only those with a code are told.
// wire.CodeTooMany says that too many from this address were taken.
func (p *People) Join(ctx context.Context, a wire.Application, ip string) (wire.SignedIn, error) {
	email, faults := checkEmail(a.Email)
	if fault := checkPassword(a.Password); fault != "" {
		faults = append(faults, wire.FieldError{Field: "password", Reason: fault})
	}
	if a.Code == "" && p.signUp == wire.SignUpOpen {
		faults = append(faults, checkAccount(a.Account)...)
	}
	if faults != nil {
		return wire.SignedIn{}, wire.Invalid(faults...)
	}
	invite, _, err := p.invite(ctx, a.Code)
	if err != nil {
		return wire.SignedIn{}, err
	}
	founds := a.Code == ""
	if founds && a.Account == BootstrapAccount {
		return wire.SignedIn{}, wire.Errorf(wire.CodeConflict, "The account %s is kept for the operator of this server, "+
			"who signs up with the setup code that it printed when it started. Choose another name.", BootstrapAccount)
	}

	var password string
	if err := p.hashers.run(ctx, !founds, func() { password = hashPassword(a.Password) }); err != nil {
		return wire.SignedIn{}, err
	}
	now := p.now().UTC()
	u, err := p.store.CreateUser(ctx, wire.User{
		ID:           wire.NewID(),
		AccountName:  a.Account,
		Email:        email,
		Role:         wire.RoleOwner,
		CreatedAt:    now,
		SessionsFrom: now,
		Founder:      founds,
	}, password, invite)
	switch {
	case wire.IsCode(err, wire.CodeNotFound):
		return wire.SignedIn{}, errCode()
	case wire.IsCode(err, wire.CodeConflict) && founds:
		return wire.SignedIn{}, p.taken(ctx, ip)
	case wire.IsCode(err, wire.CodeConflict):
		return wire.SignedIn{}, wire.Errorf(wire.CodeConflict, "Somebody has signed up with %s already, and a person belongs to one "+
			"account. Sign in, or use another email: this code is still good.", email)
	case err != nil:
		return wire.SignedIn{}, err
	}
	return p.begin(ctx, u)
}

// taken is the error of a sign-up without a code whose email or account is taken. Somebody who tries emails with fresh
// names would learn which ones are known, so an address may do so a few times only.
func (p *People) taken(ctx context.Context, ip string) error {
	err := wire.Errorf(wire.CodeConflict, "This email or this account's name is taken. Sign in, or choose another.")
	return p.count(ctx, err, "Too many sign-ups were refused. Wait 15 minutes, then try again.", takenSource(ip))
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

	return p.count(ctx, err, "Too many invalid codes. Wait 15 minutes, then try again.", codeSource(ip))
}

// count counts a failure that was found without a password. It returns what failed, or an error with the message many if
// the source had failed too often before.
func (p *People) count(ctx context.Context, failed error, many string, s source) error {
	now := p.now().UTC()
	if err := p.throttle.check(ctx, now, many, 0, s); err != nil {
		return err
	}
	if err := p.throttle.failed(ctx, now, s); err != nil {
		return err
	}
	return failed
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

// SignIn begins a session. wire.CodeUnauthorized if email and password do not fit, without telling which is wrong;
// wire.CodeTooMany after too many of those from one address or for one email, unless the browser is known as this person's;
// wire.CodeUnavailable if too many wait to be judged.
func (p *People) SignIn(ctx context.Context, email, password string, from wire.Browser) (wire.SignedIn, error) {
	email = strings.ToLower(strings.TrimSpace(email))
	known, err := p.knows(ctx, from.Session, email)
	if err != nil {
		return wire.SignedIn{}, err
	}

	sources := []source{emailSource(email), ipSource(from.IP)}
	if known {
		sources = []source{browserSource(from.Session)}
	}
	u, err := p.prove(ctx, email, password, known, sources...)
	if err != nil {
		return wire.SignedIn{}, err
	}
	return p.begin(ctx, u)
}

// knows reports whether a token is of a session of this person, which may have ended lately: their browser.
func (p *People) knows(ctx context.Context, token wire.Secret, email string) (bool, error) {
	if token == "" || len(token) > secretBytesMax {
		return false, nil
	}

	s, u, err := p.store.Session(ctx, hash(token))
	if wire.IsCode(err, wire.CodeNotFound) {
		return false, nil
	}
	return err == nil && u.Email == email && p.now().Before(s.ExpiresAt.Add(wire.SessionKept)), err
}

// prove judges a password. The attempt counts for all sources while it is judged, and if it fails; if not, the failures of
// the first one are forgotten.
func (p *People) prove(ctx context.Context, email, password string, known bool, sources ...source) (wire.User, error) {
	many := "Too many failed sign-ins. Wait 15 minutes, or ask an owner of your account for a link to reset your password."
	if err := p.throttle.begin(ctx, p.now().UTC(), many, sources...); err != nil {
		return wire.User{}, err
	}

	u, fits, err := p.judge(ctx, email, password, known)
	if err != nil {
		return wire.User{}, errors.Join(err, p.throttle.takeBack(ctx, sources...))
	}
	if !fits {
		return wire.User{}, wire.Errorf(wire.CodeUnauthorized, "Wrong email or password.")
	}

	if err := p.throttle.forget(ctx, sources[0]); err != nil {
		return wire.User{}, err
	}
	return u, p.throttle.takeBack(ctx, sources[1:]...)
}

// judge reports whether this is the password of somebody who may sign in.
func (p *People) judge(ctx context.Context, email, password string, known bool) (_ wire.User, fits bool, _ error) {
	u, stored, err := p.store.UserByEmail(ctx, email)
	if wire.IsCode(err, wire.CodeNotFound) {
		stored, err = nobody, nil
	}
	if err != nil || len(password) > passwordBytesMax {
		return wire.User{}, false, err
	}

	err = p.hashers.run(ctx, known, func() { fits = verifyPassword(stored, password) })
	return u, fits && u.ID != "" && u.DisabledAt == nil, err
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
