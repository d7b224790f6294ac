package auth

import (
	"context"
	"time"

	"promptspool/api/wire"
)

// resetAge is how long a reset link works.
const resetAge = 24 * time.Hour

// MakeReset makes a code with which a member chooses a new password, once and within a
// day. It replaces any earlier one.
//
// Only owners of all accounts that the member is in can make one, and not for themselves.
// To change one's own password one must know the old one, or a browser left open would be
// enough to take over an account for good.
func (p *People) MakeReset(ctx context.Context, by wire.User, id string) (wire.Secret, wire.User, error) {
	if err := by.Allow(wire.RoleOwner); err != nil {
		return "", wire.User{}, err
	}
	if by.ID == id {
		return "", wire.User{}, wire.Errorf(wire.CodeForbidden,
			"Change your own password on the page Password, or ask another owner for a link.")
	}

	// A password opens all of a person's accounts.
	var owned []string
	for _, m := range by.Projects {
		if m.Role == wire.RoleOwner {
			owned = append(owned, m.AccountID)
		}
	}
	return p.makeReset(ctx, by, by.AccountID, append(owned, by.AccountID), id)
}

func (p *People) makeReset(
	ctx context.Context, by wire.User, account string, owned []string, id string,
) (wire.Secret, wire.User, error) {
	code, now := newCode(), p.now().UTC()
	r := wire.Reset{UserID: id, By: by.Email, CreatedAt: now, ExpiresAt: now.Add(resetAge)}
	u, err := p.store.CreateReset(ctx, account, owned, hash(code), r)
	if err == nil {
		err = p.mayUsePassword(u.Email)
	}
	if err != nil {
		return "", u, err
	}

	return code, u, p.Note(ctx, by, "make reset link", u.Email, "")
}

// ResetOf returns the person whose password a code resets, without using it. ip is the
// caller's address. An invalid code is wire.CodeForbidden, and wire.CodeTooMany after too
// many of them.
func (p *People) ResetOf(ctx context.Context, code wire.Secret, ip string) (wire.User, error) {
	r, u, err := p.store.Reset(ctx, hashCode(code))
	switch {
	case wire.IsCode(err, wire.CodeNotFound):
		err = errReset()
	case err == nil && (!p.now().Before(r.ExpiresAt) || u.Role == ""):
		err = errReset()
	case err == nil:
		err = p.mayUsePassword(u.Email)
	}
	if err != nil {
		return wire.User{}, p.judgeCode(ctx, err, ip)
	}
	return u, nil
}

func errReset() error {
	return wire.Errorf(wire.CodeForbidden, "This link is invalid, has expired or has been used. "+
		"Ask an owner of your project for a new one.")
}

// ResetPassword uses a code to set the password of its person. It ends all their
// sessions, forgets their failed sign-ins, and begins a session. Errors are those of
// ResetOf, and wire.CodeInvalid for a password that is not accepted, which leaves the
// code usable.
func (p *People) ResetPassword(
	ctx context.Context, code wire.Secret, password, ip string,
) (wire.SignedIn, error) {
	if _, err := p.ResetOf(ctx, code, ip); err != nil {
		return wire.SignedIn{}, err
	}
	if fault := checkPassword(password); fault != "" {
		return wire.SignedIn{}, wire.Invalid(wire.FieldError{Field: "password", Reason: fault})
	}

	stored, err := p.hashers.hash(ctx, true, password)
	if err != nil {
		return wire.SignedIn{}, err
	}

	r, u, err := p.store.SpendReset(ctx, hashCode(code), stored, p.now().UTC())
	// Used or expired while the hash was computed.
	if wire.IsCode(err, wire.CodeNotFound) {
		return wire.SignedIn{}, errReset()
	}
	if err != nil {
		return wire.SignedIn{}, err
	}

	// Failures with the old password must not lock the person out with the new one.
	if err := p.throttle.forget(ctx, emailSource(u.Email)); err != nil {
		return wire.SignedIn{}, err
	}
	return p.begin(ctx, u, wire.User{}, wire.Session{}, "reset password", "with a link made by "+r.By)
}
