package accounts

import (
	"context"
	"slices"

	"promptspool/api/wire"
	"promptspool/spool/database/keyed"
)

// EnterUser finds or makes the person of a login; see auth.UserStore.
func (s *Store) EnterUser(
	ctx context.Context, u wire.User, l wire.Login, invite [32]byte, keepPassword bool,
) (entered wire.User, changed []wire.Membership, err error) {
	err = s.change(ctx, true, func(tx *keyed.Tx) error {
		p, err := s.entering(ctx, tx, u, l, invite)
		switch {
		case err != nil:
			return err
		case p.Subject == "" && !keepPassword:
			p.Password = ""
			fallthrough
		case p.Subject == "":
			p.Subject, p.SessionsFrom = l.Subject, u.CreatedAt
		case p.Subject != l.Subject:
			return wire.Errorf(wire.CodeConflict, "This person has another name at the issuer.")
		}
		p.Issuer = l.Issuer

		changed = nil
		enabled := func(m wire.Membership) bool { return m.DisabledAt == nil }
		if len(p.Memberships) == 0 || slices.ContainsFunc(p.Memberships, enabled) {
			changed, err = s.grant(ctx, tx, &p, u, l.Grants)
		}
		if err != nil {
			return err
		}
		entered = p.signedIn("", true)

		return setUser(ctx, tx, &p)
	})

	return entered, changed, err
}

// entering returns the person of a login, who may be new. Their name at the issuer comes before the email,
// which people may change there: no other address opens what was disabled.
func (s *Store) entering(
	ctx context.Context, tx *keyed.Tx, u wire.User, l wire.Login, invite [32]byte,
) (person, error) {
	p, known, err := byEmail(ctx, tx, u.Email)
	if err != nil || known && p.Issuer == l.Issuer && p.Subject == l.Subject {
		return p, err
	}
	named, err := find(ctx, tx, people, func(p *person) bool {
		// 0.1.0 did not keep the issuer, and gave each email of a person to another one: the first counts.
		return p.Subject == l.Subject && (p.Issuer == l.Issuer || p.Issuer == "")
	})
	switch {
	case err != nil || known && named == nil:
		return p, err
	case named != nil:
		return *named.Of, nil
	}

	p = person{ID: u.ID, Email: u.Email, CreatedAt: u.CreatedAt}
	switch {
	case invite != [32]byte{}:
		m, err := s.spend(ctx, tx, invite, u.CreatedAt)
		if err != nil {
			return p, err
		}
		p.Memberships = []wire.Membership{m}
	case len(l.Grants) == 0:
		return p, errNoUser()
	}

	return p, tx.Put(emailKey(u.Email), u.ID)
}

// grant replaces the roles that a person has by groups, and returns the memberships that have changed.
func (s *Store) grant(
	ctx context.Context, tx *keyed.Tx, p *person, u wire.User, grants []wire.Grant,
) (changed []wire.Membership, err error) {
	// The transaction does not see an account that it makes itself, here or by an invite.
	ids := map[string]string{}
	if p.ID == u.ID && len(p.Memberships) > 0 {
		ids[p.Memberships[0].AccountName] = p.Memberships[0].AccountID
	}
	roles := map[string]wire.Role{} // by the ids of accounts
	for _, g := range grants {
		id, known := ids[g.Project]
		if !known {
			id, err = s.account(ctx, tx, g.Project)
			if wire.IsCode(err, wire.CodeConflict) { // archived
				continue
			}
			if err != nil {
				return nil, err
			}
			ids[g.Project] = id
		}
		if !roles[id].Includes(g.Role) {
			roles[id] = g.Role
		}
		if p.at(id) == nil {
			p.Memberships = append(p.Memberships,
				wire.Membership{AccountID: id, AccountName: g.Project, Since: u.CreatedAt})
		}
	}

	for i := range p.Memberships {
		m := &p.Memberships[i]
		if role := roles[m.AccountID]; m.GroupRole != role {
			m.GroupRole = role
			changed = append(changed, *m)
		}
	}
	// One that is disabled is remembered, so that no group enables it.
	p.Memberships = slices.DeleteFunc(p.Memberships, func(m wire.Membership) bool {
		return m.RoleIn(true) == "" && m.DisabledAt == nil && !m.Archived
	})

	return changed, nil
}
