package accounts

import (
	"cmp"
	"context"
	"time"

	"promptspool/api/wire"
	"promptspool/spool/database/keyed"
)

// person is a user who signs in.
type person struct {
	wire.User
	Password string `json:"password"` // its hash
}

func personKey(id string) keyed.Key { return keyed.Key{Kind: people, Name: id} }

func emailKey(email string) keyed.Key { return keyed.Key{Kind: emails, Name: email} }

// CreateUser keeps a person; see auth.UserStore.
func (s *Store) CreateUser(
	ctx context.Context, u wire.User, password string, invite [32]byte,
) (wire.User, error) {
	return changed(ctx, s, false, func(tx *keyed.Tx) (wire.User, error) {
		// Change may call this several times, and each must
		// start from what the caller gave.
		u := u
		if _, taken, err := keyed.Load[string](ctx, tx, emailKey(u.Email)); taken || err != nil {
			return u, cmp.Or(err, error(wire.Errorf(wire.CodeConflict, "This email is taken.")))
		}
		if err := s.join(ctx, tx, &u, invite); err != nil {
			return u, err
		}
		// A person never changes the email, so the index is written only here.
		if err := tx.Put(emailKey(u.Email), u.ID); err != nil {
			return u, err
		}
		return u, tx.Put(personKey(u.ID), person{u, password})
	})
}

// join finds the account of an invite, which it spends, or founds one without. It sets
// u's account and role.
func (s *Store) join(ctx context.Context, tx *keyed.Tx, u *wire.User, invite [32]byte) (err error) {
	if invite == ([32]byte{}) {
		account := keyed.Key{Kind: accounts, Name: u.AccountName}
		if _, taken, err := keyed.Load[wire.Account](ctx, tx, account); taken || err != nil {
			return cmp.Or(err, error(wire.Errorf(wire.CodeConflict, "This account's name is taken.")))
		}
		u.AccountID, err = s.account(ctx, tx, u.AccountName)
		return err
	}

	i, err := get[wire.Invite](ctx, tx, hashKey(invites, invite), errNoInvite)
	if err != nil {
		return err
	}
	spent := u.CreatedAt.After(i.ExpiresAt)
	// A setup code makes an account's first owner. Once there is one, it is spent.
	if i.Setup && !spent {
		spent, err = hasOwner(ctx, tx, i.AccountName)
	}
	if spent || err != nil {
		return cmp.Or(err, error(errNoInvite()))
	}

	u.AccountName, u.Role = i.AccountName, i.Role
	if u.AccountID, err = s.account(ctx, tx, i.AccountName); err != nil {
		return err
	}
	// In the same transaction as the person: an invite works once.
	tx.Delete(hashKey(invites, invite))
	return nil
}

func errNoUser() *wire.Error { return wire.Errorf(wire.CodeNotFound, "There is no such person.") }

// UserByEmail finds a person; see auth.UserStore.
func (s *Store) UserByEmail(ctx context.Context, email string) (wire.User, string, error) {
	id, err := get[string](ctx, s.rows, emailKey(email), errNoUser)
	if err != nil {
		return wire.User{}, "", err
	}

	p, err := get[person](ctx, s.rows, personKey(id), errNoUser)
	return p.User, p.Password, err
}

// Users lists the people of an account; see auth.UserStore. It reads all of the server's.
func (s *Store) Users(ctx context.Context, account string) ([]wire.User, error) {
	return s.users(ctx, func(p *person) bool { return p.AccountID == account })
}

// Everybody lists the people of all accounts; see auth.UserStore.
func (s *Store) Everybody(ctx context.Context) ([]wire.User, error) {
	return s.users(ctx, func(*person) bool { return true })
}

func (s *Store) users(ctx context.Context, keep func(*person) bool) ([]wire.User, error) {
	age := func(p *person) (time.Time, string) { return p.CreatedAt, p.ID }
	found, err := list(ctx, s, people, keep, age)
	if err != nil {
		return nil, err
	}

	users := make([]wire.User, len(found))
	for i := range found {
		users[i] = found[i].User
	}
	return users, nil
}

// ChangeUser changes a person; see auth.UserStore.
func (s *Store) ChangeUser(
	ctx context.Context, account, id string, change wire.UserChange,
) (wire.User, error) {
	return changed(ctx, s, true, func(tx *keyed.Tx) (wire.User, error) {
		p, err := get[person](ctx, tx, personKey(id), errNoUser)
		// Another account's people do not exist for this one (G7).
		if err == nil && p.AccountID != account {
			err = errNoUser()
		}
		if err == nil && change.Check != nil {
			err = change.Check(p.User)
		}
		if err != nil {
			return wire.User{}, err
		}
		apply(&p, change)
		// An account must keep an owner who can sign in: only an owner can appoint
		// another.
		owned := isOwner(&p)
		all, err := keyed.List[person](ctx, tx, keyed.Key{Kind: people})
		for _, item := range all {
			other := item.Of
			owned = owned || other.AccountID == account && other.ID != id && isOwner(other)
		}
		if err == nil && !owned {
			err = wire.Errorf(wire.CodeConflict, "The account would have no owner.")
		}
		if err != nil {
			return wire.User{}, err
		}

		return p.User, setUser(ctx, tx, &p)
	})
}

// setUser writes a person that was changed, and ends the links to choose a new password.
func setUser(ctx context.Context, tx *keyed.Tx, p *person) error {
	if err := dropResets(ctx, tx, func(r *wire.Reset) bool { return r.UserID == p.ID }); err != nil {
		return err
	}
	return tx.Put(personKey(p.ID), p)
}

// isOwner reports whether a person owns their account and can sign in.
func isOwner(p *person) bool { return p.Role == wire.RoleOwner && p.DisabledAt == nil }

func apply(p *person, c wire.UserChange) {
	// Every change ends the person's sessions: they were begun with other rights.
	p.SessionsFrom = c.At.UTC()
	if c.Role != nil {
		p.Role = *c.Role
	}
	if c.Password != nil {
		p.Password = *c.Password
	}
	switch {
	case c.Disabled != nil && !*c.Disabled:
		p.DisabledAt = nil
	// Disabled twice, the first moment stays.
	case c.Disabled != nil && p.DisabledAt == nil:
		at := c.At.UTC()
		p.DisabledAt = &at
	}
}

// HasOwner reports whether an account has an owner; see auth.UserStore.
func (s *Store) HasOwner(ctx context.Context, accountName string) (has bool, err error) {
	return hasOwner(ctx, s.rows, accountName)
}

func hasOwner(ctx context.Context, r keyed.Reader, accountName string) (bool, error) {
	owner, err := find(ctx, r, people, func(p *person) bool {
		return p.AccountName == accountName && p.Role == wire.RoleOwner
	})
	return owner != nil, err
}
