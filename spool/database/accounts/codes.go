package accounts

import (
	"cmp"
	"context"
	"slices"
	"time"

	"promptspool/api/wire"
	"promptspool/spool/database/keyed"
)

func errNoInvite() *wire.Error {
	return wire.Errorf(wire.CodeNotFound, "There is no such invite, or it is spent.")
}

// CreateInvite keeps an invite; see auth.InviteStore.
func (s *Store) CreateInvite(ctx context.Context, hash [32]byte, i wire.Invite) error {
	return s.put(ctx, hashKey(invites, hash), i)
}

// Invite finds an invite; see auth.InviteStore.
func (s *Store) Invite(ctx context.Context, hash [32]byte) (wire.Invite, error) {
	return get[wire.Invite](ctx, s.rows, hashKey(invites, hash), errNoInvite)
}

// Invites lists the invites of an account; see auth.InviteStore.
func (s *Store) Invites(ctx context.Context, accountName string) ([]wire.Invite, error) {
	all, err := list(ctx, s, invites, func(i *wire.Invite) (time.Time, string) { return i.CreatedAt, i.ID })
	others := func(i wire.Invite) bool { return i.AccountName != accountName || i.Setup }
	return slices.DeleteFunc(all, others), err
}

// DeleteInvite revokes an invite; see auth.InviteStore.
func (s *Store) DeleteInvite(ctx context.Context, accountName, id string) error {
	return s.change(ctx, false, func(tx *keyed.Tx) error {
		invite, err := find(ctx, tx, invites, func(i *wire.Invite) bool {
			// Setup codes are the operator's, and another account's
			// invites do not exist for this one (G7).
			return i.ID == id && i.AccountName == accountName && !i.Setup
		})
		if err != nil {
			return err
		}
		if invite == nil {
			return errNoInvite()
		}
		tx.Delete(invite.Key)
		return nil
	})
}

func errNoReset() *wire.Error {
	return wire.Errorf(wire.CodeNotFound, "There is no such reset link, or it has been used.")
}

// CreateReset keeps a reset link; see auth.ResetStore. It removes those
// that have expired.
func (s *Store) CreateReset(
	ctx context.Context, account string, owned []string, hash [32]byte, r wire.Reset,
) (wire.User, error) {
	return changed(ctx, s, true, func(tx *keyed.Tx) (wire.User, error) {
		p, u, err := member(ctx, tx, account, r.UserID)
		switch {
		case err != nil:
			return u, err
		case u.DisabledAt != nil || p.signedIn("", false).Role == "":
			return u, wire.Errorf(wire.CodeConflict, "%s is disabled, or has no role but that of their groups. "+
				"Enable them or set their role first, then reset their password.", u.Email)
		}
		// The password opens all of the person's accounts.
		for _, m := range p.Memberships {
			if account != "" && !slices.Contains(owned, m.AccountID) {
				return u, wire.Errorf(wire.CodeForbidden, "%s also belongs to a project that is not yours. Only the "+
					"operator of this server can reset their password: promptspool people reset-password %s",
					u.Email, u.Email)
			}
		}

		// A person has one valid link: the newest one.
		err = dropResets(ctx, tx, func(old *wire.Reset) bool {
			return old.UserID == r.UserID || old.ExpiresAt.Before(r.CreatedAt)
		})
		return u, cmp.Or(err, tx.Put(hashKey(resets, hash), r))
	})
}

// dropResets removes some links. It reads all of the server's: they are few, and live
// for a day.
func dropResets(ctx context.Context, tx *keyed.Tx, drop func(*wire.Reset) bool) error {
	all, err := keyed.List[wire.Reset](ctx, tx, keyed.Key{Kind: resets})
	for _, r := range all {
		if drop(r.Of) {
			tx.Delete(r.Key)
		}
	}

	return err
}

// link is a reset link and its person.
type link struct {
	reset wire.Reset
	person
}

// Reset finds a reset link; see auth.ResetStore.
func (s *Store) Reset(ctx context.Context, hash [32]byte) (wire.Reset, wire.User, error) {
	l, err := getLink(ctx, s.rows, hash)
	return l.reset, l.signedIn("", false), err
}

func getLink(ctx context.Context, r keyed.Reader, hash [32]byte) (l link, err error) {
	l.reset, err = get[wire.Reset](ctx, r, hashKey(resets, hash), errNoReset)
	if err == nil {
		l.person, err = get[person](ctx, r, personKey(l.reset.UserID), errNoUser)
	}
	return l, err
}

// SpendReset sets the password of a link's person; see auth.ResetStore.
func (s *Store) SpendReset(
	ctx context.Context, hash [32]byte, password string, at time.Time,
) (wire.Reset, wire.User, error) {
	l, err := changed(ctx, s, false, func(tx *keyed.Tx) (link, error) {
		l, err := getLink(ctx, tx, hash)
		if err == nil && (at.After(l.reset.ExpiresAt) || l.signedIn("", false).Role == "") {
			err = errNoReset()
		}
		if err != nil {
			return l, err
		}
		// A new password ends all sessions, and setUser deletes this link
		// with the person's others: it works once.
		l.apply("", wire.UserChange{Password: &password, At: at})
		return l, setUser(ctx, tx, &l.person)
	})

	return l.reset, l.signedIn("", false), err
}

// IsSetup reports whether an entry is a setup code. Every server without an owner makes its own.
func IsSetup(e keyed.Entry) bool {
	var i wire.Invite
	return e.Kind == invites && e.Decode(&i) == nil && i.Setup
}
