package accounts

import (
	"cmp"
	"context"
	"slices"
	"time"

	"promptspool/api/wire"
	"promptspool/spool/database/keyed"
)

// person is someone who signs in, with their place in each of their accounts.
type person struct {
	ID           string            `json:"id"`
	Email        string            `json:"email"`
	Password     string            `json:"password"` // its hash; "" is none
	CreatedAt    time.Time         `json:"created_at"`
	SessionsFrom time.Time         `json:"sessions_from"`
	Issuer       string            `json:"issuer,omitempty"`  // where they have signed in
	Subject      string            `json:"subject,omitempty"` // their name at the issuer; "" is none yet
	Memberships  []wire.Membership `json:"memberships"`
}

func personKey(id string) keyed.Key { return keyed.Key{Kind: people, Name: id} }

func emailKey(email string) keyed.Key { return keyed.Key{Kind: emails, Name: email} }

// at returns the person's membership of an account; nil if there is none.
func (p *person) at(account string) *wire.Membership {
	for i := range p.Memberships {
		if p.Memberships[i].AccountID == account {
			return &p.Memberships[i]
		}
	}
	return nil
}

// as returns the person as a member.
func (p *person) as(m wire.Membership) wire.User {
	u := wire.User{
		ID:           p.ID,
		AccountID:    m.AccountID,
		AccountName:  m.AccountName,
		Email:        p.Email,
		Role:         m.RoleIn(true),
		CreatedAt:    m.Since,
		DisabledAt:   m.DisabledAt,
		SessionsFrom: p.SessionsFrom,
		Founder:      m.Founder,
		GroupRole:    m.GroupRole,
	}
	if m.GroupRole != "" {
		u.OwnRole = m.Role
	}
	return u
}

// signedIn returns the person in a session: in the account that it has open, or else in the
// first that they may open.
func (p *person) signedIn(account string, byIssuer bool) wire.User {
	var open []wire.Membership
	at := 0
	for _, m := range p.Memberships {
		m.Role, m.GroupRole = m.RoleIn(byIssuer), ""
		if m.DisabledAt != nil || m.Role == "" {
			continue
		}
		if m.AccountID == account {
			at = len(open)
		}
		open = append(open, m)
	}
	if open == nil {
		return p.as(wire.Membership{})
	}

	u := p.as(open[at])
	u.Projects = open
	return u
}

// CreateUser keeps a person; see auth.PeopleStore.
func (s *Store) CreateUser(
	ctx context.Context, u wire.User, password string, invite [32]byte,
) (wire.User, error) {
	return changed(ctx, s, false, func(tx *keyed.Tx) (wire.User, error) {
		if _, taken, err := keyed.Load[string](ctx, tx, emailKey(u.Email)); taken || err != nil {
			return u, cmp.Or(err, error(wire.Errorf(wire.CodeConflict, "This email is taken.")))
		}
		m, err := s.join(ctx, tx, u, invite)
		if err != nil {
			return u, err
		}

		p := person{
			ID:           u.ID,
			Email:        u.Email,
			Password:     password,
			CreatedAt:    u.CreatedAt,
			SessionsFrom: u.SessionsFrom,
			Memberships:  []wire.Membership{m},
		}
		// A person never changes the email, so the index is written only here.
		if err := tx.Put(emailKey(u.Email), u.ID); err != nil {
			return u, err
		}
		return p.signedIn(m.AccountID, false), tx.Put(personKey(u.ID), p)
	})
}

// join returns the membership of a new person, who founds an account or spends an invite.
func (s *Store) join(ctx context.Context, tx *keyed.Tx, u wire.User, invite [32]byte) (wire.Membership, error) {
	if invite != ([32]byte{}) {
		return s.spend(ctx, tx, invite, u.CreatedAt)
	}

	m := wire.Membership{AccountName: u.AccountName, Role: u.Role, Since: u.CreatedAt, Founder: u.Founder}
	if err := unused(ctx, tx, u.AccountName); err != nil {
		return m, err
	}
	a, err := s.newAccount(tx, u.AccountName)
	m.AccountID = a.ID
	return m, err
}

// spend uses an invite up, and returns the membership that it gives.
func (s *Store) spend(ctx context.Context, tx *keyed.Tx, invite [32]byte, at time.Time) (wire.Membership, error) {
	i, err := get[wire.Invite](ctx, tx, hashKey(invites, invite), errNoInvite)
	m := wire.Membership{AccountName: i.AccountName, Role: i.Role, Since: at}
	if err != nil {
		return m, err
	}

	spent := at.After(i.ExpiresAt)
	// A setup code makes an account's first owner. Once there is one, it is spent.
	if i.Setup && !spent {
		spent, err = hasOwner(ctx, tx, i.AccountName)
	}
	if spent || err != nil {
		return m, cmp.Or(err, error(errNoInvite()))
	}

	// In the same transaction as the person: an invite works once.
	tx.Delete(hashKey(invites, invite))
	m.AccountID, err = s.account(ctx, tx, i.AccountName)
	return m, err
}

// JoinAccount lets a person into one more account; see auth.PeopleStore.
func (s *Store) JoinAccount(
	ctx context.Context, id string, invite [32]byte, at time.Time,
) (wire.User, error) {
	return changed(ctx, s, false, func(tx *keyed.Tx) (wire.User, error) {
		p, err := get[person](ctx, tx, personKey(id), errNoUser)
		if err != nil {
			return wire.User{}, err
		}
		joined, err := s.spend(ctx, tx, invite, at.UTC())
		if err != nil {
			return wire.User{}, err
		}

		m := p.at(joined.AccountID)
		switch {
		case m == nil:
			p.Memberships = append(p.Memberships, joined)
		case m.Role != "" || m.DisabledAt != nil:
			return wire.User{}, wire.Errorf(wire.CodeConflict, "This person is a member already.")
		default: // so far by groups of the issuer only
			m.Role = joined.Role
		}
		// A link that an owner of another account made must not open this one.
		return p.as(*p.at(joined.AccountID)), setUser(ctx, tx, &p)
	})
}

func errNoUser() *wire.Error { return wire.Errorf(wire.CodeNotFound, "There is no such person.") }

// UserByEmail finds a person; see auth.PeopleStore.
func (s *Store) UserByEmail(ctx context.Context, email string) (wire.User, string, error) {
	p, found, err := byEmail(ctx, s.rows, email)
	if err == nil && !found {
		err = errNoUser()
	}
	if err != nil {
		return wire.User{}, "", err
	}
	return p.signedIn("", false), p.Password, nil
}

// byEmail finds a person; found is false if there is none.
func byEmail(ctx context.Context, r keyed.Reader, email string) (p person, found bool, err error) {
	id, found, err := keyed.Load[string](ctx, r, emailKey(email))
	if err == nil && found {
		p, err = get[person](ctx, r, personKey(id), errNoUser)
	}
	return p, found, err
}

// Users lists the people of an account; see auth.PeopleStore. It reads all of the server's.
func (s *Store) Users(ctx context.Context, account string) ([]wire.User, error) {
	all, err := s.Everybody(ctx)
	return slices.DeleteFunc(all, func(u wire.User) bool { return u.AccountID != account }), err
}

// Everybody lists the people of all accounts; see auth.PeopleStore.
func (s *Store) Everybody(ctx context.Context) ([]wire.User, error) {
	all, err := keyed.List[person](ctx, s.rows, keyed.Key{Kind: people})
	users := []wire.User{}
	for _, p := range all {
		for _, m := range p.Of.Memberships {
			users = append(users, p.Of.as(m))
		}
		if len(p.Of.Memberships) == 0 {
			users = append(users, p.Of.as(wire.Membership{Since: p.Of.CreatedAt}))
		}
	}

	slices.SortStableFunc(users, func(a, b wire.User) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	return users, err
}

// in returns the person as a member of an account. If that is "", of the first that they may open,
// or else of their first.
func (p *person) in(account string) (u wire.User, found bool) {
	m := p.at(account)
	switch u = p.signedIn("", true); {
	case m != nil:
		return p.as(*m), true
	case account == "" && u.Role == "" && len(p.Memberships) > 0:
		return p.as(p.Memberships[0]), true
	}
	return u, account == ""
}

// member returns a person of an account, or of any if that is "".
func member(ctx context.Context, r keyed.Reader, account, id string) (p person, u wire.User, err error) {
	p, err = get[person](ctx, r, personKey(id), errNoUser)
	u, found := p.in(account)
	// Another account's people do not exist for this one (G7).
	if err == nil && !found {
		err = errNoUser()
	}
	return p, u, err
}

// ChangeUser changes a person; see auth.PeopleStore.
func (s *Store) ChangeUser(
	ctx context.Context, account, id string, change wire.UserChange,
) (wire.User, error) {
	return changed(ctx, s, true, func(tx *keyed.Tx) (wire.User, error) {
		p, u, err := member(ctx, tx, account, id)
		if err != nil {
			return u, err
		}

		before := slices.Clone(p.Memberships)
		p.apply(account, change)
		if err := keepOwners(ctx, tx, &p, before); err != nil {
			return u, err
		}
		u, _ = p.in(account)
		return u, setUser(ctx, tx, &p)
	})
}

// keepOwners rejects a change of a person's memberships by which an account would lose its last
// owner who can sign in: only an owner can appoint another.
func keepOwners(ctx context.Context, tx *keyed.Tx, p *person, before []wire.Membership) error {
	for i, m := range before {
		if !m.Owns() || p.Memberships[i].Owns() {
			continue
		}

		other, err := find(ctx, tx, people, func(other *person) bool {
			theirs := other.at(m.AccountID)
			return other.ID != p.ID && theirs != nil && theirs.Owns()
		})
		if err != nil {
			return err
		}
		if other == nil {
			return wire.Errorf(wire.CodeConflict, "%s is the last owner of the project %s, which needs one. "+
				"Make someone else an owner first, for example with: "+
				"promptspool people invite --project %s --role owner", p.Email, m.AccountName, m.AccountName)
		}
	}
	return nil
}

// setUser writes a person that was changed, and ends the links to choose a new password.
func setUser(ctx context.Context, tx *keyed.Tx, p *person) error {
	if err := dropResets(ctx, tx, func(r *wire.Reset) bool { return r.UserID == p.ID }); err != nil {
		return err
	}
	return tx.Put(personKey(p.ID), p)
}

// apply changes a person, and their membership of an account, or all of theirs if that is "".
func (p *person) apply(account string, c wire.UserChange) {
	// Every change ends the person's sessions: they were begun with other rights.
	p.SessionsFrom = c.At.UTC()
	if c.Password != nil {
		p.Password = *c.Password
	}
	// Someone else may have the email now, with a new login at the issuer.
	if account == "" && c.Disabled != nil && !*c.Disabled {
		p.Issuer, p.Subject = "", ""
	}

	for i := range p.Memberships {
		m := &p.Memberships[i]
		if account != "" && m.AccountID != account {
			continue
		}
		if c.Role != nil {
			m.Role = *c.Role
		}

		switch {
		case c.Disabled != nil && !*c.Disabled:
			m.DisabledAt = nil
		// Disabled twice, the first moment stays.
		case c.Disabled != nil && m.DisabledAt == nil:
			at := p.SessionsFrom
			m.DisabledAt = &at
		}
	}
}

// HasOwner reports whether an account has an owner; see auth.PeopleStore.
func (s *Store) HasOwner(ctx context.Context, accountName string) (has bool, err error) {
	return hasOwner(ctx, s.rows, accountName)
}

func hasOwner(ctx context.Context, r keyed.Reader, accountName string) (bool, error) {
	owner, err := find(ctx, r, people, func(p *person) bool {
		return slices.ContainsFunc(p.Memberships, func(m wire.Membership) bool {
			return m.AccountName == accountName && m.RoleIn(true) == wire.RoleOwner
		})
	})
	return owner != nil, err
}

// EnterUser finds or makes the person of a login; see auth.PeopleStore.
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
	// By the ids of accounts.
	roles := map[string]wire.Role{}
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
