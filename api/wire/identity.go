package wire

import (
	"fmt"
	"io"
	"log/slog"
	"time"
)

// Secret is a key as its owner sends it. It prints, logs and marshals as "[secret]"; only
// a conversion to string shows it.
//
// Keep it out of unexported fields of what is printed, and out of keys of maps that
// become JSON: its methods are not called there.
type Secret string

const hidden = "[secret]"

// String hides the secret.
func (Secret) String() string { return hidden }

// Format hides the secret from every verb of fmt.
func (Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, hidden) }

// LogValue hides the secret from slog.
func (Secret) LogValue() slog.Value { return slog.StringValue(hidden) }

// MarshalText hides the secret from encoding/json. Reading one from JSON works as for any
// string.
func (Secret) MarshalText() ([]byte, error) { return []byte(hidden), nil }

// Scope says what a key may do.
type Scope string

// The scopes of keys.
const (
	ScopeApp  Scope = "app"  // track-*, groups, template fetch and /sync
	ScopeFull Scope = "full" // also search, read, publish and delete
)

// Identity is the caller. If Verified is false, Account is empty: a sidecar that cannot
// ask its server accepts writes of a key that it has never seen, and leaves the verdict
// to the server.
type Identity struct {
	Account  string // the account's id, not its name
	KeyID    string
	Scope    Scope
	Key      Secret // as the caller sent it; a sidecar forwards it
	Verified bool
}

// Allows reports whether the identity's key covers scope.
func (id Identity) Allows(scope Scope) bool {
	return id.Verified && (id.Scope == ScopeFull || id.Scope == scope)
}

// KeyVerdict answers GET /sync/key: what the key may do.
type KeyVerdict struct {
	Success bool   `json:"success"`
	Account string `json:"account"`
	KeyID   string `json:"key_id"`
	Scope   Scope  `json:"scope"`
}

// Key is what a server knows about a key; the secret itself is not stored.
type Key struct {
	ID          string     `json:"id"`
	AccountID   string     `json:"account_id"`
	AccountName string     `json:"account"`
	Name        string     `json:"name"`
	Scope       Scope      `json:"scope"`
	CreatedAt   time.Time  `json:"created_at"`
	RevokedAt   *time.Time `json:"revoked_at"`
	LastUsedAt  *time.Time `json:"last_used_at"` // to about a minute; nil means never
}

// Account owns records, templates and keys.
type Account struct {
	ID        string    `json:"id"`
	Name      string    `json:"name"`
	CreatedAt time.Time `json:"created_at"`
}
