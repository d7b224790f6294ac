package accounts

import (
	"context"
	"time"

	"promptspool/api/wire"
	"promptspool/spool/archive/transfer"
)

func errNoInvite() *wire.Error {
	return wire.Errorf(wire.CodeNotFound, "There is no such invite, or it is spent.")
}

// CreateInvite keeps an invite; see auth.InviteStore.
func (s *Store) CreateInvite(ctx context.Context, hash [32]byte, i wire.Invite) error {
	return s.db.Change(ctx, true, func(tx Tx) error { return tx.Put(Invites, string(hash[:]), &i) })
}

// Invite finds an invite; see auth.InviteStore.
func (s *Store) Invite(ctx context.Context, hash [32]byte) (wire.Invite, error) {
	return find[wire.Invite](ctx, s, Invites, hash, errNoInvite)
}

// Invites lists the invites of an account; see auth.InviteStore.
func (s *Store) Invites(ctx context.Context, accountName string) ([]wire.Invite, error) {
	keep := func(i *wire.Invite) bool { return i.AccountName == accountName && !i.Setup }
	age := func(i *wire.Invite) (time.Time, string) { return i.CreatedAt, i.ID }
	return list(ctx, s, Invites, keep, age)
}

// DeleteInvite revokes an invite; see auth.InviteStore.
func (s *Store) DeleteInvite(ctx context.Context, accountName, id string) error {
	return s.db.Change(ctx, false, func(tx Tx) error {
		hash, err := hashOf(tx, Invites, func(row any) bool {
			i := row.(*wire.Invite)
			// Setup codes are the operator's, and another account's
			// invites do not exist for this one (G7).
			return i.ID == id && i.AccountName == accountName && !i.Setup
		})
		if err != nil {
			return err
		}
		if hash == "" {
			return errNoInvite()
		}
		return tx.Delete(Invites, hash)
	})
}

func errNoReset() *wire.Error {
	return wire.Errorf(wire.CodeNotFound, "There is no such reset link, or it has been used.")
}

// CreateReset keeps a reset link; see auth.ResetStore. It removes those
// that have expired.
func (s *Store) CreateReset(ctx context.Context, hash [32]byte, r wire.Reset) error {
	return s.db.Change(ctx, true, func(tx Tx) error {
		// A person has one valid link: the newest one.
		err := dropResets(tx, func(old *wire.Reset) bool {
			return old.UserID == r.UserID || old.ExpiresAt.Before(r.CreatedAt)
		})
		if err != nil {
			return err
		}
		return tx.Put(Resets, string(hash[:]), &r)
	})
}

// dropResets removes some links. It reads all of the server's: they are few, and live
// for a day.
func dropResets(tx Tx, drop func(*wire.Reset) bool) error {
	rows, err := tx.List(Resets)
	for _, r := range rows {
		if err == nil && drop(r.Of.(*wire.Reset)) {
			err = tx.Delete(Resets, r.Key)
		}
	}

	return err
}

// link is a reset link and its person.
type link struct {
	wire.Reset
	transfer.Person
}

// Reset finds a reset link; see auth.ResetStore.
func (s *Store) Reset(ctx context.Context, hash [32]byte) (wire.Reset, wire.User, error) {
	l, err := read(ctx, s, func(tx Tx) (link, error) { return getLink(tx, hash) })
	return l.Reset, l.User, err
}

func getLink(tx Tx, hash [32]byte) (l link, err error) {
	if l.Reset, err = get[wire.Reset](tx, Resets, string(hash[:]), errNoReset); err == nil {
		l.Person, err = get[transfer.Person](tx, Users, l.UserID, errNoUser)
	}
	return l, err
}

// SpendReset sets the password of a link's person; see auth.ResetStore.
func (s *Store) SpendReset(
	ctx context.Context, hash [32]byte, password string, at time.Time,
) (wire.Reset, wire.User, error) {
	l, err := changed(ctx, s, false, func(tx Tx) (link, error) {
		l, err := getLink(tx, hash)
		if err == nil && (at.After(l.Reset.ExpiresAt) || l.DisabledAt != nil) {
			err = errNoReset()
		}
		if err != nil {
			return l, err
		}
		// A new password ends all sessions, and setUser deletes this link
		// with the person's others: it works once.
		apply(&l.Person, wire.UserChange{Password: &password, At: at})
		return l, setUser(tx, &l.Person)
	})

	return l.Reset, l.User, err
}
