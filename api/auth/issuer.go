package auth

import (
	"cmp"
	"context"

	"promptspool/api/wire"
)

// This file is about people who sign in at an OpenID Connect issuer; see package oidc.

// idTokenBytesMax bounds the ID token of a session: it becomes part of an address.
const idTokenBytesMax = 6 << 10

// IsProject reports whether a project may have this name.
func IsProject(name string) bool { return checkAccount(name) == nil }

// SignInBy returns how people sign in, and whether one owner may use a password in an emergency.
func (p *People) SignInBy() (by wire.SignInBy, emergency bool) {
	return p.config.SignInBy, p.config.EmergencyOwner != ""
}

// mayUsePassword returns an error if people sign in at the issuer only, except the emergency's owner.
func (p *People) mayUsePassword(email string) error {
	if p.config.SignInBy != wire.SignInByIssuer || email != "" && email == p.config.EmergencyOwner {
		return nil
	}

	return wire.Errorf(wire.CodeForbidden, "No passwords are used on this server. "+
		"Sign in with your identity provider.")
}

// EnterByIssuer begins a session of a person who has signed in at the issuer. The roles that
// the issuer's groups give replace those of the last time. wire.CodeForbidden means that the person has
// no role here, or is not the one whom the issuer described before.
func (p *People) EnterByIssuer(
	ctx context.Context, l wire.Login, from wire.Browser,
) (wire.SignedIn, error) {
	email, faults := checkEmail(l.Email)
	if faults != nil {
		return wire.SignedIn{}, wire.Errorf(wire.CodeForbidden,
			"The identity provider sends %q as your email address, which is none.", l.Email)
	}

	// The page of the invite says what is wrong with it.
	invite, invited, err := p.invite(ctx, l.Invite)
	if wire.IsCode(err, wire.CodeForbidden) {
		invite, err = [32]byte{}, nil
	}
	if err != nil {
		return wire.SignedIn{}, err
	}

	now := p.now().UTC()
	fresh := wire.User{ID: wire.NewID(), Email: email, CreatedAt: now}
	u, changed, err := p.store.EnterUser(ctx, fresh, l, invite, email == p.config.EmergencyOwner)
	switch {
	case wire.IsCode(err, wire.CodeConflict):
		return wire.SignedIn{}, wire.Errorf(wire.CodeForbidden,
			"%s has signed in with another account of the identity provider before. If the address was "+
				"given to someone else there, ask the operator of this server to run: "+
				"promptspool people enable %s", email, email)
	case wire.IsCode(err, wire.CodeNotFound), err == nil && u.Role == "":
		return wire.SignedIn{}, wire.Errorf(wire.CodeForbidden,
			"The identity provider knows you as %s, but you have no role in a project here, or are disabled. "+
				"Ask an owner for an invite, or the operator for a role of one of your groups.", email)
	case err != nil:
		return wire.SignedIn{}, err
	}

	for _, m := range changed {
		role := cmp.Or(string(m.GroupRole), "none")
		if err := p.Note(ctx, u.In(m), "set role by groups", u.Email, role); err != nil {
			return wire.SignedIn{}, err
		}
	}
	joined := u.ID == fresh.ID && invite != [32]byte{}
	if joined {
		if err := p.noteJoined(ctx, u, invited); err != nil {
			return wire.SignedIn{}, err
		}
	}

	// A pass through the issuer does not change the project that is open, and the browser's session
	// before must not keep its ID token.
	before, err := p.knows(ctx, from.Session, u.Email)
	if err == nil {
		err = p.SignOut(ctx, from.Session)
	}
	if err != nil {
		return wire.SignedIn{}, err
	}

	session := wire.Session{ByIssuer: true}
	if len(l.IDToken) <= idTokenBytesMax {
		session.IDToken = l.IDToken
	}
	s, err := p.begin(ctx, u, before, session, "sign in", "with the identity provider")
	s.Joined = joined

	return s, err
}
