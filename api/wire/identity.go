package wire

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize/english"
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

// ScopeNames are the names of the rights, the least first. An older server cannot read the row of a
// key with a right that it does not know: a new right raises the formats of the stores. For such a
// key a sidecar of 0.1.0 has no verdict: it takes the key's writes, and serves it no templates.
var ScopeNames = []string{"log", "score", "fetch", "read", "publish", "manage"}

// ScopeWords are what the text of a scope is made of: the names of sets and of rights.
var ScopeWords = append([]string{"app", "full"}, ScopeNames...)

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
	Prefix   string    // of the names of the templates that the key may use; "" is all
	Key      Secret    // as the caller sent it; a sidecar forwards it
	Expires  time.Time // when the key ends; zero is never
	Scope    Scope
	Expired  bool // the key has ended, and only delivers what was accepted before
	Verified bool
}

// Sees reports whether the identity's key may use a template of this name. For one that may
// not, the template does not exist.
func (id Identity) Sees(template string) bool { return strings.HasPrefix(template, id.Prefix) }

// Allows reports whether the identity's key has at least one of some rights.
func (id Identity) Allows(rights Scope) bool { return id.Verified && id.Scope&rights != 0 }

// KeyGrace is how long a key that has ended still delivers what was accepted before its end.
const KeyGrace = 30 * 24 * time.Hour

// KeyVerdict answers GET /sync/key: what the key may do.
type KeyVerdict struct {
	Success   bool      `json:"success"`
	Account   string    `json:"account"`
	KeyID     string    `json:"key_id"`
	Scope     Scope     `json:"scope"`
	Prefix    string    `json:"prefix,omitempty"`    // of the templates that it may use; "" is all
	ExpiresAt time.Time `json:"expires_at,omitzero"` // UTC; zero is never
}

// UnmarshalJSON reads a verdict. It leaves out rights that are not known here, which a newer server may
// give: the key is good for the others.
func (v *KeyVerdict) UnmarshalJSON(text []byte) error {
	type plain KeyVerdict
	read := struct {
		*plain
		Scope string `json:"scope"`
	}{plain: (*plain)(v)}
	if err := json.Unmarshal(text, &read); err != nil {
		return err
	}

	v.Scope = 0
	for name := range strings.SplitSeq(read.Scope, ",") {
		if right, err := ParseScope(name); err == nil {
			v.Scope |= right
		}
	}
	return nil
}

// Key is what a server knows about a key; the secret itself is not stored. Scope and prefix
// never change.
type Key struct {
	ID          string     `json:"id"`
	AccountID   string     `json:"account_id"`
	AccountName string     `json:"account"`
	Name        string     `json:"name"`
	Scope       Scope      `json:"scope"`
	Prefix      string     `json:"prefix,omitempty"`
	CreatedAt   time.Time  `json:"created_at"`
	ExpiresAt   *time.Time `json:"expires_at"` // nil means never
	RevokedAt   *time.Time `json:"revoked_at"`
	Archived    bool       `json:"archived,omitempty"`  // its project is archived, so that it does not work
	Successor   string     `json:"successor,omitempty"` // the id of the key that it was rotated to
	LastUsedAt  *time.Time `json:"last_used_at"`        // to about a minute; nil means never
}

// NewKey describes a key to make.
type NewKey struct {
	Account   string     `json:"account"`
	Name      string     `json:"name"`
	Scope     Scope      `json:"scope"`
	Prefix    string     `json:"prefix,omitempty"`
	ExpiresAt *time.Time `json:"expires_at,omitempty"`
}

// keyEndsSoon is how long before its end a key's state says so.
const keyEndsSoon = 7 * 24 * time.Hour

// State describes whether a key works: active, ends in 3 days, expired or revoked.
func (k Key) State(now time.Time) string {
	switch {
	case k.RevokedAt != nil:
		return "revoked"
	case k.Archived:
		return "archived"
	case k.ExpiresAt == nil || k.ExpiresAt.Sub(now) > keyEndsSoon:
		return "active"
	}

	// Rounded up, so that a key that still works does not end in 0 hours.
	left := k.ExpiresAt.Sub(now)
	hours := int(math.Ceil(left.Hours()))
	switch {
	case left <= 0:
		return "expired"
	case hours > 48:
		return "ends in " + english.Plural((hours+23)/24, "day", "")
	}
	return "ends in " + english.Plural(hours, "hour", "")
}

// Off reports whether a key is of no more use: it was revoked, or has ended.
func (k Key) Off(now time.Time) bool {
	return k.RevokedAt != nil || k.Archived || k.ExpiresAt != nil && !now.Before(*k.ExpiresAt)
}

// AuditDetail returns what a new or a rotated key is, as the audit log has it.
func (k Key) AuditDetail() string {
	detail := []string{k.Scope.String()}
	if k.Name != "" {
		detail = append(detail, k.Name)
	}
	if k.Prefix != "" {
		detail = append(detail, "templates "+k.Prefix)
	}
	if k.ExpiresAt != nil {
		detail = append(detail, "ends "+k.ExpiresAt.UTC().Format(keyMinute)+" UTC")
	}
	if k.Successor != "" {
		detail = append(detail, "replaced by "+k.Successor)
	}
	return strings.Join(detail, ", ")
}

// keyMinute is how the end of a key is written.
const keyMinute = "2006-01-02 15:04"

// ErrKeyExpired returns the 401 of a key that has ended.
func ErrKeyExpired(at time.Time) *Error {
	return Errorf(CodeUnauthorized, "This API key expired on %s UTC. Make another with `promptspool keys create` "+
		"on the server, or rotate it with `promptspool keys rotate`.", at.UTC().Format(keyMinute))
}

// keyDaysMax bounds the life of a key that ends.
const keyDaysMax = 36_500

// ParseKeyEnd reads when a key ends: 90d or 12h from now, or a date or a moment. "" is never. A
// date is its first moment, in UTC.
func ParseKeyEnd(text string, now time.Time) (*time.Time, error) {
	if text == "" {
		return nil, nil
	}

	age, err := time.ParseDuration(text)
	if days, ok := strings.CutSuffix(text, "d"); ok {
		var n uint64
		n, err = strconv.ParseUint(days, 10, 32)
		age = time.Duration(min(n, keyDaysMax+1)) * 24 * time.Hour
	}
	at := now.Add(age)
	for _, layout := range []string{time.DateOnly, time.RFC3339} {
		if err != nil {
			at, err = time.Parse(layout, text)
		}
	}

	at = at.UTC()
	if err != nil || !at.After(now) || at.After(now.Add(keyDaysMax*24*time.Hour)) {
		return nil, Invalid(FieldError{Field: "expires", Reason: fmt.Sprintf(
			"must be a time in the future, such as 90d, 12h or 2027-01-31, at most %d days from now", keyDaysMax)})
	}
	return &at, nil
}

// Account owns records, templates and keys.
type Account struct {
	ID        string    `json:"id"`
	Name      string    `json:"name"`
	CreatedAt time.Time `json:"created_at"`

	ArchivedAt *time.Time `json:"archived_at,omitempty"`
}

// ProjectChange changes an account; what is zero stays as it is.
type ProjectChange struct {
	Name    string
	Archive *bool // archives it at At, or takes that back
	At      time.Time
}

// Wanted is what a file of projects asks for.
type Wanted struct {
	Projects map[string]WantedProject `json:"projects" yaml:"projects"`
}

// WantedProject is a project that a file asks for.
type WantedProject struct {
	People map[string]Role      `json:"people" yaml:"people"` // roles by email
	Keys   map[string]WantedKey `json:"keys" yaml:"keys"`     // by name
}

// WantedKey is a key that a file asks for. Expires is read as ParseKeyEnd does, when the key
// is made.
type WantedKey struct {
	Scope   Scope  `json:"scope" yaml:"scope"`
	Prefix  string `json:"prefix" yaml:"prefix"`
	Expires string `json:"expires" yaml:"expires"`
}
