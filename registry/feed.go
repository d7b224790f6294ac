package registry

import (
	"context"
	"math"
	"math/rand/v2"
	"sync"
	"time"

	"promptspool/api/wire"
)

const (
	pollWait      = 30 * time.Second // how long the server may hold a poll that has nothing to tell
	pollGrace     = 5 * time.Second  // beyond that, the server is away
	idlePoll      = time.Second      // between polls that were answered at once with nothing
	retryDelay    = 100 * time.Millisecond
	retryDelayMax = 5 * time.Second
	refetchMax    = 64 // copies that are fetched anew when a change is told

	everyRevision = math.MaxUint64 // above all that there can be
)

// feed follows the changes of one account. account, born and settled never change.
type feed struct {
	account string
	born    time.Time
	settled chan struct{} // closed when the server has spoken, or failed to, for the first time

	// Guarded by Cache.mu.
	id        wire.Identity      // the last verified identity of the account that came by: it asks with that key
	connected bool               // the server has told all changes up to position and, as far as is known, will tell the next at once
	position  uint64             // the revision up to which changes were told
	placed    bool               // position has its first value
	heardAt   time.Time          // when the server last told
	urls      string             // the digest of the provider base URLs in force; "" if the server told none
	epoch     int                // counts what revisions do not tell: own publishes, and other databases behind the server
	cancel    context.CancelFunc // ends the poll that is out
	first     sync.Once          // closes settled
}

// follow finds the feed of an identity's account, or makes one for Run to start. Called with mu held.
func (c *Cache) follow(id wire.Identity) *feed {
	f := c.feeds[id.Account]
	if f == nil {
		f = &feed{account: id.Account, born: c.now(), settled: make(chan struct{}), cancel: func() {}}
		c.feeds[id.Account] = f
		c.unstarted = append(c.unstarted, f)
		select {
		case c.added <- struct{}{}:
		default:
		}
	}
	if f.id != id {
		f.id = id
	}
	return f
}

// Run follows the feed of every account in Identities and of every account that fetches, until ctx ends. Call it once.
func (c *Cache) Run(ctx context.Context) error {
	var feeds sync.WaitGroup
	defer feeds.Wait()
	known := c.identities()
	c.mu.Lock()
	for _, id := range known {
		if id.Account != "" {
			c.follow(id)
		}
	}
	c.mu.Unlock()
	for {
		c.mu.Lock()
		start := c.unstarted
		c.unstarted = nil
		c.mu.Unlock()
		for _, f := range start {
			feeds.Go(func() { c.run(ctx, f) })
		}
		select {
		case <-c.added:
		case <-ctx.Done():
			return nil
		}
	}
}

// run polls one feed.
func (c *Cache) run(ctx context.Context, f *feed) {
	limit := retryDelay
	for ctx.Err() == nil {
		news, err := c.poll(ctx, f)
		switch {
		case err != nil:
			sleep(ctx, rand.N(limit)+time.Millisecond)
			limit = min(2*limit, retryDelayMax)
			continue
		case !news: // a server that does not hold a poll must not be asked in a tight loop
			sleep(ctx, idlePoll)
		}
		limit = retryDelay
	}
	c.mu.Lock()
	f.connected = false
	c.mu.Unlock()
}

// poll asks once and says whether the server told anything, or held the poll as long as it should.
func (c *Cache) poll(ctx context.Context, f *feed) (news bool, err error) {
	c.mu.Lock()
	if !f.placed {
		f.position, f.placed = c.entries.lowestRevision(f.account), true
	}
	id, q := f.id, wire.ChangesQuery{Since: f.position, Wait: pollWait, ProviderBaseURLs: f.urls}
	if !f.connected {
		q.Wait = 0 // an answer at once tells that the server is there
	}
	ctx, cancel := context.WithTimeout(ctx, q.Wait+pollGrace)
	defer cancel()
	f.cancel = cancel
	c.mu.Unlock()

	asked := c.now()
	told, err := c.upstream.Changes(ctx, id, q)

	c.mu.Lock()
	defer c.mu.Unlock()
	defer f.first.Do(func() { close(f.settled) })
	was := f.connected
	if err != nil {
		f.connected = false
		if was && ctx.Err() != context.Canceled {
			c.log.Warn("the server's template changes do not come; templates are served from the cache", "error", err)
		}
		return false, err
	}
	c.hear(f, told)
	return !was || told.Reset || told.Revision != q.Since || c.now().Sub(asked) >= q.Wait/2, nil
}

// hear takes an answer of the feed over. Called with mu held.
func (c *Cache) hear(f *feed, told wire.Changes) {
	var changed []key
	switch {
	case told.Reset: // another database, or an older state of it: its revisions say nothing of what is here
		c.renew(f.account)
		changed = c.mark(f.account, func(*entry) bool { return true })
	case len(told.Names) > 0:
		changed = c.invalidate(f.account, told.Names, told.Revision)
	}
	if told.ProviderBaseURLs != f.urls {
		f.urls = told.ProviderBaseURLs
		changed = append(changed, c.mark(f.account, f.redirected)...)
	}

	f.position = told.Revision
	f.heardAt = c.now()
	f.connected = told.Reset || len(told.Names) < ChangesNamesMax
	// What changed is fetched at once, so that nobody has to wait for it, and the new version is there should the server go away. What
	// is beyond the bound is fetched by whoever asks for it.
	for _, k := range changed[:min(len(changed), refetchMax)] {
		c.depart(f.id, k)
	}
}

// redirected reports whether the server has told other provider base URLs since an entry was read, which concerns every template, and
// every version of it. Called with Cache.mu held.
func (f *feed) redirected(e *entry) bool { return f.urls != "" && f.urls != e.about.urls }

// doubt is for when the server does not answer though its feed seemed connected: copies are served at once until the
// feed has made sure. Called with Cache.mu held.
func (f *feed) doubt() {
	if f.connected {
		f.connected = false
		f.cancel()
	}
}

// settle waits, in the first moments after a start only, until the feed has spoken: so that a restart does not serve an
// old release while the server is there to tell of the new one. It says whether it waited.
func (f *feed) settle(ctx context.Context, now time.Time) bool {
	left := f.born.Add(settleMax).Sub(now)
	if left <= 0 {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, left)
	defer cancel()
	select {
	case <-f.settled:
	case <-ctx.Done():
	}
	return true
}

// sleep waits, or returns earlier when ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
