// Package auth says who calls a server. Auth makes, finds and revokes the keys with which programs call; People are
// those who sign in at the dashboard. What proves who somebody is (a key, a code, a session's token) is told once, when it is
// made, and only its SHA-256 is kept; of a password, which a person chose, a hash that is slow to compute (argon2id).
package auth

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/base64"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"promptspool/api/wire"
)

// BootstrapAccount is the name of the account that Bootstrap makes.
const BootstrapAccount = "default"

const (
	secretBytesMax    = 4 << 10 // no key of ours is longer; hashing what a stranger sends stays cheap
	bootstrapBytesMin = 32
	accountBytesMax   = 64
	keyNameRunesMax   = 128
)

// Config is what an Auth is made of.
type Config struct {
	Store Store            // required
	Now   func() time.Time // nil: time.Now
}

// Auth makes and checks keys. Safe for concurrent use; it keeps nothing but its Store, so that a key revoked there is
// refused from the next call on, and when which key was last used, until Run has stored that.
type Auth struct {
	store Store
	now   func() time.Time
	uses  *uses
}

// New makes an Auth over config.Store.
func New(config Config) *Auth {
	if config.Now == nil {
		config.Now = time.Now
	}
	return &Auth{store: config.Store, now: config.Now, uses: newUses()}
}

// Authenticate says whose key this is. A key that is empty, unknown, revoked or longer than 4 KiB is
// wire.CodeUnauthorized; an error of the store is returned as it is, for it says nothing about the key.
//
// The key is looked up by its hash, without a constant-time compare: how long the look-up takes may tell how much of the
// hash is known, but nobody can steer a SHA-256 towards a hash byte by byte, nor get from a hash to its key.
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
	}
	a.uses.note(k, a.now())
	return wire.Identity{Account: k.AccountID, KeyID: k.ID, Scope: k.Scope, Key: key, Verified: true}, nil
}

func unauthorized(what string) error {
	return wire.Errorf(wire.CodeUnauthorized, "%s Create one with `promptspool keys create` beside the server, "+
		"and send it as api_key in the body or in the header X-API-KEY.", what)
}

// CreateKey makes a key for the account of this name, which is made if there is none, and returns the secret, which
// cannot be had again. An account name has 1 to 64 of a-z 0-9 . _ and -, the key's name at most 128 characters;
// anything else, or an unknown scope, is wire.CodeInvalid.
func (a *Auth) CreateKey(ctx context.Context, account, name string, scope wire.Scope) (wire.Secret, wire.Key, error) {
	if err := check(account, name, scope); err != nil {
		return "", wire.Key{}, err
	}
	secret := wire.Secret("ps_" + base64.RawURLEncoding.EncodeToString(random(32)))
	k, err := a.store.CreateKey(ctx, hash(secret), a.newKey(account, name, scope))
	if err != nil {
		return "", wire.Key{}, err
	}
	return secret, k, nil
}

// Bootstrap gives the account `default` exactly this key, with scope full; calling it again changes nothing. A key that
// is shorter than 32 characters, longer than 4 KiB, or not of printable ASCII is wire.CodeInvalid; one that was revoked, or
// was made for something else, is wire.CodeConflict.
func (a *Auth) Bootstrap(ctx context.Context, key wire.Secret) (wire.Key, error) {
	switch {
	case len(key) < bootstrapBytesMin:
		return wire.Key{}, wire.Errorf(wire.CodeInvalid, "PROMPTSPOOL_BOOTSTRAP_KEY has %d characters; give it at least %d, "+
			"for example from `openssl rand -hex 32`.", len(key), bootstrapBytesMin)
	case len(key) > secretBytesMax:
		return wire.Key{}, wire.Errorf(wire.CodeInvalid, "PROMPTSPOOL_BOOTSTRAP_KEY has %d characters; give it at most %d.",
			len(key), secretBytesMax)
	case strings.ContainsFunc(string(key), func(r rune) bool { return r <= ' ' || r > '~' }):
		return wire.Key{}, wire.Errorf(wire.CodeInvalid, "PROMPTSPOOL_BOOTSTRAP_KEY holds a blank, a line break or another "+
			"character that a header cannot carry; give it printable ASCII only.")
	}
	k, err := a.store.CreateKey(ctx, hash(key), a.newKey(BootstrapAccount, "bootstrap", wire.ScopeFull))
	switch {
	case wire.IsCode(err, wire.CodeConflict):
		return wire.Key{}, wire.Errorf(wire.CodeConflict, "The key in PROMPTSPOOL_BOOTSTRAP_KEY was revoked; set another one.")
	case err != nil:
		return wire.Key{}, err
	case k.AccountName != BootstrapAccount || k.Scope != wire.ScopeFull:
		return wire.Key{}, wire.Errorf(wire.CodeConflict, "The key in PROMPTSPOOL_BOOTSTRAP_KEY is already key %s of account %s "+
			"with scope %s; set another one.", k.ID, k.AccountName, k.Scope)
	}
	return k, nil
}

// Keys lists all keys, the oldest first, revoked ones too.
func (a *Auth) Keys(ctx context.Context) ([]wire.Key, error) { return a.store.Keys(ctx) }

// RevokeKey refuses a key from now on, and returns it; wire.CodeNotFound if there is none with this id. Revoking it
// again changes nothing.
func (a *Auth) RevokeKey(ctx context.Context, id string) (wire.Key, error) {
	k, err := a.store.RevokeKey(ctx, id, a.now().UTC())
	if wire.IsCode(err, wire.CodeNotFound) {
		return wire.Key{}, wire.Errorf(wire.CodeNotFound, "There is no key with the id %q. See `promptspool keys list`.", id)
	}
	return k, err
}

func (a *Auth) newKey(account, name string, scope wire.Scope) wire.Key {
	return wire.Key{ID: newKeyID(), AccountName: account, Name: name, Scope: scope, CreatedAt: a.now().UTC()}
}

// newKeyID makes an id that a person can type: 60 random bits.
func newKeyID() string {
	return "key_" + strings.ToLower(base32.StdEncoding.EncodeToString(random(10)))[:12]
}

func random(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails: it ends the process instead
	return b
}

func hash(key wire.Secret) [32]byte { return sha256.Sum256([]byte(key)) }

// check judges what a person typed.
func check(account, name string, scope wire.Scope) error {
	faults := checkAccount(account)
	fault := func(field, reason string) { faults = append(faults, wire.FieldError{Field: field, Reason: reason}) }
	if !utf8.ValidString(name) || utf8.RuneCountInString(name) > keyNameRunesMax || strings.ContainsFunc(name, unicode.IsControl) {
		fault("name", "must be at most 128 characters, none of them a control character")
	}
	if scope != wire.ScopeApp && scope != wire.ScopeFull {
		fault("scope", "must be app or full")
	}
	if faults != nil {
		return wire.Invalid(faults...)
	}
	return nil
}

// checkAccount judges the name of an account.
func checkAccount(name string) []wire.FieldError {
	if name == "" || len(name) > accountBytesMax || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789._-") != "" {
		return []wire.FieldError{{Field: "account", Reason: "must be 1 to 64 of a-z 0-9 . _ and -"}}
	}
	return nil
}
