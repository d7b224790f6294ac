package wire

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize/english"
)

// Role says what a person may do in their account.
type Role string

// The roles. Each may do what those before it may.
const (
	RoleViewer   Role = "viewer"   // reads
	RoleReviewer Role = "reviewer" // also scores
	RoleEditor   Role = "editor"   // also publishes and moves labels
	RoleOwner    Role = "owner"    // also manages people and keys, and deletes
)

// Roles are all roles, the least first.
var Roles = []Role{RoleViewer, RoleReviewer, RoleEditor, RoleOwner}

// Known reports whether there is such a role.
func (r Role) Known() bool { return slices.Contains(Roles, r) }

// Includes reports whether r may do what other may.
func (r Role) Includes(other Role) bool {
	return r.Known() && slices.Index(Roles, r) >= slices.Index(Roles, other)
}

// User is a person who signs in to the dashboard, in one of their accounts. The password is
// stored separately.
type User struct {
	ID          string     `json:"id"`
	AccountID   string     `json:"account_id"`
	AccountName string     `json:"account"`
	Email       string     `json:"email"`      // in lower case; unique on the server
	Role        Role       `json:"role"`       // in this account; "" if they may open none
	CreatedAt   time.Time  `json:"created_at"` // when they joined this account
	DisabledAt  *time.Time `json:"disabled_at"`

	// Of a person with a role by the issuer's groups, these are that and the one given by hand.
	GroupRole Role `json:"group_role,omitempty"`
	OwnRole   Role `json:"own_role,omitempty"`

	// SessionsFrom is when the password or a role last changed. Sessions that began earlier
	// are not valid.
	SessionsFrom time.Time `json:"sessions_from"`

	// Founder marks a person who signed up without a code, and so founded the account.
	Founder bool `json:"founder,omitempty"`

	// Projects are the accounts that the person may open, with the role that counts there. Only
	// a person who signs in or has a session has them.
	Projects []Membership `json:"projects,omitempty"`
}

// Allow returns a CodeForbidden unless the person's role includes role.
func (u User) Allow(role Role) error {
	if u.Role.Includes(role) {
		return nil
	}

	// All who can, so that a viewer knows whom to ask.
	var who []string
	for _, r := range Roles[max(slices.Index(Roles, role), 0):] {
		who = append(who, string(r)+"s")
	}

	return Errorf(CodeForbidden, "Only %s can do this. Your role is %s; an owner of the project can change it.",
		english.WordSeries(who, "and"), u.Role)
}

// Membership is a person's place in a project.
type Membership struct {
	AccountID   string     `json:"project_id"`
	AccountName string     `json:"project"`
	Role        Role       `json:"role"`                 // given by hand; "" is none
	GroupRole   Role       `json:"group_role,omitempty"` // of the issuer's groups, when the person last came from there
	Since       time.Time  `json:"since"`
	DisabledAt  *time.Time `json:"disabled_at"`
	Archived    bool       `json:"archived,omitempty"` // the project is: it cannot be opened

	// Founder marks a person who signed up without a code, and so founded the project.
	Founder bool `json:"founder,omitempty"`
}

// RoleIn returns the role that the membership gives in a session, "" for none. That of groups
// counts only in sessions that began at the issuer, so that no password outlives a group.
func (m Membership) RoleIn(byIssuer bool) Role {
	if m.Archived {
		return ""
	}
	if byIssuer && !m.Role.Includes(m.GroupRole) {
		return m.GroupRole
	}
	return m.Role
}

// Owns reports whether the person is an owner of the project who may sign in.
func (m Membership) Owns() bool { return m.DisabledAt == nil && m.RoleIn(true) == RoleOwner }

// ByHand returns the person's role without that of groups, "" if there is none.
func (u User) ByHand() Role {
	if u.GroupRole != "" {
		return u.OwnRole
	}
	return u.Role
}

// Project returns the one of the person's projects that has this name.
func (u User) Project(name string) (m Membership, ok bool) {
	i := slices.IndexFunc(u.Projects, func(m Membership) bool { return m.AccountName == name })
	if i < 0 {
		return m, false
	}
	return u.Projects[i], true
}

// In returns the person in another one of their projects.
func (u User) In(m Membership) User {
	u.AccountID, u.AccountName, u.Role, u.CreatedAt, u.Founder = m.AccountID, m.AccountName, m.Role, m.Since, m.Founder
	return u
}

// UserChange changes a person; nil fields stay as they are.
type UserChange struct {
	Role     *Role
	Password *string // its hash
	Disabled *bool
	At       time.Time
}

// Invite lets one person sign up. Its code is shown once, when it is made; only its
// SHA-256 is stored.
type Invite struct {
	ID          string    `json:"id"`
	AccountName string    `json:"account"`
	Role        Role      `json:"role"`
	CreatedAt   time.Time `json:"created_at"`
	ExpiresAt   time.Time `json:"expires_at"`

	By string `json:"by,omitempty"` // who made it; see AuditEntry.Actor

	// Setup marks the code of a fresh server, which is valid until the first person has
	// signed up.
	Setup bool `json:"setup,omitempty"`
}

// Reset lets one person choose a new password. Its code is shown once, when it is made;
// only its SHA-256 is stored.
type Reset struct {
	UserID    string    `json:"user_id"`
	By        string    `json:"by"` // who made it; see AuditEntry.Actor
	CreatedAt time.Time `json:"created_at"`
	ExpiresAt time.Time `json:"expires_at"`
}

// SessionKept is how long an ended session is remembered, only to tell whose forms were
// made in it.
const SessionKept = 7 * 24 * time.Hour

// Session is one browser in which a person is signed in.
type Session struct {
	UserID    string    `json:"user_id"`
	Account   string    `json:"account"`             // the id of the one that is open
	ByIssuer  bool      `json:"by_issuer,omitempty"` // it began at the issuer of sign-ins, not with a password
	IDToken   string    `json:"id_token,omitempty"`  // names the issuer's own session
	CreatedAt time.Time `json:"created_at"`
	ExpiresAt time.Time `json:"expires_at"`
}

// Failures counts failed sign-ins that have something in common, such as the email.
type Failures struct {
	Count int       `json:"count"`
	Until time.Time `json:"until"` // when the count is reset
}

// SignedIn is a session with its person, and the token that identifies it in their
// browser.
type SignedIn struct {
	Session
	Token  Secret
	User   User
	Joined bool // signing in used an invite up
}

// Browser is where a person signs in from.
type Browser struct {
	IP      string
	Session Secret // the token in its cookie, maybe of an ended session; "" if there is none
}

// CSRF returns the token that this session's forms carry, those of the open account. It
// reveals nothing about the session's token.
func (s SignedIn) CSRF() string { return masked(s.csrf(s.User.AccountID)) }

// csrf is CSRF of an account, before it is masked.
func (s SignedIn) csrf(account string) []byte {
	mac := hmac.New(sha256.New, []byte(s.Token))
	mac.Write([]byte("csrf " + account))
	return mac.Sum(nil)
}

// FormProject returns the one of the person's projects in which this session made the form that
// csrf comes from. Another one may be open now, in another tab.
func (s SignedIn) FormProject(csrf string) (m Membership, ok bool) {
	sent, ok := unmasked(csrf)
	i := slices.IndexFunc(s.User.Projects, func(m Membership) bool {
		return subtle.ConstantTimeCompare(s.csrf(m.AccountID), sent) == 1
	})
	if !ok || i < 0 {
		return m, false
	}
	return s.User.Projects[i], true
}

// FormSession identifies this session and its open account in its forms, also after its end.
// It begins with the SHA-256 of the token, under which the session is stored.
func (s SignedIn) FormSession() string {
	hash := sha256.Sum256([]byte(s.Token))
	return masked(hash[:]) + "." + s.User.AccountID
}

// ParseFormSession returns the SHA-256 of a FormSession's token, and the id of the account
// that was open.
func ParseFormSession(session string) (hash [sha256.Size]byte, account string, ok bool) {
	session, account, _ = strings.Cut(session, ".")
	sent, ok := unmasked(session)
	if !ok {
		return hash, account, false
	}
	return [sha256.Size]byte(sent), account, true
}

// masked encodes plain differently each time, so that the length of a compressed page
// reveals nothing about it (BREACH). The result is random bytes, then plain XORed with
// them.
func masked(plain []byte) string {
	mask := make([]byte, 2*len(plain))
	_, _ = rand.Read(mask[:len(plain)]) // never fails
	subtle.XORBytes(mask[len(plain):], plain, mask)
	return base64.RawURLEncoding.EncodeToString(mask)
}

// unmasked decodes the masked form of 32 bytes.
func unmasked(text string) (plain []byte, ok bool) {
	mask, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(mask) != 2*sha256.Size {
		return nil, false
	}

	plain = make([]byte, sha256.Size)
	subtle.XORBytes(plain, mask, mask[sha256.Size:])
	return plain, true
}

// SignUp says who may sign up without an invite.
type SignUp string

// The ways to sign up.
const (
	SignUpInvite SignUp = "invite" // only people whom an owner has invited
	SignUpOpen   SignUp = "open"   // everyone, each into a new account
	SignUpClosed SignUp = "closed" // no one; invites are rejected as well
)

// Application is what a person signs up with.
type Application struct {
	Email    string
	Password string
	Code     Secret // of an invite, or of a fresh server; "" founds an account, if sign-up is open
	Account  string // the name of the account to found; a code's account takes precedence
}

// FoundedMax is in how many projects a person can be who makes another one on the page.
const FoundedMax = 100

// SignInBy says how people sign in.
type SignInBy string

// The ways to sign in.
const (
	SignInByBoth     SignInBy = "both"
	SignInByIssuer   SignInBy = "oidc" // and one owner by password, in an emergency
	SignInByPassword SignInBy = "password"
)

// Login is a person as an OpenID Connect issuer described them when they signed in there.
type Login struct {
	Issuer  string // its URL
	Subject string // the issuer's own name of the person, which never changes
	Email   string
	Grants  []Grant // what the person's groups give; of several in a project the greatest counts
	IDToken string  // names the issuer's session, to end it there
	Invite  Secret  // the code whose link led to the sign-in, for a person who is not known yet; "" for none
}

// Grant is a role in the project of this name.
type Grant struct {
	Project string
	Role    Role
}

// LoginAttempt is what a browser keeps while its person signs in at the issuer. It is secret, so that
// no other browser can finish what this one began.
type LoginAttempt struct {
	State    string `json:"state"`    // the issuer sends it back
	Nonce    string `json:"nonce"`    // the issuer puts it into the ID token
	Verifier string `json:"verifier"` // of PKCE: proves to the issuer who asked
	Next     string `json:"next"`     // the page to open afterwards
	Asked    bool   `json:"asked"`    // the person came from the page that asks whether to join a project
}
