package registry

import (
	"context"
	"time"

	"promptspool/api/room"
	"promptspool/api/wire"
)

// flight is one question to the server, shared by all who ask the same meanwhile. entry
// and err are set before done is closed.
type flight struct {
	id    wire.Identity // with whose key it asks
	epoch int           // its feed's, when it set out
	asked bool          // somebody waits for it, or did; guarded by Cache.mu
	done  chan struct{}
	entry *entry // also if it was not put into the cache; nil with err
	err   error
}

// ask waits for the server's answer, or falls back to a copy if there is one.
func (c *Cache) ask(ctx context.Context, id wire.Identity, k key, copied found, haveCopy bool) (found, error) {
	patience := askTimeout
	if haveCopy {
		patience = refreshTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	e, err := c.join(ctx, id, k)
	switch {
	case err == nil:
		return found{entry: e, how: "miss"}, nil
	case definite(err):
		return found{}, err
	case haveCopy:
		return copied, nil
	case wire.IsCode(err, wire.CodeTooLarge):
		return found{}, err // for this process; the server is there
	}
	return found{}, wire.Unavailable(unavailableWait, "The template %s was never fetched through this sidecar, and its server cannot be reached; try again: %w", quote(k.ident), err)
}

// join waits for the flight that is out for the key, or starts one.
func (c *Cache) join(ctx context.Context, id wire.Identity, k key) (*entry, error) {
	for {
		f := c.flight(id, k)
		select {
		case <-f.done:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		refused := wire.IsCode(f.err, wire.CodeUnauthorized) || wire.IsCode(f.err, wire.CodeForbidden)
		if refused && f.id.KeyID != id.KeyID {
			continue // another key of the account was refused, which says nothing of this one
		}
		return f.entry, f.err
	}
}

func (c *Cache) flight(id wire.Identity, k key) *flight {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := c.depart(id, k)
	f.asked = true

	return f
}

// depart returns the flight that is out for the key, or starts one. Called with mu held.
func (c *Cache) depart(id wire.Identity, k key) *flight {
	f := c.flights[k]
	if f == nil {
		f = &flight{id: id, epoch: c.feeds[k.account].epoch, done: make(chan struct{})}
		c.flights[k] = f
		go c.fly(f, k)
	}
	return f
}

// fly asks the server. It does not end with the caller who came first, for others wait as well.
func (c *Cache) fly(f *flight, k key) {
	defer close(f.done)
	ctx, cancel := context.WithTimeout(context.Background(), askTimeout)
	defer cancel()
	claim := c.room.Claim(false)
	defer claim.Release()

	var raw wire.RawTemplate
	raw, f.err = c.upstream.Raw(room.With(ctx, &claim), f.id, k.ident, k.selector)
	if f.err == nil {
		f.entry = c.packer.entry(k, &raw, c.now())
	}
	for _, k := range c.land(f, k) {
		c.agree(k)
	}
}

// land takes the answer over and tells the keys whose files are to follow.
func (c *Cache) land(f *flight, k key) []key {
	c.mu.Lock()
	defer c.mu.Unlock()
	remembered := c.flights[k] == f // else a change was told meanwhile, and whoever asks now has another flight
	if remembered {
		delete(c.flights, k)
	}
	feed := c.feeds[k.account]
	switch {
	case f.err == nil:
		old := c.entries.byKey[k]
		if old != nil && !old.invalid && !remembered {
			return nil
		}
		if old == nil && !f.asked {
			return nil // a copy that was to be renewed, and had to make room meanwhile
		}
		f.entry.invalid = f.epoch != feed.epoch || f.entry.about.revision < feed.position // older than a change that is known
		c.entries.put(f.entry)
		return append(c.entries.shrink(), k)
	case !definite(f.err):
		feed.doubt()
	case remembered && wire.IsCode(f.err, wire.CodeNotFound):
		c.entries.drop(k)
		c.deny(k, f.err)
		return []key{k}
	}
	return nil
}

// deny remembers for a moment that there is no such template. Called with mu held.
func (c *Cache) deny(k key, err error) {
	now := c.now()
	if len(c.negatives) >= negativesMax {
		for old, n := range c.negatives {
			if len(c.negatives) >= negativesMax || n.until.Before(now) {
				delete(c.negatives, old)
			}
		}
	}
	c.negatives[k] = negative{err, now.Add(negativeTTL)}
}

// agree makes a key's file what memory says of it now: written, or gone. Whoever comes last finds the newest entry, so that
// files do not depend on the order in which writers come. A disk that fails takes nothing from the app but the copy after a
// restart.
func (c *Cache) agree(k key) {
	file := &c.files[int(k.digest()[0])%len(c.files)]
	file.Lock()
	defer file.Unlock()
	c.mu.Lock()
	e := c.entries.byKey[k]
	write := e != nil && !e.saved
	var currentAt time.Time
	if write {
		currentAt = e.currentAt
	}
	c.mu.Unlock()

	var err error
	switch {
	case e == nil:
		err = c.disk.remove(k)
	case write:
		var raw *wire.RawTemplate
		if raw, err = c.packer.unpack(e.text); err == nil {
			err = c.disk.write(k, encodeFile(k, *raw, currentAt))
		}
	}
	if err != nil {
		c.log.Error("a template is not kept on disk; after a restart it is there only while the server is", "name", k.ident, "error", err)
		return
	}
	if write {
		c.mu.Lock()
		e.saved = true
		c.mu.Unlock()
	}
}
