package accounts

import (
	"context"
	"time"

	"promptspool/api/wire"
	"promptspool/spool/archive/transfer"
)

func errNoSession() *wire.Error { return wire.Errorf(wire.CodeNotFound, "There is no such session.") }

// CreateSession keeps a session; see auth.SessionStore.
func (s *Store) CreateSession(ctx context.Context, hash [32]byte, session wire.Session) error {
	return s.db.Change(ctx, true, func(tx Tx) error {
		key := string(hash[:])
		// Old sessions go when new ones come, so that the
		// table does not grow without end.
		if err := tx.Expire(Sessions, key, session.CreatedAt.Add(-wire.SessionKept)); err != nil {
			return err
		}
		return tx.Put(Sessions, key, &session)
	})
}

// Session finds a session; see auth.SessionStore.
func (s *Store) Session(ctx context.Context, hash [32]byte) (session wire.Session, u wire.User, err error) {
	err = s.db.Read(ctx, func(tx Tx) error {
		if session, err = get[wire.Session](tx, Sessions, string(hash[:]), errNoSession); err != nil {
			return err
		}
		p, err := get[transfer.Person](tx, Users, session.UserID, errNoUser)
		u = p.User
		return err
	})

	return session, u, err
}

// EndSession ends a session; see auth.SessionStore.
func (s *Store) EndSession(ctx context.Context, hash [32]byte, at time.Time) error {
	return s.db.Change(ctx, true, func(tx Tx) error {
		var session wire.Session
		found, err := tx.Get(Sessions, string(hash[:]), &session)
		// One that has ended keeps the moment at which it did.
		if !found || err != nil || session.ExpiresAt.Before(at) {
			return err
		}

		session.ExpiresAt = at.UTC()
		return tx.Put(Sessions, string(hash[:]), &session)
	})
}

// Failures finds failed sign-ins; see auth.FailureStore.
func (s *Store) Failures(ctx context.Context, sources [][32]byte) ([]wire.Failures, error) {
	found := make([]wire.Failures, len(sources))
	err := s.db.Read(ctx, func(tx Tx) (err error) {
		for i, source := range sources {
			if _, err = tx.Get(Failures, string(source[:]), &found[i]); err != nil {
				return err
			}
		}
		return nil
	})

	return found, err
}

// AddFailure counts a failed sign-in, and forgets some of those
// whose time is over; see auth.FailureStore.
func (s *Store) AddFailure(ctx context.Context, sources [][32]byte, now, until time.Time) error {
	return s.db.Change(ctx, false, func(tx Tx) error {
		// Anybody may fail, from many addresses: old counts go as new
		// ones come, or they would fill the disk.
		if err := tx.Expire(Failures, string(sources[0][:]), now); err != nil {
			return err
		}

		for _, source := range sources {
			var f wire.Failures
			if _, err := tx.Get(Failures, string(source[:]), &f); err != nil {
				return err
			}
			// A count whose time is over begins anew.
			if !now.Before(f.Until) {
				f = wire.Failures{Until: until.UTC()}
			}
			f.Count++
			if err := tx.Put(Failures, string(source[:]), &f); err != nil {
				return err
			}
		}
		return nil
	})
}

// TakeBackFailure counts one less; see auth.FailureStore.
func (s *Store) TakeBackFailure(ctx context.Context, sources [][32]byte) error {
	return s.db.Change(ctx, false, func(tx Tx) error {
		for _, source := range sources {
			var f wire.Failures
			_, err := tx.Get(Failures, string(source[:]), &f)
			// It may have been forgotten meanwhile, or begun anew.
			if err == nil && f.Count > 0 {
				f.Count--
				err = tx.Put(Failures, string(source[:]), &f)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// ForgetFailures forgets failed sign-ins; see auth.FailureStore.
func (s *Store) ForgetFailures(ctx context.Context, source [32]byte) error {
	return s.db.Change(ctx, true, func(tx Tx) error {
		found, err := tx.Get(Failures, string(source[:]), new(wire.Failures))
		if !found || err != nil {
			return err
		}
		return tx.Delete(Failures, string(source[:]))
	})
}
