// Package auth identifies the callers of a server. Auth makes, checks and revokes the
// keys of programs; People does the same for people who sign in to the dashboard.
//
// Keys, codes and session tokens are shown once, when they are made; only their SHA-256
// is stored. They are random, so nothing slower is needed. Passwords, which people
// choose, are stored as argon2id hashes.
package auth

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/base64"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"promptspool/api/wire"
)

// BootstrapAccount is the name of the account that Bootstrap makes.
const BootstrapAccount = "default"

const (
	secretBytesMax    = 4 << 10 // no key is longer, so hashing what a stranger sends stays cheap
	bootstrapBytesMin = 32
	accountBytesMax   = 64
	keyNameRunesMax   = 128
)

// Config configures an Auth.
type Config struct {
	Store Store            // required
	Now   func() time.Time // nil: time.Now
}

// Auth makes and checks keys. It is safe for concurrent use. It caches no keys, so that a
// revoked one is rejected from the next request on; it only collects when keys were last
// used, until Run has stored that.
type Auth struct {
	store Store
	now   func() time.Time

	mu   sync.Mutex
	used map[string]time.Time // under mu; when keys were last used, by id, until Run has stored it
}

// New returns an Auth on config.Store.
func New(config Config) *Auth {
	if config.Now == nil {
		config.Now = time.Now
	}
	return &Auth{store: config.Store, now: config.Now, used: map[string]time.Time{}}
}

// Authenticate returns the identity that a key belongs to. An empty, unknown, revoked or
// overlong key is wire.CodeUnauthorized, and so is one that ended wire.KeyGrace ago; before
// that, the identity is marked as expired. Errors of the store are returned as they are: they
// say nothing about the key.
//
// The look-up by hash is not constant-time. Its duration may reveal how much of a stored
// hash matches, but no one can choose keys whose SHA-256 approaches that hash, nor
// compute a key from its hash.
func (a *Auth) Authenticate(ctx context.Context, key wire.Secret) (wire.Identity, error) {
	if key == "" {
		return wire.Identity{}, unauthorized("The API key is missing.")
	}
	if len(key) > secretBytesMax {
		return wire.Identity{}, unauthorized("This API key is longer than any key of this server.")
	}

	k, err := a.store.KeyByHash(ctx, hash(key))
	switch {
	case wire.IsCode(err, wire.CodeNotFound):
		return wire.Identity{}, unauthorized("This API key is not known to the server.")
	case err != nil:
		return wire.Identity{}, err
	case k.RevokedAt != nil:
		return wire.Identity{}, unauthorized("This API key was revoked.")
	case k.Archived:
		return wire.Identity{}, unauthorized("The project of this API key is archived.")
	}

	now := a.now()
	id := wire.Identity{
		Account:  k.AccountID,
		KeyID:    k.ID,
		Scope:    k.Scope,
		Prefix:   k.Prefix,
		Key:      key,
		Verified: true,
	}
	if k.ExpiresAt != nil {
		id.Expires, id.Expired = *k.ExpiresAt, !now.Before(*k.ExpiresAt)
		if !now.Before(k.ExpiresAt.Add(wire.KeyGrace)) {
			return wire.Identity{}, wire.ErrKeyExpired(id.Expires)
		}
	}

	// The time of last use is stored later: a write for each request would cost more than
	// the request.
	a.mu.Lock()
	defer a.mu.Unlock()
	a.used[k.ID] = now.UTC()

	return id, nil
}

// unauthorized adds the next step to a problem with the key.
func unauthorized(problem string) error {
	return wire.Errorf(wire.CodeUnauthorized, "%s Create one with `promptspool keys create` on the server, "+
		"and send it as api_key in the body or in the header X-API-KEY.", problem)
}

// CreateKey makes a key, and the account of this name if it does not exist. It returns
// the secret, which cannot be shown again. Whatever of it is not valid is wire.CodeInvalid: an
// account's name has 1 to 64 of a-z 0-9 . _ and -, a key's name at most 128 characters.
func (a *Auth) CreateKey(ctx context.Context, n wire.NewKey) (wire.Secret, wire.Key, error) {
	if err := a.check(n); err != nil {
		return "", wire.Key{}, err
	}

	// The store gets the hash only, so a copy of the database contains no keys.
	secret := newSecret()
	k, err := a.store.CreateKey(ctx, hash(secret), a.newKey(n))
	if err != nil {
		return "", wire.Key{}, err
	}

	return secret, k, nil
}

// RotateKey makes the successor of a key, which ends after overlap if it does not end sooner. The
// new key has its name, account, rights, prefix and lifetime. It returns the new secret, which
// cannot be shown again, and both keys.
//
// An unknown id is wire.CodeNotFound, a key that was revoked or has a successor wire.CodeConflict,
// and an overlap below 0 wire.CodeInvalid.
func (a *Auth) RotateKey(
	ctx context.Context, id string, overlap time.Duration,
) (secret wire.Secret, made, old wire.Key, err error) {
	if overlap < 0 {
		return "", made, old, wire.Invalid(wire.FieldError{Field: "overlap", Reason: "must not be negative"})
	}

	secret = newSecret()
	made, err = a.store.RotateKey(ctx, id, hash(secret), func(k *wire.Key) (wire.Key, error) {
		switch {
		case k.RevokedAt != nil:
			return wire.Key{}, wire.Errorf(wire.CodeConflict, "The key %s is revoked. Make another one.", k.ID)
		case k.Archived:
			return wire.Key{}, wire.Errorf(wire.CodeConflict, "The project of the key %s is archived.", k.ID)
		case k.Successor != "":
			return wire.Key{}, wire.Errorf(wire.CodeConflict,
				"The key %s was rotated already: %s replaces it. Rotate that one.", k.ID, k.Successor)
		}

		next := a.newKey(wire.NewKey{Account: k.AccountName, Name: k.Name, Scope: k.Scope, Prefix: k.Prefix})
		next.AccountID = k.AccountID
		if k.ExpiresAt != nil {
			next.ExpiresAt = new(next.CreatedAt.Add(k.ExpiresAt.Sub(k.CreatedAt)))
		}

		k.Successor = next.ID
		if end := next.CreatedAt.Add(overlap); k.ExpiresAt == nil || end.Before(*k.ExpiresAt) {
			k.ExpiresAt = &end
		}
		old = *k
		return next, nil
	})
	if err != nil {
		return "", wire.Key{}, wire.Key{}, explainNoKey(err, id)
	}

	return secret, made, old, nil
}

// Bootstrap adds exactly this key to the account `default`, with scope full. Calling it
// again changes nothing. A key of less than 32 or more than 4,096 characters, or with
// others than printable ASCII, is wire.CodeInvalid. One that was revoked, or belongs to
// something else, is wire.CodeConflict.
func (a *Auth) Bootstrap(ctx context.Context, key wire.Secret) (wire.Key, error) {
	// A header cannot carry other characters.
	unfit := strings.ContainsFunc(string(key), func(r rune) bool { return r <= ' ' || r > '~' })
	if unfit || len(key) < bootstrapBytesMin || len(key) > secretBytesMax {
		return wire.Key{}, wire.Errorf(wire.CodeInvalid, "PROMPTSPOOL_BOOTSTRAP_KEY has %d bytes; give it %d to %d of "+
			"printable ASCII without blanks and line breaks, for example from `openssl rand -hex 32`.",
			len(key), bootstrapBytesMin, secretBytesMax)
	}

	// The store returns a key that exists as it is, so each restart may try again. It must be what
	// this one would have been.
	k, err := a.store.CreateKey(ctx, hash(key), a.newKey(wire.NewKey{
		Account: BootstrapAccount,
		Name:    "bootstrap",
		Scope:   wire.ScopeFull,
	}))
	switch {
	case wire.IsCode(err, wire.CodeConflict):
		return wire.Key{}, wire.Errorf(wire.CodeConflict,
			"The key in PROMPTSPOOL_BOOTSTRAP_KEY was revoked; set another one.")
	case err != nil:
		return wire.Key{}, err
	case k.AccountName != BootstrapAccount || k.Scope != wire.ScopeFull:
		return wire.Key{}, wire.Errorf(wire.CodeConflict,
			"The key in PROMPTSPOOL_BOOTSTRAP_KEY is already key %s of project %s "+
				"with scope %s; set another one.", k.ID, k.AccountName, k.Scope)
	}

	return k, nil
}

// Keys lists all keys, oldest first, including revoked ones.
func (a *Auth) Keys(ctx context.Context) ([]wire.Key, error) { return a.store.Keys(ctx) }

// RevokeKey revokes a key from now on, and returns it. Revoking it again changes nothing.
// An unknown id is wire.CodeNotFound.
func (a *Auth) RevokeKey(ctx context.Context, id string) (wire.Key, error) {
	k, err := a.store.RevokeKey(ctx, id, a.now().UTC())
	return k, explainNoKey(err, id)
}

// explainNoKey names the id that a person typed in the error of a key that does not exist.
func explainNoKey(err error, id string) error {
	if !wire.IsCode(err, wire.CodeNotFound) {
		return err
	}
	return wire.Errorf(wire.CodeNotFound,
		"There is no key with the id %q. See `promptspool keys list`.", id)
}

func (a *Auth) newKey(n wire.NewKey) wire.Key {
	return wire.Key{
		ID:          newKeyID(),
		AccountName: n.Account,
		Name:        n.Name,
		Scope:       n.Scope,
		Prefix:      n.Prefix,
		CreatedAt:   a.now().UTC(),
		ExpiresAt:   n.ExpiresAt,
	}
}

func newSecret() wire.Secret {
	return wire.Secret("ps_" + base64.RawURLEncoding.EncodeToString(random(32)))
}

// newKeyID returns an id that a person can type: 60 random bits.
func newKeyID() string {
	return "key_" + strings.ToLower(base32.StdEncoding.EncodeToString(random(10)))[:12]
}

func random(n int) []byte {
	b := make([]byte, n)
	// Never fails: it would end the process.
	_, _ = rand.Read(b)
	return b
}

func hash(key wire.Secret) [32]byte { return sha256.Sum256([]byte(key)) }

// check validates the parts of a new key, which a person typed.
func (a *Auth) check(n wire.NewKey) error {
	faults := checkAccount(n.Account)
	fault := func(field, reason string) {
		faults = append(faults, wire.FieldError{Field: field, Reason: reason})
	}

	if !isLine(n.Name, keyNameRunesMax) {
		fault("name", "must be at most 128 characters, none of them a control character")
	}
	if n.Scope == 0 || n.Scope&^wire.ScopeFull != 0 {
		fault("scope", "must be app, full, or some of "+strings.Join(wire.ScopeNames, ", "))
	}
	switch {
	case n.Prefix != "" && n.Scope&(wire.ScopeRead|wire.ScopeManage) != 0:
		fault("prefix", "must be empty with the rights read and manage, which cover everything")
	case !isLine(n.Prefix, wire.NameRunesMax), n.Prefix != "" && strings.Trim(n.Prefix, "0123456789") == "":
		fault("prefix", "must be the beginning of a template's name, and no number: ids are numbers")
	}
	if n.ExpiresAt != nil && !n.ExpiresAt.After(a.now()) {
		fault("expires_at", "must be in the future")
	}

	if faults != nil {
		return wire.Invalid(faults...)
	}
	return nil
}

// isLine reports whether a text has at most so many characters, and no control character.
func isLine(text string, runesMax int) bool {
	return utf8.RuneCountInString(text) <= runesMax && utf8.ValidString(text) &&
		!strings.ContainsFunc(text, unicode.IsControl)
}

// checkAccount validates the name of an account.
func checkAccount(name string) []wire.FieldError {
	const allowed = "abcdefghijklmnopqrstuvwxyz0123456789._-"

	if name == "" || len(name) > accountBytesMax || strings.Trim(name, allowed) != "" {
		return []wire.FieldError{{Field: "project", Reason: "must be 1 to 64 of a-z 0-9 . _ and -"}}
	}
	return nil
}

// usesEvery is how often the times of last use are stored, with one write for all keys.
const usesEvery = time.Minute

// usesPatience is how long a stop waits for a database that does not answer.
const usesPatience = 2 * time.Second

// Run stores every minute when keys were last used, and once more when ctx ends. It then returns nil.
func (a *Auth) Run(ctx context.Context) error {
	tick := time.NewTicker(usesEvery)
	defer tick.Stop()

	for {
		select {
		case <-ctx.Done():
			stopping, stopped := context.WithTimeout(context.WithoutCancel(ctx), usesPatience)
			defer stopped()
			_ = a.StoreUses(stopping)
			return nil
		case <-tick.C:
			// The next use records it again.
			_ = a.StoreUses(ctx)
		}
	}
}

// StoreUses stores when keys were used since the last call. On an error, these uses are
// dropped.
func (a *Auth) StoreUses(ctx context.Context) error {
	a.mu.Lock()
	used := a.used
	a.used = map[string]time.Time{}
	a.mu.Unlock()

	if len(used) == 0 {
		return nil
	}
	return a.store.TouchKeys(ctx, used)
}

// Store stores accounts and keys. Its methods may be called concurrently; what they
// return belongs to the caller. A write is durable when its method returns. Times keep at
// least microseconds. Besides the errors named below, a store returns errors that mean
// that it could not answer, such as wire.CodeUnavailable.
type Store interface {
	// CreateKey stores k under the hash of its secret and returns it with AccountID set:
	// that of the account called k.AccountName, which is made with a UUIDv7 if it does
	// not exist. The caller sets everything else; k.ID is fresh. A hash that exists
	// already is left alone: its key is returned as it is stored, or, if it is revoked,
	// wire.CodeConflict.
	CreateKey(ctx context.Context, hash [32]byte, k wire.Key) (wire.Key, error)

	// KeyByHash returns a key, even if it is revoked (RevokedAt is set then);
	// wire.CodeNotFound if there is none.
	KeyByHash(ctx context.Context, hash [32]byte) (wire.Key, error)

	// Keys lists the keys of all accounts, including revoked ones, by CreatedAt with the
	// oldest first, then by ID.
	Keys(ctx context.Context) ([]wire.Key, error)

	// RevokeKey sets RevokedAt and returns the key; wire.CodeNotFound if there is none
	// with this id. A key that was revoked before keeps its first time.
	RevokeKey(ctx context.Context, id string, at time.Time) (wire.Key, error)

	// RotateKey makes the successor of a key, by the id of the old one; wire.CodeNotFound if there
	// is none. In one transaction, change edits the old key and returns the new one, which is
	// stored under the hash. change may be called more than once; after its error nothing has
	// changed.
	RotateKey(
		ctx context.Context, id string, hash [32]byte, change func(old *wire.Key) (wire.Key, error),
	) (wire.Key, error)

	// TouchKeys sets LastUsedAt of keys, by id, if it is later than the stored time. It
	// ignores ids that do not exist.
	TouchKeys(ctx context.Context, used map[string]time.Time) error
}

// PeopleStore stores the people who sign in to the dashboard. The contract of Store
// applies.
type PeopleStore interface {
	FailureStore

	// People.

	// CreateUser stores u with the hash of its password, as a member of one account, and
	// returns it with AccountID set.
	//
	// With an invite (a hash that is not zero), account and role are the invite's, which
	// is used up. The error is wire.CodeNotFound if there is no such invite, it expired
	// before u.CreatedAt, or it is a setup code and its account has an owner.
	//
	// Without one, u founds the account u.AccountName: wire.CodeConflict if it exists.
	// wire.CodeConflict also means that the email is taken; nothing has changed then.
	CreateUser(ctx context.Context, u wire.User, password string, invite [32]byte) (wire.User, error)

	// EnterUser returns the person of a login in the first account that they may open, and the
	// memberships whose GroupRole has changed: they are replaced by l.Grants, whose accounts
	// are made if they do not exist. It is the person whom the issuer has named so before,
	// whatever the email is now, or else the one with u.Email.
	//
	// The first time, the person's name at the issuer is kept. Before, a password was set
	// without a proof that the email is theirs: it is deleted then, unless keepPassword, and
	// their sessions end at u.CreatedAt. Another name later is wire.CodeConflict, and changes
	// nothing. A person whose memberships are all disabled gets no further one.
	//
	// If there is no such person, it is u, without a password, but with the membership of an
	// invite (a hash that is not zero), as CreateUser says. It is
	// wire.CodeNotFound without an invite and without a grant.
	EnterUser(
		ctx context.Context, u wire.User, l wire.Login, invite [32]byte, keepPassword bool,
	) (entered wire.User, changed []wire.Membership, err error)

	// JoinAccount makes a person a member of an invite's account, with its role. It uses the
	// invite up, with the errors of CreateUser, and ends the person's reset links.
	// wire.CodeConflict means that they are a member already, maybe a disabled one; nothing
	// has changed then.
	JoinAccount(ctx context.Context, id string, invite [32]byte, at time.Time) (wire.User, error)

	// UserByEmail returns a person, in the first account that they may open with a password,
	// and its hash; wire.CodeNotFound if there is none. A person who may open no account has
	// neither account nor role.
	UserByEmail(ctx context.Context, email string) (u wire.User, password string, err error)

	// Users lists the people of an account by CreatedAt, oldest first.
	Users(ctx context.Context, account string) ([]wire.User, error)

	// Everybody lists the people of all accounts, in the order of Users: each person once for
	// each of their accounts, or once without any.
	Everybody(ctx context.Context) ([]wire.User, error)

	// Account returns the id of the account of this name, which is made if it does not
	// exist.
	Account(ctx context.Context, name string) (id string, err error)

	// ChangeUser changes a person of the account, and returns it: their role and whether they
	// are disabled in this account only, or, if it is "", in all of theirs. Each change ends
	// the person's sessions (SessionsFrom becomes change.At) and reset links. Enabling a
	// person in all accounts forgets their name at the issuer. The error is
	// wire.CodeNotFound if the account has no such person, or wire.CodeConflict if an account
	// would lose its last owner who can sign in.
	ChangeUser(ctx context.Context, account, id string, change wire.UserChange) (wire.User, error)

	// HasOwner reports whether the account of this name has a person whose role is owner.
	HasOwner(ctx context.Context, accountName string) (bool, error)

	// Accounts, which people call projects.

	// Projects lists all accounts, by CreatedAt with the oldest first.
	Projects(ctx context.Context) ([]wire.Account, error)

	// CreateProject makes an account; wire.CodeConflict if there is one of this name.
	CreateProject(ctx context.Context, name string) (wire.Account, error)

	// FoundProject makes an account with this person as its owner. The error is wire.CodeConflict if
	// there is one of this name, or if the person is in wire.FoundedMax accounts.
	FoundProject(ctx context.Context, id, name string, at time.Time) (wire.User, error)

	// ChangeProject changes the account of this name and, in the same transaction, its keys,
	// memberships and invites. The error is wire.CodeNotFound if there is none, and
	// wire.CodeConflict if the new name is taken.
	ChangeProject(ctx context.Context, name string, change wire.ProjectChange) (wire.Account, error)

	// SetMember gives the person with this email a role in the account of this name. Both are
	// made if they do not exist, the person without a password. The person's sessions end.
	// The error is wire.CodeConflict if an account would lose its last owner.
	SetMember(
		ctx context.Context, email, project string, role wire.Role, at time.Time,
	) (wire.User, error)

	// Invites, by the hashes of their codes. Expired ones may be deleted.

	// CreateInvite stores an invite.
	CreateInvite(ctx context.Context, hash [32]byte, i wire.Invite) error

	// Invite returns an unused invite, which may have expired; wire.CodeNotFound if there
	// is none.
	Invite(ctx context.Context, hash [32]byte) (wire.Invite, error)

	// Invites lists the invites of an account, by its name, oldest first, without setup
	// codes.
	Invites(ctx context.Context, accountName string) ([]wire.Invite, error)

	// DeleteInvite deletes an invite; wire.CodeNotFound if the account has none with this
	// id.
	DeleteInvite(ctx context.Context, accountName, id string) error

	// Password reset links, by the hashes of their codes. Expired ones may be deleted.

	// CreateReset stores a link for a person of an account, or of any if that is "", and
	// replaces any other one of the same person, whom it returns. The error is
	// wire.CodeNotFound if the account has no such person, wire.CodeConflict if they are
	// disabled or have only roles of groups, and wire.CodeForbidden if they are also a
	// member, even a disabled one, of an account that is not in owned: with a new password
	// one could act there.
	CreateReset(
		ctx context.Context, account string, owned []string, hash [32]byte, r wire.Reset,
	) (wire.User, error)

	// Reset returns an unused link, which may have expired, and its person, as UserByEmail
	// does; wire.CodeNotFound if there is none.
	Reset(ctx context.Context, hash [32]byte) (wire.Reset, wire.User, error)

	// SpendReset uses a link up. In one transaction, it sets the hash of its person's
	// password and ends their sessions, as ChangeUser does. The error is
	// wire.CodeNotFound if there is no such link, it expired before at, or its person may
	// open no account.
	SpendReset(
		ctx context.Context, hash [32]byte, password string, at time.Time,
	) (wire.Reset, wire.User, error)

	// Sessions, by the hashes of their tokens.

	// CreateSession stores a session, and deletes those that expired more than
	// wire.SessionKept before s.CreatedAt.
	CreateSession(ctx context.Context, hash [32]byte, s wire.Session) error

	// Session returns a session and its person, even if either is no longer valid;
	// wire.CodeNotFound if there is none. The person is in the account that the session has
	// open, or in the first that they may open if they may not open that one any more.
	Session(ctx context.Context, hash [32]byte) (wire.Session, wire.User, error)

	// OpenAccount makes an account the open one of a session, which exists.
	OpenAccount(ctx context.Context, hash [32]byte, account string) error

	// EndSession makes a session expire at a time, unless it expires earlier, and forgets its
	// ID token. Ending one that does not exist succeeds.
	EndSession(ctx context.Context, hash [32]byte, at time.Time) error

	// The audit log: changes that people made.

	// Audit stores an entry.
	Audit(ctx context.Context, account string, e wire.AuditEntry) error

	// AuditLog lists at most limit entries of an account, newest first, from below the id
	// before ("" for the newest).
	AuditLog(ctx context.Context, account, before string, limit int) ([]wire.AuditEntry, error)

	// TrimAudit deletes the entries of all accounts whose ids are from before oldest, and those
	// from before fresh that are beyond the newest most of an account.
	TrimAudit(ctx context.Context, oldest, fresh time.Time, most int) error
}

// FailureStore counts failed sign-ins, by the SHA-256 of what they have in common (a
// source). It may delete counts whose time is over.
type FailureStore interface {
	// Failures returns the counts of sources, in their order; zero where there is none.
	// Their time may be over.
	Failures(ctx context.Context, sources [][32]byte) ([]wire.Failures, error)

	// AddFailure counts one more failure of each source. If there is no count, or its
	// time is over by now, a new one begins, which ends at until.
	AddFailure(ctx context.Context, sources [][32]byte, now, until time.Time) error

	// TakeBackFailure counts one failure less of each source that has any.
	TakeBackFailure(ctx context.Context, sources [][32]byte) error

	// ForgetFailures deletes the count of a source. Deleting one that does not exist
	// succeeds.
	ForgetFailures(ctx context.Context, source [32]byte) error
}
