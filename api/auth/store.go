package auth

import (
	"context"
	"time"

	"promptspool/api/wire"
)

// Store keeps accounts and keys. Its methods may be called at the same time; what they return belongs to the caller. A
// write is durable when its method returns. Times keep microseconds at least. Besides the errors named below a store
// returns what says that it could not answer, such as wire.CodeUnavailable.
type Store interface {
	// CreateKey keeps k under the hash of its secret and returns it with AccountID set: that of the account called
	// k.AccountName, which is made with a UUIDv7 if there is none. The caller gives all else; k.ID is fresh. A hash that
	// is there already is left alone: its key is returned as it is stored, or, if it is revoked, wire.CodeConflict.
	CreateKey(ctx context.Context, hash [32]byte, k wire.Key) (wire.Key, error)
	// KeyByHash finds a key, also a revoked one (RevokedAt is set then); wire.CodeNotFound if there is none.
	KeyByHash(ctx context.Context, hash [32]byte) (wire.Key, error)
	// Keys lists the keys of all accounts, revoked ones too, by CreatedAt with the oldest first, then by ID.
	Keys(ctx context.Context) ([]wire.Key, error)
	// RevokeKey sets RevokedAt and returns the key; wire.CodeNotFound if there is none with this id. A key that was
	// revoked before keeps its first time.
	RevokeKey(ctx context.Context, id string, at time.Time) (wire.Key, error)
	// TouchKeys sets LastUsedAt of keys, by their ids, where it is later than what is there. Ids that do not exist are left out.
	TouchKeys(ctx context.Context, used map[string]time.Time) error
}

// PeopleStore keeps who signs in at the dashboard. What Store says of its methods holds for these.
type PeopleStore interface {
	UserStore
	InviteStore
	ResetStore
	SessionStore
	FailureStore
	AuditStore
}

// UserStore keeps people.
type UserStore interface {
	// CreateUser keeps u with the hash of its password, and returns it with AccountID set. With an invite (its hash is not
	// zero) the account and the role are the invite's, which is spent by it; wire.CodeNotFound if there is no such invite, it
	// expired before u.CreatedAt, or it is a setup code and its account has an owner. Without one, u founds the account
	// u.AccountName: wire.CodeConflict if there is one of this name. wire.CodeConflict also if the email is taken: then
	// nothing changed.
	CreateUser(ctx context.Context, u wire.User, password string, invite [32]byte) (wire.User, error)
	// UserByEmail finds a person, also a disabled one, and the hash of the password; wire.CodeNotFound if there is none.
	UserByEmail(ctx context.Context, email string) (u wire.User, password string, err error)
	// Users lists the people of an account by CreatedAt, the first first.
	Users(ctx context.Context, account string) ([]wire.User, error)
	// Everybody lists the people of all accounts, in the order of Users.
	Everybody(ctx context.Context) ([]wire.User, error)
	// Account returns the id of the account of this name, which is made if there is none.
	Account(ctx context.Context, name string) (id string, err error)
	// ChangeUser changes a person of the account, and returns it. Each change ends its sessions (SessionsFrom becomes
	// change.At) and its reset links.
	// wire.CodeNotFound if there is none in this account; wire.CodeConflict if no owner would be left who can sign in.
	ChangeUser(ctx context.Context, account, id string, change wire.UserChange) (wire.User, error)
	// HasOwner reports whether the account of this name has a person whose role is owner.
	HasOwner(ctx context.Context, accountName string) (bool, error)
}

// InviteStore keeps invites, by the hashes of their codes. Those that have expired may be gone.
type InviteStore interface {
	CreateInvite(ctx context.Context, hash [32]byte, i wire.Invite) error
	// Invite finds one that is not spent, maybe expired; wire.CodeNotFound if there is none.
	Invite(ctx context.Context, hash [32]byte) (wire.Invite, error)
	// Invites lists those of an account, by its name, the oldest first, none of a fresh server.
	Invites(ctx context.Context, accountName string) ([]wire.Invite, error)
	// DeleteInvite takes one back; wire.CodeNotFound if the account has none of this id.
	DeleteInvite(ctx context.Context, accountName, id string) error
}

// ResetStore keeps password reset links, by the hashes of their codes. Those that have expired may be gone.
type ResetStore interface {
	// CreateReset keeps a link, in place of any other of the same person.
	CreateReset(ctx context.Context, hash [32]byte, r wire.Reset) error
	// Reset finds a link that is not spent, maybe expired, and its person, maybe disabled; wire.CodeNotFound if there
	// is none.
	Reset(ctx context.Context, hash [32]byte) (wire.Reset, wire.User, error)
	// SpendReset spends a link: it sets the hash of its person's password and ends their sessions, as ChangeUser does, in
	// one transaction. wire.CodeNotFound if there is no such link, it expired before at, or its person is disabled.
	SpendReset(ctx context.Context, hash [32]byte, password string, at time.Time) (wire.Reset, wire.User, error)
}

// SessionStore keeps sessions, by the hashes of their tokens.
type SessionStore interface {
	// CreateSession keeps a session, and removes those that expired more than wire.SessionKept before s.CreatedAt.
	CreateSession(ctx context.Context, hash [32]byte, s wire.Session) error
	// Session finds a session and its person, also when either is good no more; wire.CodeNotFound if there is none.
	Session(ctx context.Context, hash [32]byte) (wire.Session, wire.User, error)
	// EndSession makes one expire at a time, unless it has expired before. Ending one that does not exist succeeds.
	EndSession(ctx context.Context, hash [32]byte, at time.Time) error
}

// FailureStore counts failed sign-ins, by the SHA-256 of what they have in common. Those whose time is over may be gone.
type FailureStore interface {
	// Failures finds those of some sources, in their order; zero where there are none. They may be over.
	Failures(ctx context.Context, sources [][32]byte) ([]wire.Failures, error)
	// AddFailure counts one more of each source. Where there are none, or those that there were ended by now, the count begins anew and ends at until.
	AddFailure(ctx context.Context, sources [][32]byte, now, until time.Time) error
	// TakeBackFailure counts one less of each source that has any.
	TakeBackFailure(ctx context.Context, sources [][32]byte) error
	// ForgetFailures forgets those of a source; that there are none is no error.
	ForgetFailures(ctx context.Context, source [32]byte) error
}

// AuditStore keeps what people changed.
type AuditStore interface {
	Audit(ctx context.Context, account string, e wire.AuditEntry) error
	// AuditLog lists at most limit entries of an account, the newest first, from below the id before ("" for the newest).
	AuditLog(ctx context.Context, account, before string, limit int) ([]wire.AuditEntry, error)
}
