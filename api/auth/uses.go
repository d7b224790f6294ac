package auth

import (
	"context"
	"sync"
	"time"

	"promptspool/api/wire"
)

// usesEvery is how often it is stored when keys were last used: one write for all of them.
const usesEvery = time.Minute

// uses remembers when keys were used since that was stored last. It is bounded by the keys that there are.
type uses struct {
	mu   sync.Mutex
	last map[string]time.Time // under mu; by key id
}

func newUses() *uses { return &uses{last: map[string]time.Time{}} }

// note remembers a use, unless what is stored is recent enough.
func (u *uses) note(k wire.Key, now time.Time) {
	if k.LastUsedAt != nil && now.Sub(*k.LastUsedAt) < usesEvery {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.last[k.ID] = now.UTC()
}

// take empties it.
func (u *uses) take() map[string]time.Time {
	u.mu.Lock()
	defer u.mu.Unlock()
	last := u.last
	u.last = map[string]time.Time{}
	return last
}

// Run stores each minute when keys were last used, until ctx ends, and returns nil then.
func (a *Auth) Run(ctx context.Context) error {
	tick := time.NewTicker(usesEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			_ = a.StoreUses(ctx) // the next use tells again
		}
	}
}

// StoreUses stores when keys were used since it was last called. On an error that is forgotten.
func (a *Auth) StoreUses(ctx context.Context) error {
	used := a.uses.take()
	if len(used) == 0 {
		return nil
	}
	return a.store.TouchKeys(ctx, used)
}
