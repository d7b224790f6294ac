package registry

import (
	"cmp"
	"context"
	"maps"
	"math"
	"math/rand/v2"
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

const (
	pollWait      = 30 * time.Second // how long the server may hold a poll that has nothing to report
	pollGrace     = 5 * time.Second  // after that, the server counts as away
	idlePoll      = time.Second      // between polls that were answered immediately with nothing
	retryDelay    = 100 * time.Millisecond
	retryDelayMax = 5 * time.Second
	refetchMax    = 64 // copies that are fetched again when a change is reported

	everyRevision = math.MaxUint64 // higher than any revision
)

// feed follows the changes of one account. account, born and answered never change.
type feed struct {
	account  string
	born     time.Time
	answered chan struct{} // closed after the first poll, whether it succeeded or failed

	// Guarded by Cache.mu.
	id wire.Identity // a verified identity of the account; polls use its key

	// connected means that the server has reported every change up to position and, as
	// far as is known, will report the next one immediately.
	connected bool

	position   uint64    // changes up to this revision have been reported
	positioned bool      // position has its first value
	heardAt    time.Time // when the server last answered
	urls       string    // the digest of the provider base URLs in force; "" if unknown
	keys       string    // see wire.Changes.Keys

	// epoch counts what revisions do not show: our own publishes, and a replaced
	// database.
	epoch int

	cancel context.CancelFunc // ends the current poll
	first  sync.Once          // closes answered
}

// followLocked finds the feed of an identity's account, or makes one for Run to start. mu
// must be held.
func (c *Cache) followLocked(id wire.Identity) {
	f := c.feeds[id.Account]
	if f == nil {
		f = &feed{
			account:  id.Account,
			born:     time.Now(),
			answered: make(chan struct{}),
			cancel:   func() {},
		}
		c.feeds[id.Account] = f
		c.unstarted = append(c.unstarted, f)
		select {
		case c.added <- struct{}{}:
		// Run has been woken already.
		default:
		}
	}

	// Compared first: fetches share this memory, and a write would slow them all down. A key with
	// a prefix cannot refresh all copies.
	if f.id != id && (id.Prefix == "" || f.id.Prefix != "" || f.id.Account == "") {
		f.id = id
	}
}

// Run follows the feed of every account in Identities, and of every account that fetches,
// until ctx ends. Call it once.
func (c *Cache) Run(ctx context.Context) error {
	var feeds sync.WaitGroup
	defer feeds.Wait()

	// Outside mu: the function is a stranger's, and may take its own locks.
	known := c.config.Identities()
	c.mu.Lock()
	for _, id := range known {
		if id.Account != "" {
			c.followLocked(id)
		}
	}
	c.mu.Unlock()

	for {
		c.mu.Lock()
		unstarted := c.unstarted
		c.unstarted = nil
		c.mu.Unlock()

		for _, f := range unstarted {
			feeds.Go(func() { c.run(ctx, f) })
		}

		select {
		case <-c.added:
		case <-ctx.Done():
			return nil
		}
	}
}

// run polls one feed until ctx ends.
func (c *Cache) run(ctx context.Context, f *feed) {
	limit := retryDelay
	// Forever: a server may be away for days, and its return must be noticed within
	// seconds.
	for ctx.Err() == nil {
		productive, err := c.poll(ctx, f)
		switch {
		case err != nil:
			// Jitter keeps the sidecars of a fleet apart when their server comes back.
			sleep(ctx, rand.N(limit)+time.Millisecond)
			limit = min(2*limit, retryDelayMax)
			continue
		// A server that does not hold polls must not be asked in a tight loop.
		case !productive:
			sleep(ctx, idlePoll)
		}
		limit = retryDelay
	}

	// No change arrives any more, so no copy is current.
	c.mu.Lock()
	f.connected = false
	c.mu.Unlock()
}

// poll asks once. It reports whether the server had something new, or held the poll as
// long as it should.
func (c *Cache) poll(ctx context.Context, f *feed) (productive bool, err error) {
	// Outside mu, as in Run.
	known := c.config.Identities()

	c.mu.Lock()
	// The key of the last poll may have ended or been revoked since, or see too little.
	for _, id := range known {
		if id.Account == f.account && (!f.connected || f.id.Prefix != "") {
			f.id = id
		}
	}
	if !f.positioned {
		f.position, f.positioned = c.entries.lowestRevision(f.account), true
	}
	id := f.id
	q := wire.ChangesQuery{Since: f.position, Wait: pollWait, ProviderBaseURLs: f.urls, Keys: f.keys}
	if !f.connected {
		// The sooner the answer, the sooner we know that the server is there.
		q.Wait = 0
	}
	ctx, cancel := context.WithTimeout(ctx, q.Wait+pollGrace)
	defer cancel()
	f.cancel = cancel
	c.mu.Unlock()

	asked := time.Now()
	changes, err := c.config.Upstream.Changes(ctx, id, q)

	c.mu.Lock()
	defer c.mu.Unlock()
	// After an error too: fetches wait for it right after a
	// start, and should not wait in vain.
	defer f.first.Do(func() { close(f.answered) })

	wasConnected := f.connected
	if err != nil {
		f.connected = false
		// A canceled poll is distrustLocked's doing, or the end of the process.
		if wasConnected && ctx.Err() != context.Canceled {
			c.config.Logger.Warn("lost the server's feed of template changes; serving templates from the cache",
				"error", err)
		}
		return false, err
	}
	c.applyLocked(f, changes)

	held := time.Since(asked) >= q.Wait/2

	return !wasConnected || changes.Reset || changes.Revision != q.Since || held, nil
}

// applyLocked takes over an answer of the feed. mu must be held.
func (c *Cache) applyLocked(f *feed, changes wire.Changes) {
	var changed []key
	switch {
	case changes.Reset:
		// The server has another database, or an older state of it: its revisions cannot
		// be compared with those of our copies, so every copy is outdated.
		c.bumpEpochLocked(f.account)
		changed = c.markLocked(f.account, func(*entry) bool { return true })
	case len(changes.Names) > 0:
		changed = c.invalidateLocked(f.account, changes.Names, changes.Revision)
	}
	if changes.ProviderBaseURLs != f.urls {
		f.urls = changes.ProviderBaseURLs
		changed = append(changed, c.markLocked(f.account, f.isRedirected)...)
	}

	// "" is of a server that does not know it, or not yet: what is known here is compared later.
	if c.config.Rekeyed != nil && f.keys != "" && changes.Keys != "" && changes.Keys != f.keys {
		// Not awaited: it is a stranger's, and mu is held.
		go c.config.Rekeyed(f.account)
	}
	f.keys = cmp.Or(changes.Keys, f.keys)

	f.position = changes.Revision
	f.heardAt = time.Now()
	// A full answer has a successor.
	f.connected = changes.Reset || len(changes.Names) < ChangesNamesMax

	// Changed templates are fetched now, so that no app waits for them, and the new
	// version is here if the server goes away. Those beyond the bound are fetched on
	// their next use.
	changed = slices.DeleteFunc(changed, func(k key) bool { return !f.id.Sees(c.entries.byKey[k].meta.name) })
	for _, k := range changed[:min(len(changed), refetchMax)] {
		c.flightLocked(f.id, k)
	}
}

// isRedirected reports whether the provider base URLs have changed since an entry was
// read. They are part of every template, so this concerns every version. Cache.mu must be
// held.
func (f *feed) isRedirected(e *entry) bool { return f.urls != "" && f.urls != e.meta.urls }

// distrustLocked is called when the server does not answer although its feed seems
// connected. Copies are then served immediately until the feed has answered again.
// Cache.mu must be held.
func (f *feed) distrustLocked() {
	if f.connected {
		f.connected = false
		f.cancel()
	}
}

// awaitFirst waits for the feed's first answer, in the first moments after a start only.
// Without it a restart would serve an old release although the server is there to report
// the new one. It reports whether it waited.
func (f *feed) awaitFirst(ctx context.Context) bool {
	left := time.Until(f.born.Add(settleMax))
	if left <= 0 {
		return false
	}

	ctx, cancel := context.WithTimeout(ctx, left)
	defer cancel()
	select {
	case <-f.answered:
	case <-ctx.Done():
	}

	return true
}

// sleep waits for d, or until ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// Age returns for how long the server has reported no template changes. Of several
// accounts the longest counts; it is 0 while every feed is connected.
func (c *Cache) Age() (age time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()

	now := time.Now()
	for _, f := range c.feeds {
		if f.connected {
			continue
		}
		since := f.heardAt
		// A feed that never answered counts from its start.
		if since.IsZero() {
			since = f.born
		}
		age = max(age, now.Sub(since))
	}

	return age
}
