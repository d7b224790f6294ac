package auth

import (
	"cmp"
	"context"
	"encoding/base32"
	"encoding/base64"
	"errors"
	"net/mail"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"promptspool/api/wire"
)

const (
	inviteAge     = 7 * 24 * time.Hour
	setupAge      = 10 * 365 * 24 * time.Hour // the operator may read the code in the log much later
	emailBytesMax = 254
	hashersMax    = 2
	strangersMax  = 32
)

// PeopleConfig configures a People.
type PeopleConfig struct {
	Store  PeopleStore      // required
	SignUp wire.SignUp      // required
	Now    func() time.Time // nil: time.Now

	SignInBy       wire.SignInBy // "": wire.SignInByBoth
	GroupProjects  []string      // in which groups of the issuer give roles; FoundProject makes none of them
	EmergencyOwner string        // the email that may use a password although all others sign in at the issuer
	IssuerSession  time.Duration // how long sessions last that began at the issuer; if absent an hour
}

// People manages the people who sign in to the dashboard. It is safe for concurrent use,
// and caches nothing of its Store, except that an owner exists.
type People struct {
	config   PeopleConfig
	store    PeopleStore
	now      func() time.Time
	hashers  hashers
	throttle throttle
	founded  atomic.Bool // see Fresh
}

// NewPeople returns a People on config.Store.
func NewPeople(config PeopleConfig) *People {
	if config.Now == nil {
		config.Now = time.Now
	}
	config.EmergencyOwner = written(config.EmergencyOwner)

	return &People{
		config:   config,
		store:    config.Store,
		now:      config.Now,
		hashers:  newHashers(),
		throttle: throttle{config.Store},
	}
}

// SignUp returns who may sign up.
func (p *People) SignUp() wire.SignUp { return p.config.SignUp }

// Setup returns a code with which the operator becomes the owner of the account
// `default`. It returns "" if that account has an owner. No one else can found it,
// because keys belong to it by default. Each request makes another code; using one
// invalidates all of them.
func (p *People) Setup(ctx context.Context) (code wire.Secret, err error) {
	if fresh, err := p.Fresh(ctx); !fresh || err != nil {
		return "", err
	}

	setup := wire.Invite{AccountName: BootstrapAccount, Role: wire.RoleOwner, Setup: true}
	code, _, err = p.newInvite(ctx, setup, setupAge)
	return code, err
}

// Fresh reports whether the account `default` has no owner yet, so that Setup's code is valid.
func (p *People) Fresh(ctx context.Context) (bool, error) {
	if p.founded.Load() {
		return false, nil
	}
	has, err := p.store.HasOwner(ctx, BootstrapAccount)
	p.founded.Store(has)

	return !has, err
}

// newInvite stores an invite, and returns it with its code.
func (p *People) newInvite(
	ctx context.Context, i wire.Invite, age time.Duration,
) (code wire.Secret, _ wire.Invite, err error) {
	code = newCode()
	i.ID, i.CreatedAt = wire.NewID(), p.now().UTC()
	i.ExpiresAt = i.CreatedAt.Add(age)
	return code, i, p.store.CreateInvite(ctx, hash(code), i)
}

// newCode returns a code that can be read aloud: 100 random bits.
func newCode() wire.Secret {
	text := strings.ToLower(base32.StdEncoding.EncodeToString(random(15)))
	return wire.Secret(text[:5] + "-" + text[5:10] + "-" + text[10:15] + "-" + text[15:20])
}

// Join signs a person up, and begins a session. ip is the caller's address.
//
// wire.CodeInvalid names the fields at fault. wire.CodeForbidden means that the code is
// missing or invalid. wire.CodeConflict means that the email or the account's name is
// taken; only callers with a code learn which. wire.CodeTooMany means that this address
// has had too many such conflicts.
func (p *People) Join(ctx context.Context, a wire.Application, ip string) (wire.SignedIn, error) {
	email, faults := checkEmail(a.Email)
	if fault := checkPassword(a.Password); fault != "" {
		faults = append(faults, wire.FieldError{Field: "password", Reason: fault})
	}
	if a.Code == "" && p.config.SignUp == wire.SignUpOpen {
		faults = append(faults, checkAccount(a.Account)...)
	}
	if faults != nil {
		return wire.SignedIn{}, wire.Invalid(faults...)
	}
	if err := p.mayUsePassword(p.config.EmergencyOwner); err != nil {
		return wire.SignedIn{}, err
	}

	invite, invited, err := p.invite(ctx, a.Code)
	if err != nil {
		return wire.SignedIn{}, err
	}
	// Only this person's password outlives the first sign-in at the issuer, so no stranger with an
	// invite may choose it, or learn who they are.
	named, byOperator := email == p.config.EmergencyOwner, invited.Setup || invited.By == wire.Operator
	if (named || p.config.SignInBy == wire.SignInByIssuer) && !(named && byOperator) {
		return wire.SignedIn{}, p.taken(ctx, ip, wire.Errorf(wire.CodeForbidden, "You cannot sign up as %s with a "+
			"password: sign in with your identity provider. The owner for emergencies takes the setup link, or a link "+
			"that the operator of this server makes with: promptspool people invite", email))
	}
	founds := a.Code == ""
	if founds && a.Account == BootstrapAccount {
		return wire.SignedIn{}, wire.Errorf(wire.CodeConflict,
			"The project %s is reserved for the operator of this server, who signs up with the setup "+
				"code that it printed when it started. Choose another name.", BootstrapAccount)
	}

	// Anybody may found an account, so founders wait like strangers. Those with a code do not.
	password, err := p.hashers.hash(ctx, !founds, a.Password)
	if err != nil {
		return wire.SignedIn{}, err
	}

	// The code may have been used meanwhile: the store checks it again and uses it up, in one
	// transaction.
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
		return wire.SignedIn{}, p.taken(ctx, ip, wire.Errorf(wire.CodeConflict,
			"This email or this project's name is taken. Sign in, or choose another."))
	case wire.IsCode(err, wire.CodeConflict):
		return wire.SignedIn{}, wire.Errorf(wire.CodeConflict,
			"%s has already signed up. Sign in to join with it, or use another email: this code is still valid.", email)
	case err != nil:
		return wire.SignedIn{}, err
	}
	if err := p.noteJoined(ctx, u, invited); err != nil {
		return wire.SignedIn{}, err
	}

	return p.newSession(ctx, u, wire.Session{})
}

// Accept makes a person who is signed in a member of an invite's project, and opens it in their
// session. ip is the caller's address. Errors are those of Invitation, and wire.CodeConflict if
// they are a member already.
func (p *People) Accept(ctx context.Context, s wire.SignedIn, code wire.Secret, ip string) (wire.SignedIn, error) {
	h, i, err := p.invite(ctx, code)
	if code == "" {
		err = errCode()
	}
	if err := p.judgeCode(ctx, err, ip); err != nil {
		return s, err
	}

	// The store checks the code again, as for a new person.
	u, err := p.store.JoinAccount(ctx, s.User.ID, h, p.now().UTC())
	switch {
	case wire.IsCode(err, wire.CodeNotFound):
		return s, errCode()
	case wire.IsCode(err, wire.CodeConflict):
		return s, wire.Errorf(wire.CodeConflict, "You already belong to the project %s. If you cannot open it, ask "+
			"an owner to enable you there. This code is still valid, for someone else.", i.AccountName)
	case err != nil:
		return s, err
	}
	if err := p.noteJoined(ctx, u, i); err != nil {
		return s, err
	}

	if err := p.store.OpenAccount(ctx, hash(s.Token), u.AccountID); err != nil {
		return s, err
	}
	return p.Session(ctx, s.Token)
}

// noteJoined adds a person who has just joined to the audit log, and who let them in.
func (p *People) noteJoined(ctx context.Context, u wire.User, i wire.Invite) error {
	as := "as " + string(u.Role)
	switch {
	case u.Founder:
		return p.Note(ctx, u, "create project", u.AccountName, as)
	case i.Setup:
		return p.Note(ctx, u, "join project", u.AccountName, as+", with the setup code")
	}

	return p.Note(ctx, u, "join project", u.AccountName, as+", invited by "+i.By)
}

// taken returns the error for a sign-up whose email or account is not to be had.
// By trying emails with fresh account names one could learn which emails exist, so an
// address gets only a few of these.
func (p *People) taken(ctx context.Context, ip string, err error) error {
	const many = "Too many sign-ups were rejected. Wait 15 minutes, then try again."
	return p.count(ctx, err, many, takenSource(ip))
}

// invite checks a code before the expensive part of signing up; CreateUser checks it
// again.
func (p *People) invite(ctx context.Context, code wire.Secret) (h [32]byte, i wire.Invite, err error) {
	if code == "" {
		if p.config.SignUp != wire.SignUpOpen {
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
	case !i.Setup && p.config.SignUp == wire.SignUpClosed:
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
		"Ask an owner of the project for a new link; on a fresh server, use the setup code "+
		"that it printed when it started.")
}

// hashCode returns the hash of a code as a person pasted it.
func hashCode(code wire.Secret) [32]byte { return hash(wire.Secret(strings.TrimSpace(string(code)))) }

// Invitation returns what a code invites to, without using it. ip is the caller's
// address. An invalid code is wire.CodeForbidden, and wire.CodeTooMany after too many of
// them.
func (p *People) Invitation(ctx context.Context, code wire.Secret, ip string) (wire.Invite, error) {
	_, i, err := p.invite(ctx, code)
	return i, p.judgeCode(ctx, err, ip)
}

// judgeCode counts invalid codes, and rejects further ones for a while if an address has
// tried many. Valid codes always pass: no one guesses 100 random bits, and a link must
// also work for people who share their address with someone who tries.
func (p *People) judgeCode(ctx context.Context, err error, ip string) error {
	if !wire.IsCode(err, wire.CodeForbidden) {
		return err
	}

	const many = "Too many invalid codes. Wait 15 minutes, then try again."
	return p.count(ctx, err, many, codeSource(ip))
}

// count counts a failure that did not involve a password. It returns failed, or an error
// with the message many if the source had failed too often before.
func (p *People) count(ctx context.Context, failed error, many string, s source) error {
	if err := p.throttle.begin(ctx, p.now().UTC(), many, s); err != nil {
		return err
	}
	return failed
}

// checkEmail returns an email in the form in which it is stored.
func checkEmail(typed string) (string, []wire.FieldError) {
	email := written(typed)
	a, err := mail.ParseAddress(email)
	if err != nil || a.Address != email || len(email) > emailBytesMax {
		fault := wire.FieldError{Field: "email", Reason: "must be an email address, like ann@example.com"}
		return "", []wire.FieldError{fault}
	}
	return email, nil
}

// written returns an email in the one form in which emails are compared. It is "" if a letter only folds to
// ASCII, such as the Kelvin sign: the form would be the email of someone else.
func written(typed string) string {
	typed = strings.TrimSpace(typed)
	if strings.ContainsFunc(typed, foldsToASCII) {
		return ""
	}
	return strings.ToLower(norm.NFC.String(typed))
}

func foldsToASCII(r rune) bool {
	isASCII := func(r rune) bool { return r <= unicode.MaxASCII }
	forms := norm.NFKC.String(string(r))
	forms += strings.ToLower(forms) + strings.ToUpper(forms)
	return !isASCII(r) && strings.ContainsFunc(forms, isASCII)
}

// SignIn begins a session. A wrong email or password is wire.CodeUnauthorized, which does
// not reveal which is wrong. After too many of them for one email or from one address it
// is wire.CodeTooMany, unless the browser is known to be this person's. It is
// wire.CodeUnavailable if too many callers wait.
func (p *People) SignIn(
	ctx context.Context, email, password string, from wire.Browser,
) (wire.SignedIn, error) {
	email = written(email)
	// Beside an owner for emergencies all others are refused like a wrong password, so that no one
	// learns who that is.
	if err := p.mayUsePassword(p.config.EmergencyOwner); err != nil {
		return wire.SignedIn{}, err
	}
	before, err := p.knows(ctx, from.Session, email)
	if err != nil {
		return wire.SignedIn{}, err
	}
	known := before.ID != ""

	// Strangers who guess at this email must not lock out the browser that its person uses.
	sources := []source{emailSource(email), ipSource(from.IP)}
	if known {
		sources = []source{browserSource(from.Session)}
	}
	u, err := p.prove(ctx, email, password, known, sources...)
	if err != nil {
		return wire.SignedIn{}, err
	}

	return p.begin(ctx, u, before, wire.Session{}, "sign in", "")
}

// knows returns the person whose browser this is, if they have this email: its token is of a
// session of theirs, which may have ended recently.
func (p *People) knows(ctx context.Context, token wire.Secret, email string) (u wire.User, err error) {
	if token == "" || len(token) > secretBytesMax {
		return u, nil
	}

	s, u, err := p.store.Session(ctx, hash(token))
	if wire.IsCode(err, wire.CodeNotFound) {
		return wire.User{}, nil
	}
	if err != nil || u.Email != email || !p.now().Before(s.ExpiresAt.Add(wire.SessionKept)) {
		return wire.User{}, err
	}
	return u, nil
}

// prove verifies a password. The attempt counts as a failure of all sources while it is
// verified, and if it fails. Success resets the failures of the first source.
func (p *People) prove(
	ctx context.Context, email, password string, known bool, sources ...source,
) (wire.User, error) {
	const many = "Too many failed sign-ins. Wait 15 minutes, " +
		"or ask an owner of your project for a link to reset your password."

	if err := p.throttle.begin(ctx, p.now().UTC(), many, sources...); err != nil {
		return wire.User{}, err
	}

	u, fits, err := p.judge(ctx, email, password, known)
	if err != nil {
		// The password was not verified, so nothing was learned by trying it.
		return wire.User{}, errors.Join(err, p.throttle.takeBack(ctx, sources...))
	}
	if !fits {
		return wire.User{}, wire.Errorf(wire.CodeUnauthorized, "Wrong email or password.")
	}

	// The other sources may be shared with an attacker who guesses: their failures stay.
	if err := p.throttle.forget(ctx, sources[0]); err != nil {
		return wire.User{}, err
	}
	return u, p.throttle.takeBack(ctx, sources[1:]...)
}

// judge reports whether this is the password of a person who may sign in.
func (p *People) judge(
	ctx context.Context, email, password string, known bool,
) (_ wire.User, fits bool, _ error) {
	u, stored, err := p.store.UserByEmail(ctx, email)
	if wire.IsCode(err, wire.CodeNotFound) {
		err = nil
	}
	// Unknown emails, and people without a password, take as long as all others.
	stored = cmp.Or(stored, decoyHash)
	if err != nil || len(password) > passwordBytesMax {
		return wire.User{}, false, err
	}

	err = p.hashers.run(ctx, known, func() { fits = verifyPassword(stored, password) })
	return u, fits && u.Role != "" && p.mayUsePassword(email) == nil, err
}

// begin begins a session, and notes in all projects of the person what they did for it. The project
// that before has open is open again.
func (p *People) begin(
	ctx context.Context, u, before wire.User, s wire.Session, action, detail string,
) (wire.SignedIn, error) {
	if err := p.noteEverywhere(ctx, u, action, detail); err != nil {
		return wire.SignedIn{}, err
	}
	if m, ok := u.Project(before.AccountName); ok {
		u = u.In(m)
	}
	return p.newSession(ctx, u, s)
}

// newSession makes a session with a new token.
func (p *People) newSession(ctx context.Context, u wire.User, s wire.Session) (wire.SignedIn, error) {
	age := 7 * 24 * time.Hour
	if s.ByIssuer {
		age = cmp.Or(p.config.IssuerSession, time.Hour)
	}
	s.UserID, s.Account, s.CreatedAt = u.ID, u.AccountID, p.now().UTC()
	s.ExpiresAt = s.CreatedAt.Add(age)
	token := wire.Secret(base64.RawURLEncoding.EncodeToString(random(32)))

	return wire.SignedIn{Token: token, User: u, Session: s}, p.store.CreateSession(ctx, hash(token), s)
}

// Session returns the session of a cookie's token; wire.CodeUnauthorized if there is
// none. Of one that has ended it returns neither the person nor the token.
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
	case !p.now().Before(s.ExpiresAt) || u.Role == "" || s.CreatedAt.Before(u.SessionsFrom):
		return wire.SignedIn{Session: s}, errSignedOut()
	}
	// Sessions that began with passwords end where those are no longer used.
	if !s.ByIssuer && p.mayUsePassword(u.Email) != nil {
		return wire.SignedIn{}, errSignedOut()
	}

	return wire.SignedIn{Token: token, User: u, Session: s}, nil
}

func errSignedOut() error {
	return wire.Errorf(wire.CodeUnauthorized, "Your session has expired. Sign in to continue.")
}

// Open opens the project of this name in a session. It is wire.CodeNotFound if the person is not
// a member, whether or not there is such a project.
func (p *People) Open(ctx context.Context, s wire.SignedIn, project string) (wire.SignedIn, error) {
	m, ok := s.User.Project(project)
	if !ok {
		return s, wire.Errorf(wire.CodeNotFound,
			"You are not a member of a project %q. Ask an owner of it for an invite.", project)
	}
	if m.AccountID == s.User.AccountID {
		return s, nil
	}

	s.User = s.User.In(m)
	return s, p.store.OpenAccount(ctx, hash(s.Token), m.AccountID)
}

// SignOut ends a session.
func (p *People) SignOut(ctx context.Context, token wire.Secret) error {
	return p.store.EndSession(ctx, hash(token), p.now().UTC())
}

// MadeFor returns the author of a form, in the project of its page, by its
// wire.SignedIn.FormSession. The session may have ended. If it is not remembered any more, or
// the person has left the project, the error is wire.CodeNotFound.
func (p *People) MadeFor(ctx context.Context, session string) (wire.User, error) {
	none := wire.Errorf(wire.CodeNotFound, "This form belongs to a session that is no longer known.")
	h, account, ok := wire.ParseFormSession(session)
	if !ok {
		return wire.User{}, none
	}

	s, u, err := p.store.Session(ctx, h)
	if err == nil && !p.now().Before(s.ExpiresAt.Add(wire.SessionKept)) {
		err = none
	}
	if err != nil {
		return wire.User{}, err
	}

	i := slices.IndexFunc(u.Projects, func(m wire.Membership) bool { return m.AccountID == account })
	if i < 0 {
		return wire.User{}, none
	}
	return u.In(u.Projects[i]), nil
}
