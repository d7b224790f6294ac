package accounts

import (
	"context"
	"slices"
	"time"

	"promptspool/spool/database/keyed"
)

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
