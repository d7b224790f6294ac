package accounts

import (
	"context"
	"time"

	"promptspool/api/wire"
	"promptspool/spool/database/keyed"
)

func errNoSession() *wire.Error { return wire.Errorf(wire.CodeNotFound, "There is no such session.") }

// CreateSession keeps a session; see auth.SessionStore.
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

// Session finds a session; see auth.SessionStore.
func (s *Store) Session(ctx context.Context, hash [32]byte) (session wire.Session, u wire.User, err error) {
	session, err = get[wire.Session](ctx, s.rows, hashKey(sessions, hash), errNoSession)
	if err != nil {
		return session, u, err
	}

	p, err := get[person](ctx, s.rows, personKey(session.UserID), errNoUser)
	return session, p.signedIn(session.Account, session.ByIssuer), err
}

// OpenAccount changes the account that a session has open; see auth.SessionStore.
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

// EndSession ends a session; see auth.SessionStore.
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
