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
			at := next.CreatedAt.Add(k.ExpiresAt.Sub(k.CreatedAt))
			next.ExpiresAt = &at
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
	_, _ = rand.Read(b) // never fails: it would end the process
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
			_ = a.StoreUses(ctx) // the next use records it again
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
