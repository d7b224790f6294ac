package accounts

import (
	"context"
	"slices"
	"time"

	"promptspool/api/wire"
	"promptspool/spool/database/keyed"
)

// Projects lists all accounts, oldest first; see auth.PeopleStore.
func (s *Store) Projects(ctx context.Context) ([]wire.Account, error) {
	return list(ctx, s, accounts, func(a *wire.Account) (time.Time, string) { return a.CreatedAt, a.ID })
}

// CreateProject makes an account; see auth.PeopleStore.
func (s *Store) CreateProject(ctx context.Context, name string) (wire.Account, error) {
	return changed(ctx, s, false, func(tx *keyed.Tx) (wire.Account, error) {
		if err := unused(ctx, tx, name); err != nil {
			return wire.Account{}, err
		}
		return s.newAccount(tx, name)
	})
}

// FoundProject makes an account that a person owns; see auth.PeopleStore.
func (s *Store) FoundProject(ctx context.Context, id, name string, at time.Time) (wire.User, error) {
	return changed(ctx, s, false, func(tx *keyed.Tx) (wire.User, error) {
		p, err := get[person](ctx, tx, personKey(id), errNoUser)
		if err == nil {
			err = unused(ctx, tx, name)
		}
		if err == nil && len(p.Memberships) >= wire.FoundedMax {
			err = wire.Errorf(wire.CodeConflict, "You are in %d projects already, and cannot make another one "+
				"here. An operator can, with `promptspool projects create`.", len(p.Memberships))
		}
		if err != nil {
			return wire.User{}, err
		}

		a, err := s.newAccount(tx, name)
		if err != nil {
			return wire.User{}, err
		}
		m := wire.Membership{AccountID: a.ID, AccountName: name, Role: wire.RoleOwner, Since: at.UTC()}
		p.Memberships = append(p.Memberships, m)

		return p.as(m), setUser(ctx, tx, &p)
	})
}

// ChangeProject changes an account; see auth.PeopleStore. Its name and whether it is archived
// are kept with each key and membership as well, so that no request looks them up.
func (s *Store) ChangeProject(ctx context.Context, name string, c wire.ProjectChange) (wire.Account, error) {
	return changed(ctx, s, false, func(tx *keyed.Tx) (wire.Account, error) {
		a, err := get[wire.Account](ctx, tx, keyed.Key{Kind: accounts, Name: name}, errNoProject)
		if err != nil {
			return a, err
		}

		if c.Name != "" && c.Name != name {
			if err := unused(ctx, tx, c.Name); err != nil {
				return a, err
			}
			tx.Delete(keyed.Key{Kind: accounts, Name: name})
			a.Name = c.Name
		}
		switch {
		case c.Archive != nil && !*c.Archive:
			a.ArchivedAt = nil
		// Archived twice, the first moment stays.
		case c.Archive != nil && a.ArchivedAt == nil:
			at := c.At.UTC()
			a.ArchivedAt = &at
		}
		if err := tx.Put(keyed.Key{Kind: accounts, Name: a.Name}, a); err != nil {
			return a, err
		}

		return a, spread(ctx, tx, name, &a)
	})
}

// spread writes what an account is now into its keys, memberships and invites. was is its name
// before.
func spread(ctx context.Context, tx *keyed.Tx, was string, a *wire.Account) error {
	archived := a.ArchivedAt != nil
	if err := rewrite(ctx, tx, keys, func(k *wire.Key) bool {
		mine := k.AccountID == a.ID
		if mine {
			k.AccountName, k.Archived = a.Name, archived
		}
		return mine
	}); err != nil {
		return err
	}

	if err := rewrite(ctx, tx, people, func(p *person) bool {
		m := p.at(a.ID)
		if m != nil {
			m.AccountName, m.Archived = a.Name, archived
		}
		return m != nil
	}); err != nil {
		return err
	}

	return rewrite(ctx, tx, invites, func(i *wire.Invite) bool {
		mine := i.AccountName == was
		if mine {
			i.AccountName = a.Name
		}
		return mine
	})
}

// rewrite writes the values of a kind that change has changed.
func rewrite[T any](ctx context.Context, tx *keyed.Tx, kind keyed.Kind, change func(*T) bool) error {
	items, err := keyed.List[T](ctx, tx, keyed.Key{Kind: kind})
	for _, item := range items {
		if err == nil && change(item.Of) {
			err = tx.Put(item.Key, item.Of)
		}
	}

	return err
}

// SetMember gives a person a role in an account; see auth.PeopleStore.
func (s *Store) SetMember(
	ctx context.Context, email, project string, role wire.Role, at time.Time,
) (wire.User, error) {
	return changed(ctx, s, false, func(tx *keyed.Tx) (wire.User, error) {
		account, err := s.account(ctx, tx, project)
		if err != nil {
			return wire.User{}, err
		}
		p, known, err := byEmail(ctx, tx, email)
		if err == nil && !known {
			p = person{ID: wire.NewID(), Email: email, CreatedAt: at}
			err = tx.Put(emailKey(email), p.ID)
		}
		if err != nil {
			return wire.User{}, err
		}

		before := slices.Clone(p.Memberships)
		if p.at(account) == nil {
			p.Memberships = append(p.Memberships,
				wire.Membership{AccountID: account, AccountName: project, Since: at})
		}
		m := p.at(account)
		m.Role, m.DisabledAt = role, nil
		p.SessionsFrom = at
		if err := keepOwners(ctx, tx, &p, before); err != nil {
			return wire.User{}, err
		}

		return p.as(*m), setUser(ctx, tx, &p)
	})
}

func errNoProject() *wire.Error {
	return wire.Errorf(wire.CodeNotFound,
		"There is no such project. `promptspool projects list` shows the existing ones.")
}
