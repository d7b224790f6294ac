package accounts

import (
	"cmp"
	"context"
	"time"

	"promptspool/api/wire"
	"promptspool/spool/archive/transfer"
)

// CreateUser keeps a person; see auth.UserStore.
func (s *Store) CreateUser(
	ctx context.Context, u wire.User, password string, invite [32]byte,
) (wire.User, error) {
	return changed(ctx, s, false, func(tx Tx) (wire.User, error) {
		// Change may call this several times, and each must
		// start from what the caller gave.
		u := u
		if _, taken, err := tx.UserID(u.Email); taken || err != nil {
			return u, cmp.Or(err, error(wire.Errorf(wire.CodeConflict, "This email is taken.")))
		}
		if err := s.join(tx, &u, invite); err != nil {
			return u, err
		}
		return u, tx.Add(Users, u.ID, &transfer.Person{User: u, Password: password})
	})
}

// join finds the account of an invite, which it spends, or founds one without. It sets
// u's account and role.
func (s *Store) join(tx Tx, u *wire.User, invite [32]byte) (err error) {
	if invite == ([32]byte{}) {
		if taken, err := tx.Get(Accounts, u.AccountName, new(wire.Account)); taken || err != nil {
			return cmp.Or(err, error(wire.Errorf(wire.CodeConflict, "This account's name is taken.")))
		}
		u.AccountID, err = s.account(tx, u.AccountName)
		return err
	}

	i, err := get[wire.Invite](tx, Invites, string(invite[:]), errNoInvite)
	if err != nil {
		return err
	}
	spent := u.CreatedAt.After(i.ExpiresAt)
	// A setup code makes an account's first owner. Once there is one, it is spent.
	if i.Setup && !spent {
		spent, err = hasOwner(tx, i.AccountName)
	}
	if spent || err != nil {
		return cmp.Or(err, error(errNoInvite()))
	}

	u.AccountName, u.Role = i.AccountName, i.Role
	if u.AccountID, err = s.account(tx, i.AccountName); err != nil {
		return err
	}
	// In the same transaction as the person: an invite works once.
	return tx.Delete(Invites, string(invite[:]))
}

func errNoUser() *wire.Error { return wire.Errorf(wire.CodeNotFound, "There is no such person.") }

// UserByEmail finds a person; see auth.UserStore.
func (s *Store) UserByEmail(ctx context.Context, email string) (wire.User, string, error) {
	p, err := read(ctx, s, func(tx Tx) (p transfer.Person, err error) {
		id, found, err := tx.UserID(email)
		if !found || err != nil {
			return p, cmp.Or(err, error(errNoUser()))
		}
		return get[transfer.Person](tx, Users, id, errNoUser)
	})

	return p.User, p.Password, err
}

// Users lists the people of an account; see auth.UserStore. It reads all of the server's.
func (s *Store) Users(ctx context.Context, account string) ([]wire.User, error) {
	return s.users(ctx, func(p *transfer.Person) bool { return p.AccountID == account })
}

// Everybody lists the people of all accounts; see auth.UserStore.
func (s *Store) Everybody(ctx context.Context) ([]wire.User, error) {
	return s.users(ctx, func(*transfer.Person) bool { return true })
}

func (s *Store) users(ctx context.Context, keep func(*transfer.Person) bool) ([]wire.User, error) {
	age := func(p *transfer.Person) (time.Time, string) { return p.CreatedAt, p.ID }
	people, err := list(ctx, s, Users, keep, age)
	if err != nil {
		return nil, err
	}

	users := make([]wire.User, len(people))
	for i := range people {
		users[i] = people[i].User
	}
	return users, nil
}

// ChangeUser changes a person; see auth.UserStore.
func (s *Store) ChangeUser(
	ctx context.Context, account, id string, change wire.UserChange,
) (wire.User, error) {
	return changed(ctx, s, true, func(tx Tx) (wire.User, error) {
		p, err := get[transfer.Person](tx, Users, id, errNoUser)
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
		// An account must keep an owner who can sign in: nobody else could appoint one.
		owned := isOwner(&p)
		people, err := tx.List(Users)
		for _, r := range people {
			other := r.Of.(*transfer.Person)
			owned = owned || other.AccountID == account && other.ID != id && isOwner(other)
		}
		if err == nil && !owned {
			err = wire.Errorf(wire.CodeConflict, "The account would have no owner.")
		}
		if err != nil {
			return wire.User{}, err
		}

		return p.User, setUser(tx, &p)
	})
}

// setUser writes a person that was changed, and ends the links to choose a new password.
func setUser(tx Tx, p *transfer.Person) error {
	if err := dropResets(tx, func(r *wire.Reset) bool { return r.UserID == p.ID }); err != nil {
		return err
	}
	return tx.Put(Users, p.ID, p)
}

// isOwner reports whether somebody owns their account and can sign in.
func isOwner(p *transfer.Person) bool { return p.Role == wire.RoleOwner && p.DisabledAt == nil }

func apply(p *transfer.Person, c wire.UserChange) {
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
	return read(ctx, s, func(tx Tx) (bool, error) { return hasOwner(tx, accountName) })
}

func hasOwner(tx Tx, accountName string) (bool, error) {
	id, err := hashOf(tx, Users, func(row any) bool {
		p := row.(*transfer.Person)
		return p.AccountName == accountName && p.Role == wire.RoleOwner
	})

	return id != "", err
}
