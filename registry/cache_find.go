package registry

import (
	"context"
	"time"

	"promptspool/api/wire"
)

// standing is what a copy is worth, and so how a fetch is answered:
//
//	standing   when                                                      answer    the fetch waits for the server
//	current    the feed is connected and told of no change since,        hit       no
//	           or the version was asked for by number, and so stays
//	unsure     the feed is not connected, so nobody can say              stale     no; up to 250 ms right after a start
//	outdated   the feed told of a change                                 miss      up to 1 s, then the old copy is stale
//	absent     there is no copy                                          miss      up to 2 s, then 503
//
// Within 3 s of the server's word that there is no such template, the answer is that.
type standing int

const (
	absent standing = iota
	outdated
	unsure
	current
)

// found is a version and how it was come by. A large one is packed as long as its call waits for room.
type found struct {
	entry *entry
	how   string        // hit, stale or miss
	age   time.Duration // since it was last known to be current
}

// find answers a fetch by a copy or by asking the server, as its standing says, and counts how.
func (c *Cache) find(ctx context.Context, id wire.Identity, ident string, s wire.Selector) (f found, err error) {
	defer func() {
		switch {
		case err != nil:
			c.metrics.TemplateCache.WithLabelValues("error").Inc()
		case f.how == "hit":
			c.hits.Inc()
		default:
			c.metrics.TemplateCache.WithLabelValues(f.how).Inc()
		}
	}()
	if id.Account == "" {
		return found{}, wire.Unavailable(unavailableWait,
			"This key was not verified yet, for the server is away; templates are served to verified keys only.")
	}

	k := newKey(id.Account, ident, s)
	f, standing, err := c.copied(id, k)
	if standing == unsure && c.settled(ctx, id.Account) {
		f, standing, err = c.copied(id, k)
	}
	if err != nil || standing == current || standing == unsure {
		return f, err
	}

	return c.ask(ctx, id, k, f, standing == outdated)
}

// copied finds what the cache has: a copy with its standing, or the server's word that there is nothing, as an error.
func (c *Cache) copied(id wire.Identity, k key) (found, standing, error) {
	c.mu.Lock()
	c.follow(id)
	if n, ok := c.negatives[k]; ok && c.now().Before(n.until) {
		c.mu.Unlock()
		return found{}, absent, n.err
	}
	e, standing := c.look(k)
	if e == nil {
		c.mu.Unlock()
		return found{}, absent, nil
	}

	var moved []key // whose files are to follow
	if e.key != k {
		e, moved = c.adopt(k, e)
	}
	c.entries.touch(e)
	if standing == unsure {
		c.renewOld(e)
	}
	f := found{entry: e, how: "stale", age: max(0, c.now().Sub(c.confirmed(e)))}
	if standing == current {
		f.how = "hit"
	}
	c.mu.Unlock()

	for _, k := range moved {
		c.agree(k)
	}

	return f, standing, nil
}

// look finds the copy for a key and what it is worth: its own or, without one, the copy of the version that it means.
// Called with mu held.
func (c *Cache) look(k key) (*entry, standing) {
	feed := c.feeds[k.account]
	connected := feed != nil && feed.connected

	e := c.entries.byKey[k]
	if e == nil {
		e = c.entries.sibling(k, func(other *entry) bool {
			// What a version that was asked for by its number tells of labels is never told anew.
			return !connected || !other.key.pinned() && !other.invalid && !feed.redirected(other)
		})
	}

	switch {
	case e == nil:
		return nil, absent
	case connected && feed.redirected(e):
		return e, outdated
	case k.pinned() && (e.key != k || !e.invalid) && len(e.about.snippets) == 0: // with snippets its text can change
		return e, current
	case !connected:
		return e, unsure
	case e.invalid:
		return e, outdated
	}

	return e, current
}

// settled waits, right after a start only, for the account's feed to speak, and says whether it waited.
func (c *Cache) settled(ctx context.Context, account string) bool {
	c.mu.Lock()
	feed := c.feeds[account]
	c.mu.Unlock()

	return feed.settle(ctx, c.now())
}

// adopt keeps the copy of another selector for a key as well, since the other may go on to another version, and tells
// the keys whose files are to follow. Called with mu held.
func (c *Cache) adopt(k key, of *entry) (*entry, []key) {
	e := &entry{key: k, about: of.about, text: of.text, textBytes: of.textBytes, currentAt: c.confirmed(of)}
	c.entries.put(e)

	return e, append(c.entries.shrink(), k)
}

// renewOld asks for a copy that nobody has confirmed for long: the feed may be broken while the server is not. Nobody
// waits for the answer. Called with mu held.
func (c *Cache) renewOld(e *entry) {
	now, feed := c.now(), c.feeds[e.key.account]
	if feed == nil || now.Sub(c.confirmed(e)) < copyTTL || now.Sub(e.askedAt) < copyTTL {
		return
	}

	e.askedAt = now
	c.depart(feed.id, e.key)
}
