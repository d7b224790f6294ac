package registry

import (
	"context"
	"sync"
	"time"

	"promptspool/api/admission"
	"promptspool/api/wire"
)

// flight is one request to the server, shared by all callers that ask for the same
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

	// The caller gives up after its patience; the flight continues, and its answer is
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
		// Too large for this process; the server is there.
		return found{}, err
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
		rejected := wire.IsCode(f.err, wire.CodeUnauthorized) || wire.IsCode(f.err, wire.CodeForbidden) ||
			wire.IsCode(f.err, wire.CodeNotFound) && !f.id.Sees(k.ident)
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
	claim := c.config.Room.Claim(false)
	defer claim.Release()

	var raw wire.RawTemplate
	raw, f.err = c.config.Upstream.Raw(admission.WithRoom(ctx, &claim), f.id, k.ident, k.selector)
	if f.err == nil {
		f.entry = c.packer.entry(k, &raw, c.config.Now())
	}

	for _, k := range c.storeAnswer(f, k) {
		c.syncFile(k)
	}
}

// storeAnswer puts a flight's answer onto the disk and then into the cache. It returns the
// keys whose files must follow.
//
// The file comes first: a release that an app was served must not be taken back by a
// restart. Until it is written, callers wait for the flight.
func (c *Cache) storeAnswer(f *flight, k key) []key {
	file := c.fileLock(k)
	file.Lock()
	defer file.Unlock()

	c.mu.Lock()
	mustWrite := c.isNeededLocked(f, k)
	mustRemove := c.isMissingLocked(f, k)
	c.mu.Unlock()

	var err error
	switch {
	case mustWrite:
		err = c.writeFile(f.entry, f.entry.currentAt)
		f.entry.saved = err == nil
	case mustRemove:
		err = c.disk.remove(k)
	}
	c.logUnsaved(k, err)

	return c.keepAnswer(f, k, mustWrite || mustRemove)
}

// keepAnswer puts a flight's answer into memory, and ends the flight. It returns the keys
// whose files must follow. isChanged: the file was made to agree with the answer.
func (c *Cache) keepAnswer(f *flight, k key, isChanged bool) []key {
	c.mu.Lock()
	defer c.mu.Unlock()

	// Looked at again: the feed may have reported a change while the file was written.
	isNeeded, isMissing := c.isNeededLocked(f, k), c.isMissingLocked(f, k)
	if c.flights[k] == f {
		delete(c.flights, k)
	}

	feed := c.feeds[k.account]
	switch {
	case isNeeded:
		// The answer may be older than a change that the feed has reported since.
		f.entry.invalid = f.epoch != feed.epoch || f.entry.meta.revision < feed.position
		c.entries.put(f.entry)

		return c.entries.shrink()
	case isMissing:
		// It was deleted: a copy must not bring it back after a restart.
		c.entries.drop(k)
		c.rememberMissingLocked(k, f.err)
	case f.err == nil || isChanged:
		// Its file must not stay without it, nor an entry without its file.
		if old := c.entries.byKey[k]; old != nil && isChanged {
			old.saved = false
		}

		return []key{k}
	case !isVerdict(f.err):
		// The feed may hang on a dead connection. Until it
		// answers, it must not vouch for copies.
		feed.distrustLocked()
	}

	return nil
}

// isNeededLocked reports whether a flight brought a version that belongs into the cache.
// mu must be held.
func (c *Cache) isNeededLocked(f *flight, k key) bool {
	if f.err != nil {
		return false
	}
	old := c.entries.byKey[k]
	if old == nil {
		// Otherwise it was refreshed in the background, and dropped meanwhile.
		return f.isWanted
	}

	// If a change was reported meanwhile, markLocked removed this flight, and a newer one
	// may have answered already. Its answer stays, even if another change made it outdated.
	return c.flights[k] == f || old.invalid && f.entry.meta.revision >= old.meta.revision
}

// isMissingLocked reports whether a flight found that the template does not exist. To a key
// with a prefix, the server says so of others' templates, too. mu must be held.
func (c *Cache) isMissingLocked(f *flight, k key) bool {
	return c.flights[k] == f && wire.IsCode(f.err, wire.CodeNotFound) && f.id.Sees(k.ident)
}

// rememberMissingLocked keeps the answer that a template does not exist for negativeTTL.
// mu must be held.
func (c *Cache) rememberMissingLocked(k key, err error) {
	now := c.config.Now()
	if len(c.negatives) >= negativesMax {
		// Expired ones go first; if none has expired, any one makes space.
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
// The last of several concurrent requests finds the newest entry, so the file does not
// depend on the order of writers. If the disk fails, an app loses nothing but the copy
// after a restart.
func (c *Cache) syncFile(k key) {
	file := c.fileLock(k)
	file.Lock()
	defer file.Unlock()

	// Looked up under the file's lock: a writer that waited for it must not write an
	// older entry.
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
	c.logUnsaved(k, err)

	if mustWrite && err == nil {
		c.mu.Lock()
		e.saved = true
		c.mu.Unlock()
	}
}

// fileLock returns what guards a key's file.
func (c *Cache) fileLock(k key) *sync.Mutex { return &c.files[int(k.digest()[0])%len(c.files)] }

func (c *Cache) writeFile(e *entry, currentAt time.Time) error {
	raw, err := c.packer.unpack(e.text)
	if err != nil {
		return err
	}

	return c.disk.write(e.key, encodeFile(e.key, *raw, currentAt))
}

// logUnsaved logs an error of a key's file, if there is one.
func (c *Cache) logUnsaved(k key, err error) {
	if err != nil {
		c.config.Logger.Error("template not saved to disk; after a restart it is available only while the server is",
			"name", k.ident, "error", err)
	}
}
