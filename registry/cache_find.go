package registry

import (
	"context"
	"strconv"
	"time"

	"promptspool/api/wire"
)

// freshness is what a copy is worth, which decides how a fetch is answered:
//
//	freshness  when                                                answer  waits for the server
//	current    the feed is connected and reported no change        hit     no
//	           since, or the version was asked for by number
//	unsure     the feed is not connected                           stale   no; right after a start
//	                                                                       up to 250 ms
//	outdated   the feed reported a change                          miss    up to 1 s, then the old
//	                                                                       copy is stale
//	absent     there is no copy                                    miss    up to 2 s, then 503
//
// For 3 s after the server said that a template does not exist, the answer is that error.
type freshness int

const (
	absent freshness = iota
	outdated
	unsure
	current
)

// found is a version and where it came from. The entry stays packed while its request waits
// for room.
type found struct {
	entry  *entry
	source string        // hit, stale or miss
	age    time.Duration // since it was last known to be current
}

// find answers a fetch from a copy or by asking the server, and counts the outcome.
func (c *Cache) find(
	ctx context.Context, id wire.Identity, ident string, s wire.Selector,
) (f found, err error) {
	defer func() {
		f, err = onlySeen(id, ident, f, err)
		c.count(f, err)
	}()

	// Without an account there is nothing to look up under, and no other account may be
	// used.
	if id.Account == "" {
		return found{}, wire.Unavailable(unavailableWait,
			"This key could not be verified yet because the server is away. "+
				"Templates are served to verified keys only; try again.")
	}

	// The server is not asked about the name of a template that the key may not use.
	if _, notID := strconv.ParseInt(ident, 10, 64); notID != nil && !id.Sees(ident) {
		return found{}, noTemplate(id, ident)
	}

	k := newKey(id.Account, ident, s)
	f, state, err := c.findCopy(id, k)
	if state == unsure && c.awaitFeed(ctx, id.Account) {
		f, state, err = c.findCopy(id, k) // the feed may have changed the answer meanwhile
	}
	if err != nil || state == current || state == unsure {
		return f, err
	}

	return c.ask(ctx, id, k, f, state == outdated)
}

// onlySeen answers for a template that an identity's key may not use as if it did not exist, with
// the same words: another key may have asked for it by its id.
func onlySeen(id wire.Identity, ident string, f found, err error) (found, error) {
	hidden := f.entry != nil && !id.Sees(f.entry.meta.name)
	if hidden || wire.IsCode(err, wire.CodeNotFound) && !id.Sees(ident) {
		return found{}, noTemplate(id, ident)
	}
	return f, err
}

func (c *Cache) count(f found, err error) {
	switch {
	case err != nil:
		c.config.Metrics.TemplateCache.WithLabelValues("error").Inc()
	case f.source == "hit":
		c.hits.Inc()
	default:
		c.config.Metrics.TemplateCache.WithLabelValues(f.source).Inc()
	}
}

// findCopy returns what the cache has: a copy with its freshness, or, as an error, the
// server's recent answer that it does not exist.
func (c *Cache) findCopy(id wire.Identity, k key) (found, freshness, error) {
	c.mu.Lock()
	c.followLocked(id)

	// Apps that ask for a missing template in a loop must not load the server.
	if n, ok := c.negatives[k]; ok && c.config.Now().Before(n.until) {
		c.mu.Unlock()
		return found{}, absent, n.err
	}
	e, state := c.lookupLocked(k)
	if e == nil {
		c.mu.Unlock()
		return found{}, absent, nil
	}

	// Whose files must follow.
	var changed []key
	// The copy of another selector serves this time; from now on this selector has its
	// own.
	if e.key != k {
		e, changed = c.shareLocked(k, e)
	}
	c.entries.touch(e)
	if state == unsure {
		c.refreshOldLocked(e)
	}

	f := found{
		entry:  e,
		source: "stale",
		age:    max(0, c.config.Now().Sub(c.confirmedLocked(e))),
	}
	if state == current {
		f.source = "hit"
	}
	c.mu.Unlock()

	// Outside mu: writing a file takes an fsync.
	for _, k := range changed {
		c.syncFile(k)
	}

	return f, state, nil
}

// lookupLocked finds the copy for a key: its own or, without one, the copy of the version
// that the key means. mu must be held.
func (c *Cache) lookupLocked(k key) (*entry, freshness) {
	feed := c.feeds[k.account]
	connected := feed != nil && feed.connected

	e := c.entries.byKey[k]
	if e == nil {
		// While connected, only copies that the feed keeps up to date know where labels
		// point now. A pinned copy keeps the labels of the moment when it was read.
		e = c.entries.sibling(k, func(other *entry) bool {
			return !connected || !other.key.isPinned() && !other.invalid && !feed.isRedirected(other)
		})
	}

	// A version never changes, but the text of its snippets may.
	immutable := e != nil && k.isPinned() && (e.key != k || !e.invalid) && len(e.meta.snippets) == 0
	switch {
	case e == nil:
		return nil, absent
	// The URL is part of the answer, so not even a version that never changes is current.
	case connected && feed.isRedirected(e):
		return e, outdated
	case immutable:
		return e, current
	case !connected:
		return e, unsure
	case e.invalid:
		return e, outdated
	}

	return e, current
}

// awaitFeed waits, right after a start only, for the account's feed to answer. It reports
// whether it waited.
func (c *Cache) awaitFeed(ctx context.Context, account string) bool {
	c.mu.Lock()
	feed := c.feeds[account]
	c.mu.Unlock()

	return feed.awaitFirst(ctx, c.config.Now())
}

// shareLocked stores the copy of another selector under k as well, because the other
// selector may move to another version. It returns the keys whose files must follow. mu
// must be held.
func (c *Cache) shareLocked(k key, of *entry) (*entry, []key) {
	e := &entry{
		key:       k,
		meta:      of.meta,
		text:      of.text,
		textBytes: of.textBytes,
		currentAt: c.confirmedLocked(of),
	}
	c.entries.put(e)

	return e, append(c.entries.shrink(), k)
}

// refreshOldLocked asks in the background for a copy that has not been confirmed for a
// minute: the feed may be broken while the server is not. mu must be held.
func (c *Cache) refreshOldLocked(e *entry) {
	now := c.config.Now()
	feed := c.feeds[e.key.account]
	if feed == nil || !feed.id.Sees(e.meta.name) ||
		now.Sub(c.confirmedLocked(e)) < copyTTL || now.Sub(e.askedAt) < copyTTL {
		return
	}

	// Set before the answer is there, so that one request goes out each minute, not one a
	// fetch.
	e.askedAt = now
	c.flightLocked(feed.id, e.key)
}
