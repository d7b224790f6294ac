package accounts

import (
	"cmp"
	"context"
	"slices"
	"time"

	"promptspool/api/wire"
	"promptspool/spool/database/keyed"
)

func errNoSession() *wire.Error { return wire.Errorf(wire.CodeNotFound, "There is no such session.") }

// CreateSession keeps a session; see auth.PeopleStore.
func (s *Store) CreateSession(ctx context.Context, hash [32]byte, session wire.Session) error {
	return s.change(ctx, true, func(tx *keyed.Tx) error {
		// Old sessions go when new ones come, so that they do not grow without end.
		key, end := hashKey(sessions, hash), func(s *wire.Session) time.Time { return s.ExpiresAt }
		if err := expire(ctx, tx, key, session.CreatedAt.Add(-wire.SessionKept), end); err != nil {
			return err
		}
		return tx.Put(key, session)
	})
}

// Session finds a session; see auth.PeopleStore.
func (s *Store) Session(ctx context.Context, hash [32]byte) (session wire.Session, u wire.User, err error) {
	session, err = get[wire.Session](ctx, s.rows, hashKey(sessions, hash), errNoSession)
	if err != nil {
		return session, u, err
	}

	p, err := get[person](ctx, s.rows, personKey(session.UserID), errNoUser)
	return session, p.signedIn(session.Account, session.ByIssuer), err
}

// OpenAccount changes the account that a session has open; see auth.PeopleStore.
func (s *Store) OpenAccount(ctx context.Context, hash [32]byte, account string) error {
	return s.change(ctx, true, func(tx *keyed.Tx) error {
		session, err := get[wire.Session](ctx, tx, hashKey(sessions, hash), errNoSession)
		if err != nil {
			return err
		}
		session.Account = account
		return tx.Put(hashKey(sessions, hash), session)
	})
}

// EndSession ends a session; see auth.PeopleStore.
func (s *Store) EndSession(ctx context.Context, hash [32]byte, at time.Time) error {
	return s.change(ctx, true, func(tx *keyed.Tx) error {
		session, found, err := keyed.Load[wire.Session](ctx, tx, hashKey(sessions, hash))
		if !found || err != nil || session.ExpiresAt.Before(at) && session.IDToken == "" {
			return err
		}

		// One that has ended keeps the moment at which it did.
		if at.Before(session.ExpiresAt) {
			session.ExpiresAt = at.UTC()
		}
		session.IDToken = ""
		return tx.Put(hashKey(sessions, hash), session)
	})
}

// Failures finds failed sign-ins; see auth.FailureStore.
func (s *Store) Failures(ctx context.Context, sources [][32]byte) ([]wire.Failures, error) {
	_, counts, err := loadFailures(ctx, s.rows, sources)
	return counts, err
}

// loadFailures reads the counts of sources, and returns their keys as well.
func loadFailures(
	ctx context.Context, r keyed.Reader, sources [][32]byte,
) (of []keyed.Key, counts []wire.Failures, err error) {
	for _, source := range sources {
		of = append(of, hashKey(failures, source))
	}
	stored, err := keyed.LoadAll[wire.Failures](ctx, r, of...)

	counts = make([]wire.Failures, len(stored))
	for i, f := range stored {
		if f != nil {
			counts[i] = *f
		}
	}
	return of, counts, err
}

// AddFailure counts a failed sign-in, and forgets some of those
// whose time is over; see auth.FailureStore.
func (s *Store) AddFailure(ctx context.Context, sources [][32]byte, now, until time.Time) error {
	return s.change(ctx, false, func(tx *keyed.Tx) error {
		of, counts, err := loadFailures(ctx, tx, sources)
		if err != nil {
			return err
		}
		// Anybody may fail, from many addresses: old counts go as new
		// ones come, or they would fill the disk.
		end := func(f *wire.Failures) time.Time { return f.Until }
		if err := expire(ctx, tx, of[0], now, end); err != nil {
			return err
		}

		for i, f := range counts {
			// A count whose time is over begins again.
			if !now.Before(f.Until) {
				f = wire.Failures{Until: until.UTC()}
			}
			f.Count++
			if err := tx.Put(of[i], f); err != nil {
				return err
			}
		}
		return nil
	})
}

// TakeBackFailure counts one less; see auth.FailureStore.
func (s *Store) TakeBackFailure(ctx context.Context, sources [][32]byte) error {
	return s.change(ctx, false, func(tx *keyed.Tx) error {
		of, counts, err := loadFailures(ctx, tx, sources)
		for i, f := range counts {
			// It may have been forgotten meanwhile, or begun again.
			if err == nil && f.Count > 0 {
				f.Count--
				err = tx.Put(of[i], f)
			}
		}
		return err
	})
}

// ForgetFailures forgets failed sign-ins; see auth.FailureStore.
func (s *Store) ForgetFailures(ctx context.Context, source [32]byte) error {
	return s.change(ctx, true, func(tx *keyed.Tx) error {
		// Nearly everybody who signs in has none, and then there is nothing to write.
		_, found, err := keyed.Load[wire.Failures](ctx, tx, hashKey(failures, source))
		if found {
			tx.Delete(hashKey(failures, source))
		}
		return err
	})
}

func errNoInvite() *wire.Error {
	return wire.Errorf(wire.CodeNotFound, "There is no such invite, or it is spent.")
}

// CreateInvite keeps an invite; see auth.PeopleStore.
func (s *Store) CreateInvite(ctx context.Context, hash [32]byte, i wire.Invite) error {
	return s.put(ctx, hashKey(invites, hash), i)
}

// Invite finds an invite; see auth.PeopleStore.
func (s *Store) Invite(ctx context.Context, hash [32]byte) (wire.Invite, error) {
	return get[wire.Invite](ctx, s.rows, hashKey(invites, hash), errNoInvite)
}

// Invites lists the invites of an account; see auth.PeopleStore.
func (s *Store) Invites(ctx context.Context, accountName string) ([]wire.Invite, error) {
	all, err := list(ctx, s, invites, func(i *wire.Invite) (time.Time, string) { return i.CreatedAt, i.ID })
	others := func(i wire.Invite) bool { return i.AccountName != accountName || i.Setup }
	return slices.DeleteFunc(all, others), err
}

// DeleteInvite revokes an invite; see auth.PeopleStore.
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

// CreateReset keeps a reset link; see auth.PeopleStore. It removes those
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

// Reset finds a reset link; see auth.PeopleStore.
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

// SpendReset sets the password of a link's person; see auth.PeopleStore.
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
