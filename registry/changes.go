package registry

import (
	"context"
	"maps"
	"slices"
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
// knows.
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
		if expired || c.Reset || redirected || c.Revision != q.Since {
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
