package wire

import (
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
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

// Scope is a set of rights of a key. Its text is app, full, or the names of rights with
// commas between them.
type Scope uint8

// The rights of keys; package access has what each of them allows.
const (
	ScopeLog     Scope = 1 << iota // log calls, metadata, groups and links
	ScopeScore                     // score calls
	ScopeFetch                     // fetch templates
	ScopeRead                      // search and read what was logged, and list templates
	ScopePublish                   // publish templates and move labels
	ScopeManage                    // delete and rewrite what was logged

	ScopeApp  = ScopeLog | ScopeScore | ScopeFetch // what an app needs
	ScopeFull = ScopeApp | ScopeRead | ScopePublish | ScopeManage
)

// ScopeNames are the names of the rights, the least first.
var ScopeNames = []string{"log", "score", "fetch", "read", "publish", "manage"}

// String returns the scope's text, "none" for the empty set.
func (s Scope) String() string {
	switch s {
	case 0:
		return "none"
	case ScopeApp:
		return "app"
	case ScopeFull:
		return "full"
	}

	return strings.Join(s.Names(), ",")
}

// Names returns the names of the rights in the set.
func (s Scope) Names() (names []string) {
	for i, name := range ScopeNames {
		if s&(1<<i) != 0 {
			names = append(names, name)
		}
	}

	return names
}

// ParseScope reads the text of a scope: at least one right, in any order. Its error says
// what is accepted.
func ParseScope(text string) (s Scope, err error) {
	for name := range strings.SplitSeq(text, ",") {
		name = strings.TrimSpace(name)
		i := slices.Index(ScopeNames, name)
		switch {
		case name == "app":
			s |= ScopeApp
		case name == "full":
			s |= ScopeFull
		case i >= 0:
			s |= 1 << i
		default:
			return 0, Errorf(CodeInvalid,
				"%.40q is no scope; a scope is app, full, or some of %s with commas between them",
				name, strings.Join(ScopeNames, ", "))
		}
	}

	return s, nil
}

// MarshalText returns the scope's text, and an empty one for the empty set.
func (s Scope) MarshalText() ([]byte, error) {
	if s == 0 {
		return nil, nil
	}
	return []byte(s.String()), nil
}

// UnmarshalText reads the text of a scope.
func (s *Scope) UnmarshalText(text []byte) (err error) {
	*s = 0
	if len(text) > 0 {
		*s, err = ParseScope(string(text))
	}
	return err
}

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

// Allows reports whether the identity's key has at least one of some rights.
func (id Identity) Allows(rights Scope) bool { return id.Verified && id.Scope&rights != 0 }

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
