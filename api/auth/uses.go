package auth

import (
	"context"
	"sync"
	"time"

	"promptspool/api/wire"
)

// usesEvery is how often the times of last use are stored, with one write for all keys.
const usesEvery = time.Minute

// uses collects when keys were last used, until that is stored. It is bounded by the
// number of keys.
type uses struct {
	mu   sync.Mutex
	last map[string]time.Time // under mu; by key id
}

func newUses() *uses { return &uses{last: map[string]time.Time{}} }

// note records a use.
func (u *uses) note(k wire.Key, now time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.last[k.ID] = now.UTC()
}

// take returns what was collected, and starts over.
func (u *uses) take() map[string]time.Time {
	u.mu.Lock()
	defer u.mu.Unlock()

	last := u.last
	u.last = map[string]time.Time{}

	return last
}

// usesPatience is how long a stop waits for a database that does not answer.
const usesPatience = 2 * time.Second

// Run stores every minute when keys were last used, and once more when ctx ends. It then returns nil.
func (a *Auth) Run(ctx context.Context) error {
	tick := time.NewTicker(usesEvery)
	defer tick.Stop()

	for {
		select {
		case <-ctx.Done():
			stopping, stopped := context.WithTimeout(context.WithoutCancel(ctx), usesPatience)
			defer stopped()
			_ = a.StoreUses(stopping)
			return nil
		case <-tick.C:
			_ = a.StoreUses(ctx) // the next use records it again
		}
	}
}

// StoreUses stores when keys were used since the last call. On an error, these uses are
// dropped.
func (a *Auth) StoreUses(ctx context.Context) error {
	used := a.uses.take()
	if len(used) == 0 {
		return nil
	}
	return a.store.TouchKeys(ctx, used)
}
