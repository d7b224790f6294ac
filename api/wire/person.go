package wire

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"time"
)

// Role says what a person may do in their account, and includes what the ones before it may.
type Role string

// A viewer looks; an editor also scores, publishes and moves labels; an owner also manages people and keys, and deletes.
const (
	RoleViewer Role = "viewer"
	RoleEditor Role = "editor"
	RoleOwner  Role = "owner"
)

var roleRank = map[Role]int{RoleViewer: 1, RoleEditor: 2, RoleOwner: 3}

// Known says whether there is such a role.
func (r Role) Known() bool { return roleRank[r] > 0 }

// Includes says whether r may do what other may.
func (r Role) Includes(other Role) bool { return r.Known() && roleRank[r] >= roleRank[other] }

// User is a person who signs in at the dashboard. A person belongs to one account. The password is kept apart from it.
type User struct {
	ID          string     `json:"id"`
	AccountID   string     `json:"account_id"`
	AccountName string     `json:"account"`
	Email       string     `json:"email"` // in lower case; unique on the server
	Role        Role       `json:"role"`
	CreatedAt   time.Time  `json:"created_at"`
	DisabledAt  *time.Time `json:"disabled_at"`
	// SessionsFrom is the moment before which sessions began that count no longer: that of the last change of password or role.
	SessionsFrom time.Time `json:"sessions_from"`
	// Founder marks a person who signed up without a code, and founded the account by it.
	Founder bool `json:"founder,omitempty"`
}

// Allow is wire.CodeForbidden unless the person's role includes role.
func (u User) Allow(role Role) error {
	if u.Role.Includes(role) {
		return nil
	}
	who := "editors and owners"
	if role == RoleOwner {
		who = "owners"
	}
	return Errorf(CodeForbidden, "Only %s can do this. Your role is %s; an owner of the account can change it.", who, u.Role)
}

// UserChange is what changes of a person; nil leaves it as it is.
type UserChange struct {
	Role     *Role
	Password *string // its hash
	Disabled *bool
	At       time.Time
}

// Invite lets one person in. Its code is told once, when it is made; only the SHA-256 is kept.
type Invite struct {
	ID          string    `json:"id"`
	AccountName string    `json:"account"`
	Role        Role      `json:"role"`
	CreatedAt   time.Time `json:"created_at"`
	ExpiresAt   time.Time `json:"expires_at"`
	// Setup marks the code of a fresh server: it is good as long as nobody has signed up.
	Setup bool `json:"setup,omitempty"`
}

// Reset lets one person choose a new password. Its code is shown once, when it is made; only the SHA-256 is kept.
type Reset struct {
	UserID    string    `json:"user_id"`
	By        string    `json:"by"` // who made it, as AuditEntry.Actor has it
	CreatedAt time.Time `json:"created_at"`
	ExpiresAt time.Time `json:"expires_at"`
}

// SessionKept is how long a session that has ended is remembered: to tell whose forms were made in it, and nothing else.
const SessionKept = 7 * 24 * time.Hour

// Session is one browser that a person is signed in with.
type Session struct {
	UserID    string    `json:"user_id"`
	CreatedAt time.Time `json:"created_at"`
	ExpiresAt time.Time `json:"expires_at"`
}

// Failures are the failed sign-ins that have something in common.
type Failures struct {
	Count int       `json:"count"`
	Until time.Time `json:"until"` // when they are forgotten
}

// SignedIn is a session of somebody, with the token that their browser shows for it.
type SignedIn struct {
	Token     Secret
	User      User
	ExpiresAt time.Time
}

// Browser is where somebody signs in from.
type Browser struct {
	IP      string
	Session Secret // the token in its cookie, maybe of a session that has ended; "" if there is none
}

// CSRF is what the forms of this session carry; it reveals nothing of the token.
func (s SignedIn) CSRF() string { return masked(s.csrf()) }

func (s SignedIn) csrf() []byte {
	mac := hmac.New(sha256.New, []byte(s.Token))
	mac.Write([]byte("csrf"))
	return mac.Sum(nil)
}

// Bears reports whether a form carries this session's CSRF.
func (s SignedIn) Bears(csrf string) bool {
	own, ok := unmasked(csrf)
	return ok && subtle.ConstantTimeCompare(s.csrf(), own) == 1
}

// FormSession names this session in its forms, also after its end: the SHA-256 of the token, by which it is stored.
func (s SignedIn) FormSession() string {
	own := sha256.Sum256([]byte(s.Token))
	return masked(own[:])
}

// ParseFormSession returns the SHA-256 of the token of the session in which a form was made.
func ParseFormSession(session string) (hash [sha256.Size]byte, ok bool) {
	own, ok := unmasked(session)
	if ok {
		hash = [sha256.Size]byte(own)
	}
	return hash, ok
}

// masked encodes own differently each time, so that the length of a compressed page reveals nothing of it: random
// bytes, then own XORed with them.
func masked(own []byte) string {
	mask := make([]byte, 2*len(own))
	_, _ = rand.Read(mask[:len(own)]) // it never fails
	subtle.XORBytes(mask[len(own):], own, mask)

	return base64.RawURLEncoding.EncodeToString(mask)
}

// unmasked decodes what masked made of 32 bytes.
func unmasked(text string) (own []byte, ok bool) {
	mask, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(mask) != 2*sha256.Size {
		return nil, false
	}

	own = make([]byte, sha256.Size)
	subtle.XORBytes(own, mask, mask[sha256.Size:])
	return own, true
}

// SignUp says who may sign up without an invite.
type SignUp string

const (
	SignUpInvite SignUp = "invite" // nobody: owners invite
	SignUpOpen   SignUp = "open"   // everybody, each into an account of their own
	SignUpClosed SignUp = "closed" // nobody, and invites are refused as well
)

// Application is what somebody signs up with.
type Application struct {
	Email    string
	Password string
	Code     Secret // of an invite, or of a fresh server; "" founds an account, if that is open
	Account  string // the name of the account to found; the code's account goes before it
}

// Operator is the actor of what was done with a command beside the server.
const Operator = "operator"

// AuditEntry is one thing that a person changed in an account.
type AuditEntry struct {
	ID     string    `json:"id"` // a UUIDv7; newer ones are greater
	At     time.Time `json:"at"`
	Actor  string    `json:"actor"`  // an email, or Operator
	Action string    `json:"action"` // a verb and its object: "create key", "move label"
	Target string    `json:"target"`
	Detail string    `json:"detail,omitempty"`
}
