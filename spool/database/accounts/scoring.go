package accounts

import (
	"context"
	"slices"
	"time"

	"promptspool/api/wire"
	"promptspool/spool/database/keyed"
)

// Kinds of what a project says about its scores, by name.
const (
	scoreDefinitions keyed.Kind = "score definitions" // wire.ScoreDefinition
	reviewQueues     keyed.Kind = "review queues"     // wire.ReviewQueue
)

// definitionsFor is how long definitions are used before they are read again: they are asked for
// with every score.
const definitionsFor = time.Second

// readDefinitions are the definitions of a project as they were at a moment.
type readDefinitions struct {
	at  time.Time
	all wire.ScoreDefinitions
}

// ScoreDefinitions returns the project's definitions. They may miss what another server changed
// within the last second. The caller must not change them.
func (s *Store) ScoreDefinitions(ctx context.Context, id wire.Identity) (wire.ScoreDefinitions, error) {
	now := s.now()
	if read, ok := s.definitions.Load(id.Account); ok && now.Sub(read.(readDefinitions).at) < definitionsFor {
		return read.(readDefinitions).all, nil
	}

	all, err := named[wire.ScoreDefinition](ctx, s.rows, scoreDefinitions, id.Account)
	if err == nil {
		s.definitions.Store(id.Account, readDefinitions{now, all})
	}
	return all, err
}

// DefineScore makes a definition, or replaces the one of its name.
func (s *Store) DefineScore(ctx context.Context, id wire.Identity, d wire.ScoreDefinition) error {
	defer s.definitions.Delete(id.Account)
	return putNamed(ctx, s, scoreDefinitions, id, d.Name, d, wire.ScoreDefinitionsMax)
}

// UndefineScore removes a definition. CodeNotFound if there is none.
func (s *Store) UndefineScore(ctx context.Context, id wire.Identity, name string) error {
	defer s.definitions.Delete(id.Account)
	return removeNamed(ctx, s, scoreDefinitions, id, name)
}

// ReviewQueues returns the project's queues, sorted by name.
func (s *Store) ReviewQueues(ctx context.Context, id wire.Identity) ([]wire.ReviewQueue, error) {
	return named[wire.ReviewQueue](ctx, s.rows, reviewQueues, id.Account)
}

// PutReviewQueue makes a queue, or replaces the one of its name.
func (s *Store) PutReviewQueue(ctx context.Context, id wire.Identity, q wire.ReviewQueue) error {
	return putNamed(ctx, s, reviewQueues, id, q.Name, q, wire.ReviewQueuesMax)
}

// RemoveReviewQueue removes a queue. CodeNotFound if there is none.
func (s *Store) RemoveReviewQueue(ctx context.Context, id wire.Identity, name string) error {
	return removeNamed(ctx, s, reviewQueues, id, name)
}

// named returns the values of an account, of a kind, sorted by name. It is never nil.
func named[T any](ctx context.Context, r keyed.Reader, kind keyed.Kind, account string) ([]T, error) {
	all := []T{}
	err := keyed.Each(ctx, r, keyed.Key{Kind: kind, Account: account}, func(_ keyed.Key, v *T) error {
		all = append(all, *v)
		return nil
	})
	return all, err
}

// putNamed writes a value, unless it would be one more than most.
func putNamed(
	ctx context.Context, s *Store, kind keyed.Kind, id wire.Identity, name string, value any, most int,
) error {
	key := keyed.Key{Kind: kind, Account: id.Account, Name: name}
	return s.rows.Change(ctx, id.Account, true, func(tx *keyed.Tx) error {
		was, err := tx.Get(ctx, key)
		if err == nil && was[0] == nil {
			err = hasRoom(ctx, tx, key, most)
		}
		if err != nil {
			return err
		}
		return tx.Put(key, value)
	})
}

// hasRoom refuses a new key if there are as many of its kind as an account may have.
func hasRoom(ctx context.Context, tx *keyed.Tx, key keyed.Key, most int) error {
	full, err := tx.Scan(ctx, keyed.Key{Kind: key.Kind, Account: key.Account}, most-1, 1)
	if err == nil && len(full) > 0 {
		err = wire.Errorf(wire.CodeConflict, "A project has at most %d %s. Remove one first.", most, key.Kind)
	}
	return err
}

func removeNamed(ctx context.Context, s *Store, kind keyed.Kind, id wire.Identity, name string) error {
	key := keyed.Key{Kind: kind, Account: id.Account, Name: name}
	return s.rows.Change(ctx, id.Account, false, func(tx *keyed.Tx) error {
		was, err := tx.Get(ctx, key)
		if err == nil && was[0] == nil {
			err = wire.Errorf(wire.CodeNotFound, "There is no %.200q among the %s.", name, kind)
		}
		tx.Delete(key)
		return err
	})
}

const claims keyed.Kind = "claims" // claim by its reviewer

// claimedFor is how long a call is on one reviewer's screen alone, unless it is claimed again.
const claimedFor = 2 * time.Minute

// claim is the call that a reviewer looks at.
type claim struct {
	Call  string    `json:"call"`
	Until time.Time `json:"until"`
}

// Claim returns the first of some calls that no other reviewer looks at; "" if there is none. For two
// minutes it is not returned to others. The call that the reviewer had is free again.
func (s *Store) Claim(ctx context.Context, account, reviewer string, calls []string) (call string, err error) {
	err = s.rows.Change(ctx, account, true, func(tx *keyed.Tx) error {
		all, err := keyed.List[claim](ctx, tx, keyed.Key{Kind: claims, Account: account})
		if err != nil {
			return err
		}

		now, others := s.now().UTC(), map[string]bool{}
		for _, c := range all {
			if c.Key.Name == reviewer || !c.Of.Until.After(now) {
				tx.Delete(c.Key)
			} else {
				others[c.Of.Call] = true
			}
		}

		call = ""
		if at := slices.IndexFunc(calls, func(id string) bool { return !others[id] }); at >= 0 {
			call = calls[at]
			mine := keyed.Key{Kind: claims, Account: account, Name: reviewer}
			return tx.Put(mine, claim{call, now.Add(claimedFor)})
		}

		return nil
	})

	return call, err
}
