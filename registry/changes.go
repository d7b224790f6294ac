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

// Changes tells what changed after revision q.Since. If there is nothing, it waits for a publish in this process, or of another that
// Watch hears of, at most q.Wait (bounded by ChangesWaitMax), and then tells the same revision again. Other provider base URLs than the
// caller knows end the wait as well. It also returns early, without an error, when ctx ends: nothing is lost, because a caller that asks
// again says what it knows.
func (r *Registry) Changes(ctx context.Context, id wire.Identity, q wire.ChangesQuery) (wire.Changes, error) {
	timer := time.NewTimer(min(max(q.Wait, 0), ChangesWaitMax))
	defer timer.Stop()

	for expired := q.Wait <= 0; ; {
		woken := r.waiters.wait(id.Account) // before the look, or a publish between the two would be missed
		c, err := r.store.TemplateChanges(ctx, id.Account, q.Since)
		if err != nil {
			return wire.Changes{}, err
		}

		c.Success, c.Names, c.ProviderBaseURLs = true, nonNil(c.Names), r.urls.Load().Digest()
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

// Watch wakes those who wait in Changes when another process changed the templates of their account, until ctx ends. It does nothing where
// the Store is this process's own.
func (r *Registry) Watch(ctx context.Context) error {
	if shared, ok := r.store.(Watcher); ok {
		return shared.Watch(ctx, r.waiters.waited, r.waiters.wake)
	}
	<-ctx.Done()
	return nil
}

// waiters wakes all who wait for a change of one account. The zero value is ready.
type waiters struct {
	mu       sync.Mutex
	accounts map[string]chan struct{} // under mu; closed and removed by wake. At most one per account
}

// wait returns a channel that the next wake of the account closes.
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

// waited are the accounts that somebody waits for, and some that nobody waits for any more.
func (w *waiters) waited() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Collect(maps.Keys(w.accounts))
}

func (w *waiters) wake(account string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if c := w.accounts[account]; c != nil {
		close(c)
		delete(w.accounts, account)
	}
}
