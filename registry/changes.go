package registry

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"promptspool/api/wire"
)

// ChangesWaitMax is the longest that Changes waits.
const ChangesWaitMax = time.Minute

// Changes returns what changed after revision q.Since.
//
// If nothing changed, it waits up to q.Wait (at most ChangesWaitMax) for a publish in
// this process, or in another one that Watch hears of, and then returns the same
// revision. It also returns when the provider base URLs differ from those the caller
// knows, or when a key was revoked; see WatchKeys.
//
// When ctx ends it returns without an error. Nothing is lost: a caller that asks again
// sends what it knows.
func (r *Registry) Changes(
	ctx context.Context, id wire.Identity, q wire.ChangesQuery,
) (wire.Changes, error) {
	timer := time.NewTimer(min(max(q.Wait, 0), ChangesWaitMax))
	defer timer.Stop()

	for expired := q.Wait <= 0; ; {
		// Register before reading, or a publish between the two would be missed.
		woken := r.waiters.wait(id.Account)
		c, err := r.store.TemplateChanges(ctx, id.Account, q.Since)
		if err != nil {
			return wire.Changes{}, err
		}

		c.Success = true
		c.Names = nonNil(c.Names)
		c.ProviderBaseURLs = r.urls.Load().Digest()
		redirected := q.ProviderBaseURLs != "" && q.ProviderBaseURLs != c.ProviderBaseURLs
		if revoked := r.revoked.Load(); revoked != nil {
			c.Keys = strconv.Itoa((*revoked)[id.Account])
		}
		rekeyed := q.Keys != "" && c.Keys != "" && q.Keys != c.Keys
		if expired || c.Reset || redirected || rekeyed || c.Revision != q.Since {
			return c, nil
		}

		select {
		case <-woken:
		case <-timer.C:
			expired = true
		case <-ctx.Done():
			return c, nil
		}
	}
}

// Watch wakes callers of Changes when another process changes templates, until ctx ends.
// If only this process writes to the Store, it just waits.
func (r *Registry) Watch(ctx context.Context) error {
	if shared, ok := r.store.(Watcher); ok {
		return shared.Watch(ctx, r.waiters.accountNames, r.waiters.wake)
	}
	<-ctx.Done()

	return nil
}

// keysEvery is between two looks at the keys: with the question of a sidecar that it tells, a
// revoked one is refused within two seconds.
const keysEvery = time.Second

// WatchKeys wakes callers of Changes soon after a key of their account was revoked, by whichever
// server, until ctx ends. list returns the keys of all accounts.
func (r *Registry) WatchKeys(ctx context.Context, list func(context.Context) ([]wire.Key, error)) error {
	tick := time.NewTicker(keysEvery)
	defer tick.Stop()

	for {
		// After an error the next look finds what has changed.
		if waiting := r.waiters.accountNames(); len(waiting) > 0 || r.revoked.Load() == nil {
			if all, err := list(ctx); err == nil {
				r.countRevoked(all, waiting)
			}
		}

		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func (r *Registry) countRevoked(all []wire.Key, waiting []string) {
	now := map[string]int{}
	for _, k := range all {
		if k.RevokedAt != nil || k.Archived {
			now[k.AccountID]++
		}
	}

	before := r.revoked.Swap(&now)
	for _, account := range waiting {
		if before == nil || (*before)[account] != now[account] {
			r.waiters.wake(account)
		}
	}
}

// waiters wakes all callers that wait for a change of one account. The zero
// value is ready.
type waiters struct {
	mu       sync.Mutex
	accounts map[string]chan struct{} // one per account; wake closes and removes it
}

// wait returns a channel that the account's next wake closes.
func (w *waiters) wait(account string) <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()

	if w.accounts == nil {
		w.accounts = make(map[string]chan struct{})
	}
	c := w.accounts[account]
	if c == nil {
		c = make(chan struct{})
		w.accounts[account] = c
	}
	return c
}

// accountNames returns the accounts that have waiters, and perhaps some that no longer
// have any.
func (w *waiters) accountNames() []string {
	w.mu.Lock()
	defer w.mu.Unlock()

	return slices.Collect(maps.Keys(w.accounts))
}

func (w *waiters) wake(account string) {
	w.mu.Lock()
	defer w.mu.Unlock()

	if c := w.accounts[account]; c != nil {
		// Forgotten as well: a caller that asks from now on waits for the next change.
		close(c)
		delete(w.accounts, account)
	}
}
