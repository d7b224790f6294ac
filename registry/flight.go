package registry

import (
	"context"
	"time"

	"promptspool/api/room"
	"promptspool/api/wire"
)

// flight is one request to the server, shared by everybody who asks for the same
// meanwhile. entry and err are set before done is closed.
type flight struct {
	id       wire.Identity // whose key the request carries
	epoch    int           // the feed's epoch when the request went out
	isWanted bool          // a caller waits for it, or did; guarded by Cache.mu
	done     chan struct{}
	entry    *entry // set even if it was not put into the cache; nil with err
	err      error
}

// ask waits for the server's answer, or falls back to the copy if there is one.
func (c *Cache) ask(
	ctx context.Context, id wire.Identity, k key, copied found, haveCopy bool,
) (found, error) {
	patience := askTimeout
	if haveCopy {
		patience = refreshTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()

	// The caller gives up after its patience; the flight goes on, and its answer is
	// cached.
	e, err := c.join(ctx, id, k)
	switch {
	case err == nil:
		return found{entry: e, source: "miss"}, nil
	case isVerdict(err):
		return found{}, err
	case haveCopy:
		return copied, nil
	case wire.IsCode(err, wire.CodeTooLarge):
		return found{}, err // too large for this process; the server is there
	}

	return found{}, wire.Unavailable(unavailableWait,
		"The template %s was never fetched through this sidecar, and the server cannot be reached; "+
			"try again: %w",
		quote(k.ident), err)
}

// join waits for the key's flight, and starts one if there is none.
func (c *Cache) join(ctx context.Context, id wire.Identity, k key) (*entry, error) {
	for {
		f := c.wantedFlight(id, k)
		select {
		case <-f.done:
		case <-ctx.Done():
			return nil, ctx.Err()
		}

		// If another key of the account was rejected, that says nothing about this one:
		// ask again with ours.
		rejected := wire.IsCode(f.err, wire.CodeUnauthorized) || wire.IsCode(f.err, wire.CodeForbidden)
		if rejected && f.id.KeyID != id.KeyID {
			continue
		}

		return f.entry, f.err
	}
}

func (c *Cache) wantedFlight(id wire.Identity, k key) *flight {
	c.mu.Lock()
	defer c.mu.Unlock()

	f := c.flightLocked(id, k)
	f.isWanted = true
	return f
}

// flightLocked returns the key's flight, and starts one if there is none. mu must be
// held.
func (c *Cache) flightLocked(id wire.Identity, k key) *flight {
	f := c.flights[k]
	if f == nil {
		f = &flight{
			id:    id,
			epoch: c.feeds[k.account].epoch,
			done:  make(chan struct{}),
		}
		c.flights[k] = f
		go c.runFlight(f, k)
	}
	return f
}

// runFlight asks the server. It does not use the context of the caller who started it,
// because others wait for the same answer.
func (c *Cache) runFlight(f *flight, k key) {
	defer close(f.done)
	ctx, cancel := context.WithTimeout(context.Background(), askTimeout)
	defer cancel()

	// The answer may be large. Its memory is claimed by the flight, since no caller owns
	// it.
	claim := c.room.Claim(false)
	defer claim.Release()

	var raw wire.RawTemplate
	raw, f.err = c.upstream.Raw(room.With(ctx, &claim), f.id, k.ident, k.selector)
	if f.err == nil {
		f.entry = c.packer.entry(k, &raw, c.now())
	}

	// Before done is closed: what an app was served is on disk.
	for _, k := range c.storeAnswer(f, k) {
		c.syncFile(k)
	}
}

// storeAnswer puts a flight's answer into the cache. It returns the keys whose files must
// follow.
func (c *Cache) storeAnswer(f *flight, k key) []key {
	c.mu.Lock()
	defer c.mu.Unlock()

	// If a change was reported meanwhile, markLocked removed this flight, and newer
	// callers wait for another one.
	isLatest := c.flights[k] == f
	if isLatest {
		delete(c.flights, k)
	}

	feed := c.feeds[k.account]
	switch {
	case f.err == nil:
		old := c.entries.byKey[k]
		if old != nil && !old.invalid && !isLatest {
			return nil // a newer flight has answered already
		}
		if old == nil && !f.isWanted {
			return nil // it was to be refreshed in the background, and was dropped meanwhile
		}

		// The answer may be older than a change that the feed has reported since.
		f.entry.invalid = f.epoch != feed.epoch || f.entry.meta.revision < feed.position
		c.entries.put(f.entry)

		return append(c.entries.shrink(), k)
	case !isVerdict(f.err):
		// The feed may hang on a dead connection. Until it
		// answers, it must not vouch for copies.
		feed.distrustLocked()
	case isLatest && wire.IsCode(f.err, wire.CodeNotFound):
		// It was deleted: a copy must not bring it back after a restart.
		c.entries.drop(k)
		c.rememberMissingLocked(k, f.err)

		return []key{k}
	}

	return nil
}

// rememberMissingLocked keeps the answer that a template does not exist for negativeTTL.
// mu must be held.
func (c *Cache) rememberMissingLocked(k key, err error) {
	now := c.now()
	if len(c.negatives) >= negativesMax {
		// Expired ones go first; if none has expired, any one makes room.
		for old, n := range c.negatives {
			if len(c.negatives) >= negativesMax || n.until.Before(now) {
				delete(c.negatives, old)
			}
		}
	}

	c.negatives[k] = negative{err, now.Add(negativeTTL)}
}

// syncFile writes or deletes a key's file, whichever makes it agree with memory.
//
// The last of several concurrent calls finds the newest entry, so the file does not
// depend on the order of writers. If the disk fails, an app loses nothing but the copy
// after a restart.
func (c *Cache) syncFile(k key) {
	file := &c.files[int(k.digest()[0])%len(c.files)]
	file.Lock()
	defer file.Unlock()

	// Looked up under the file's lock: whoever waited for it must not write an older
	// entry.
	c.mu.Lock()
	e := c.entries.byKey[k]
	mustWrite := e != nil && !e.saved
	var currentAt time.Time
	if mustWrite {
		currentAt = e.currentAt
	}
	c.mu.Unlock()

	var err error
	switch {
	case e == nil:
		err = c.disk.remove(k)
	case mustWrite:
		err = c.writeFile(e, currentAt)
	}
	if err != nil {
		c.log.Error("template not saved to disk; after a restart it is available only while the server is",
			"name", k.ident, "error", err)
		return
	}

	if mustWrite {
		c.mu.Lock()
		e.saved = true
		c.mu.Unlock()
	}
}

func (c *Cache) writeFile(e *entry, currentAt time.Time) error {
	raw, err := c.packer.unpack(e.text)
	if err != nil {
		return err
	}

	return c.disk.write(e.key, encodeFile(e.key, *raw, currentAt))
}
