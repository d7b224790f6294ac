package auth

import (
	"context"
	"slices"

	"promptspool/api/wire"
)

// The methods in this file act for a person who is signed in (by), in their account. They
// return wire.CodeForbidden if the person's role does not cover the action.

// Members lists the people of the account.
func (p *People) Members(ctx context.Context, by wire.User) ([]wire.User, error) {
	return p.store.Users(ctx, by.AccountID)
}

// Invite makes a code that lets one person join with a role, within a week. Only owners
// can invite.
func (p *People) Invite(ctx context.Context, by wire.User, role wire.Role) (wire.Secret, wire.Invite, error) {
	if err := by.Allow(wire.RoleOwner); err != nil {
		return "", wire.Invite{}, err
	}
	if p.config.SignUp == wire.SignUpClosed {
		return "", wire.Invite{}, errClosed()
	}
	if !role.Known() {
		return "", wire.Invite{}, wire.Invalid(errRole())
	}

	code, i, err := p.newInvite(ctx, wire.Invite{AccountName: by.AccountName, Role: role, By: by.Email}, inviteAge)
	if err != nil {
		return "", wire.Invite{}, err
	}

	return code, i, p.Note(ctx, by, "invite", string(role), "")
}

func errRole() wire.FieldError {
	return wire.FieldError{Field: "role", Reason: "must be viewer, reviewer, editor or owner"}
}

// Invites lists the invites of the account that can still be used.
func (p *People) Invites(ctx context.Context, by wire.User) ([]wire.Invite, error) {
	if err := by.Allow(wire.RoleOwner); err != nil {
		return nil, err
	}

	// The store may keep expired ones for a while.
	all, err := p.store.Invites(ctx, by.AccountName)
	expired := func(i wire.Invite) bool { return !p.now().Before(i.ExpiresAt) }
	return slices.DeleteFunc(all, expired), err
}

// Uninvite revokes an invite.
func (p *People) Uninvite(ctx context.Context, by wire.User, id string) error {
	if err := by.Allow(wire.RoleOwner); err != nil {
		return err
	}
	if err := p.store.DeleteInvite(ctx, by.AccountName, id); err != nil {
		return err
	}
	return p.Note(ctx, by, "take back invite", id, "")
}

// SetRole changes the role of a member, and signs them out. The last owner must stay one
// (wire.CodeConflict).
func (p *People) SetRole(ctx context.Context, by wire.User, id string, role wire.Role) (wire.User, error) {
	if !role.Known() {
		return wire.User{}, wire.Invalid(errRole())
	}
	return p.change(ctx, by, id, wire.UserChange{Role: &role}, "set role", string(role))
}

// SetDisabled disables a member, who can then not sign in, or enables them again.
func (p *People) SetDisabled(ctx context.Context, by wire.User, id string, disabled bool) (wire.User, error) {
	return p.change(ctx, by, id, wire.UserChange{Disabled: &disabled}, disabling(disabled), "")
}

// disabling names the change in the audit log.
func disabling(disabled bool) string {
	if disabled {
		return "disable member"
	}
	return "enable member"
}

// change changes a member on behalf of an owner, and notes it in the audit log.
func (p *People) change(
	ctx context.Context, by wire.User, id string, c wire.UserChange, action, detail string,
) (wire.User, error) {
	if err := by.Allow(wire.RoleOwner); err != nil {
		return wire.User{}, err
	}

	// Only the store can protect the last owner: two owners may disable each other at the same
	// time.
	c.At = p.now().UTC()
	u, err := p.store.ChangeUser(ctx, by.AccountID, id, c)
	if err != nil {
		return wire.User{}, err
	}

	return u, p.Note(ctx, by, action, u.Email, detail)
}

// SetPassword changes a person's own password, given the old one. It ends all their
// sessions and begins a new one. It also works while their email is locked by failed
// sign-ins, because they are signed in.
func (p *People) SetPassword(ctx context.Context, by wire.User, old, password string) (wire.SignedIn, error) {
	if fault := checkPassword(password); fault != "" {
		return wire.SignedIn{}, wire.Invalid(wire.FieldError{Field: "password", Reason: fault})
	}

	// A browser left open must not be enough to take over an account. The failures are counted
	// for the person, so that strangers who guess cannot keep them from changing it.
	proof, err := p.prove(ctx, by.Email, old, true, personSource(by.ID))
	if err != nil {
		return wire.SignedIn{}, err
	}

	stored, err := p.hashers.hash(ctx, true, password)
	if err != nil {
		return wire.SignedIn{}, err
	}

	change := wire.UserChange{Password: &stored, At: p.now().UTC()}
	if _, err := p.store.ChangeUser(ctx, by.AccountID, proof.ID, change); err != nil {
		return wire.SignedIn{}, err
	}

	return p.begin(ctx, by, wire.User{}, wire.Session{}, "change password", "")
}

// noteEverywhere adds what a person did to the audit logs of all accounts that it opens.
func (p *People) noteEverywhere(ctx context.Context, by wire.User, action, detail string) error {
	for _, m := range by.Projects {
		if err := p.Note(ctx, by.In(m), action, by.Email, detail); err != nil {
			return err
		}
	}
	return nil
}

// Note adds a change to the account's audit log.
func (p *People) Note(ctx context.Context, by wire.User, action, target, detail string) error {
	return p.store.Audit(ctx, by.AccountID, wire.AuditEntry{
		ID:     wire.NewID(),
		At:     p.now().UTC(),
		Actor:  by.Email,
		Action: action,
		Target: target,
		Detail: detail,
	})
}

// auditPageMax bounds what AuditLog returns.
const auditPageMax = 1000

// AuditLog lists changes to the account, newest first. before is the id of the last one
// seen, or "".
func (p *People) AuditLog(
	ctx context.Context, by wire.User, before string, limit int,
) ([]wire.AuditEntry, error) {
	if err := by.Allow(wire.RoleOwner); err != nil {
		return nil, err
	}
	return p.store.AuditLog(ctx, by.AccountID, before, min(max(limit, 1), auditPageMax))
}
