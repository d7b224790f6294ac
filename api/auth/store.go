package auth

import (
	"context"
	"time"

	"promptspool/api/wire"
)

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
	UserStore
	ProjectStore
	InviteStore
	ResetStore
	SessionStore
	FailureStore
	AuditStore
}

// ProjectStore stores accounts, which people call projects.
type ProjectStore interface {
	// Projects lists all accounts, by CreatedAt with the oldest first.
	Projects(ctx context.Context) ([]wire.Account, error)

	// CreateProject makes an account; wire.CodeConflict if there is one of this name.
	CreateProject(ctx context.Context, name string) (wire.Account, error)

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
}

// UserStore stores people.
type UserStore interface {
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
	// wire.CodeNotFound if the account has no such person, wire.CodeConflict if an account
	// would lose its last owner who can sign in, or wire.ErrChanged if change.Still is false.
	ChangeUser(ctx context.Context, account, id string, change wire.UserChange) (wire.User, error)

	// HasOwner reports whether the account of this name has a person whose role is owner.
	HasOwner(ctx context.Context, accountName string) (bool, error)
}

// InviteStore stores invites by the hashes of their codes. It may delete expired ones.
type InviteStore interface {
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
}

// ResetStore stores password reset links by the hashes of their codes. It may delete
// expired ones.
type ResetStore interface {
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
}

// SessionStore stores sessions by the hashes of their tokens.
type SessionStore interface {
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

// AuditStore stores what people changed.
type AuditStore interface {
	// Audit stores an entry.
	Audit(ctx context.Context, account string, e wire.AuditEntry) error

	// AuditLog lists at most limit entries of an account, newest first, from below the id
	// before ("" for the newest).
	AuditLog(ctx context.Context, account, before string, limit int) ([]wire.AuditEntry, error)

	// TrimAudit deletes the entries of all accounts whose ids are from before oldest, and those
	// from before fresh that are beyond the newest most of an account.
	TrimAudit(ctx context.Context, oldest, fresh time.Time, most int) error
}
