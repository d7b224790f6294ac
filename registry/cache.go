package registry

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"time"

	"promptspool/api/admission"
	"promptspool/api/wire"
	"promptspool/metrics"
)

// Bounds of a Cache.
const (
	entriesMax    = 10_000
	entryBytesMax = 64 << 20 // of all entries together, unpacked

	// openedBytesMax bounds the opened entries, beside their packed text. It holds about
	// 400 templates of 2 KB, more than an app uses at a time.
	openedBytesMax = 4 << 20

	negativesMax = 1000
	negativeTTL  = 3 * time.Second

	askTimeout     = 2 * time.Second // for the server, when nothing is cached
	refreshTimeout = time.Second     // for the server, when a stale copy can be served instead

	// copyTTL is how long a copy may go unconfirmed before it is refreshed in the
	// background.
	copyTTL = time.Minute

	settleMax       = 250 * time.Millisecond // how long a fetch waits for the feed right after a start
	unavailableWait = time.Second            // Retry-After while the server is away
)

// CacheConfig configures a Cache. Dir, Upstream and Metrics must be set.
type CacheConfig struct {
	Dir      string // created if absent; no other process may write to it
	Upstream Upstream

	// Identities returns verified identities that may fetch templates, one for each account of
	// which the sidecar knows such a key. Feeds are polled with them. nil means none.
	Identities func() []wire.Identity

	// Rekeyed is called after a key of an account was revoked. nil means no call.
	Rekeyed func(account string)

	Metrics *metrics.Metrics
	Logger  *slog.Logger    // nil means slog.Default()
	Room    *admission.Room // bounds the memory for large templates; nil means no bound
}

// Cache is the sidecar's side of templates. Every template that was ever fetched is kept
// on disk and served from memory; freshness decides when the server is
// asked.
//
// Safe for concurrent use. Run keeps it fresh; without Run it serves what it has as
// stale.
type Cache struct {
	// Upstream answers what only people and CI read.
	wire.TemplateEditor

	config CacheConfig // complete
	packer packer
	disk   disk
	files  [64]sync.Mutex // by key; held while a file is made to agree with memory. Locked before mu
	added  chan struct{}  // wakes Run: there is a feed to start

	mu        sync.Mutex // guards everything below, and the fields whose comments say so
	entries   entries
	negatives map[key]negative
	flights   map[key]*flight
	feeds     map[string]*feed // by account
	unstarted []*feed
}

// key identifies what was asked for, and by whose account.
type key struct {
	account, ident string
	selector       wire.Selector
}

// template returns what the key asks for, whatever the version.
func (k key) template() templateKey { return templateKey{k.account, k.ident} }

// isPinned reports whether the key asks for a version by number. Versions never change.
func (k key) isPinned() bool { return k.selector.Version > 0 }

func newKey(account, ident string, s wire.Selector) key {
	if s.Label != "" {
		// The label wins.
		s.Version = 0
	}

	return key{account, ident, s}
}

// negative is the server's answer that a template does not exist.
type negative struct {
	err   error
	until time.Time
}

// NewCache opens the folder and loads its files. It starts no goroutine: call Run.
//
// A file that cannot be read is renamed to end in .bad, logged, and ignored.
func NewCache(c CacheConfig) (*Cache, error) {
	c.Logger = cmp.Or(c.Logger, slog.Default())
	if c.Identities == nil {
		c.Identities = func() []wire.Identity { return nil }
	}

	packer, err := newPacker()
	if err != nil {
		return nil, err
	}
	cache := &Cache{
		TemplateEditor: c.Upstream,
		config:         c,
		packer:         packer,
		disk:           disk{dir: c.Dir, packer: packer, log: c.Logger},
		added:          make(chan struct{}, 1),
		entries:        newEntries(),
		negatives:      make(map[key]negative),
		flights:        make(map[key]*flight),
		feeds:          make(map[string]*feed),
	}

	// Synchronously: the first fetch after a restart must find its copy, also while the
	// server is away.
	loaded, err := cache.disk.load()
	if err != nil {
		return nil, err
	}
	for _, e := range loaded {
		cache.entries.put(e)
	}

	// A crash may have left more files than the bounds allow.
	for _, k := range cache.entries.shrink() {
		cache.syncFile(k)
	}

	return cache, nil
}

// Fetch answers a template fetch, rendered as the server would render it. The answer's
// Cache is how the template was found, its Age the time since it was last confirmed.
//
// Fetch waits for the server at most 2 s, and not at all while the server is away and
// there is a copy. wire.CodeUnavailable means that no copy exists and the server is away.
func (c *Cache) Fetch(
	ctx context.Context, id wire.Identity, ident string, f wire.TemplateFetch,
) (wire.RenderedTemplate, error) {
	found, err := c.find(ctx, id, ident, f.Selector)
	if err != nil {
		return wire.RenderedTemplate{}, err
	}

	// The entry is still packed here. A large one must not be unpacked before there is
	// room.
	if err := admission.TakeRoom(ctx, found.entry.bytesToRender()); err != nil {
		return wire.RenderedTemplate{}, err
	}
	o, err := c.open(found.entry)
	if err != nil {
		return wire.RenderedTemplate{}, err
	}

	out, err := renderTemplate(ctx, o.raw, o.prepared, f)
	out.Cache, out.Age = found.source, found.age

	return out, err
}

// Raw is Fetch without rendering.
func (c *Cache) Raw(
	ctx context.Context, id wire.Identity, ident string, s wire.Selector,
) (wire.RawTemplate, error) {
	found, err := c.find(ctx, id, ident, s)
	if err != nil {
		return wire.RawTemplate{}, err
	}

	// Less than Fetch takes: nothing is parsed or filled in.
	if err := admission.TakeRoom(ctx, rawCopies*found.entry.textBytes); err != nil {
		return wire.RawTemplate{}, err
	}
	raw, err := c.raw(found.entry)
	if err != nil {
		return wire.RawTemplate{}, err
	}

	return *raw, nil
}

// Version returns the version that a selector means now. ok is false if no copy is known
// to be current.
func (c *Cache) Version(account, ident string, sel wire.Selector) (version int, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()

	e, state := c.lookupLocked(newKey(account, ident, sel))
	// A guess would stay in the record for good. Without one, the server decides.
	if state != current {
		return 0, false
	}

	return e.meta.version, true
}

// raw returns the version as the server sent it. The caller must not change it.
func (c *Cache) raw(e *entry) (*wire.RawTemplate, error) {
	if o := e.opened.Load(); o != nil {
		return o.raw, nil
	}
	return c.packer.unpack(e.text)
}

// open returns the version with its texts parsed, and keeps it open while there is room.
func (c *Cache) open(e *entry) (*opened, error) {
	if o := e.opened.Load(); o != nil {
		return o, nil
	}

	// Unpacking and parsing happen outside mu. Two callers may both do it; either result
	// serves.
	raw, err := c.raw(e)
	if err != nil {
		return nil, err
	}
	o, err := open(raw)
	if err != nil {
		return nil, err
	}

	c.mu.Lock()
	c.entries.keepOpened(e, o)
	c.mu.Unlock()

	return o, nil
}

// confirmedLocked returns when an entry was last known to be current. mu must be held.
func (c *Cache) confirmedLocked(e *entry) time.Time {
	feed := c.feeds[e.key.account]
	// A connected feed vouches for every copy that it has not invalidated.
	if feed != nil && !e.invalid && feed.heardAt.After(e.currentAt) {
		return feed.heardAt
	}

	return e.currentAt
}

// invalidateLocked marks the entries of the named templates, and of those that contain
// them as snippets, if they were read before revision. It returns their keys. mu must be
// held.
func (c *Cache) invalidateLocked(account string, names []string, revision uint64) []key {
	changed := make(map[string]bool, len(names))
	for _, name := range names {
		changed[name] = true
	}
	isChanged := func(s wire.UsedSnippet) bool { return changed[s.Name] }

	return c.markLocked(account, func(e *entry) bool {
		older := e.meta.revision < revision
		if older && slices.ContainsFunc(e.meta.snippets, isChanged) {
			return true
		}

		// A version stays what it is, unless the ident was an id and is now the name of
		// another template.
		if e.key.isPinned() {
			return changed[e.key.ident] && e.key.ident != e.meta.name
		}

		return older && (changed[e.meta.name] || changed[e.key.ident])
	})
}

// bumpEpochLocked makes answers to requests that are already out count as outdated,
// whatever revision they carry. mu must be held.
func (c *Cache) bumpEpochLocked(account string) {
	// Without a feed nothing was asked yet.
	if feed := c.feeds[account]; feed != nil {
		feed.epoch++
	}
}

// markLocked marks the entries of an account that outdated selects, and returns their
// keys. It also forgets the account's negatives and flights, so that later callers ask
// again. mu must be held.
func (c *Cache) markLocked(account string, outdated func(*entry) bool) (marked []key) {
	for k, e := range c.entries.byKey {
		if k.account == account && !e.invalid && outdated(e) {
			// Set before invalid, which changes the answer.
			e.currentAt = c.confirmedLocked(e)
			e.invalid = true
			marked = append(marked, k)
		}
	}

	// A template that was missing may exist by now.
	for k := range c.negatives {
		if k.account == account {
			delete(c.negatives, k)
		}
	}
	// Those who wait for a flight still get its answer; only later callers start another.
	for k := range c.flights {
		if k.account == account {
			delete(c.flights, k)
		}
	}
	return marked
}

// isVerdict reports whether the server judged the request itself. Any other error, including
// the server's own failures, does not withhold a cached copy from an app.
func isVerdict(err error) bool {
	verdicts := []wire.Code{wire.CodeNotFound, wire.CodeUnauthorized, wire.CodeForbidden, wire.CodeInvalid}
	return slices.ContainsFunc(verdicts, func(code wire.Code) bool { return wire.IsCode(err, code) })
}

// Upstream is the server as a sidecar's Cache sees it: Registry's methods over HTTP.
//
// All methods may be called concurrently, and end when ctx does. Errors are *wire.Error;
// wire.CodeUnavailable means that the server is away. The caller owns what a method returns.
type Upstream interface {
	Raw(ctx context.Context, id wire.Identity, ident string, s wire.Selector) (wire.RawTemplate, error)
	Publish(ctx context.Context, id wire.Identity, p wire.Publish) (wire.Published, error)
	List(ctx context.Context, id wire.Identity, q wire.TemplateListQuery) (wire.TemplateList, error)
	Changes(ctx context.Context, id wire.Identity, q wire.ChangesQuery) (wire.Changes, error)
	wire.TemplateEditor
}

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
		// The feed may have changed the answer meanwhile.
		f, state, err = c.findCopy(id, k)
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
	result := f.source
	if err != nil {
		result = "error"
	}
	c.config.Metrics.TemplateCache.WithLabelValues(result).Inc()
}

// findCopy returns what the cache has: a copy with its freshness, or, as an error, the
// server's recent answer that it does not exist.
func (c *Cache) findCopy(id wire.Identity, k key) (found, freshness, error) {
	c.mu.Lock()
	c.followLocked(id)

	// Apps that ask for a missing template in a loop must not load the server.
	if n, ok := c.negatives[k]; ok && time.Now().Before(n.until) {
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
		age:    max(0, time.Since(c.confirmedLocked(e))),
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

	return feed.awaitFirst(ctx)
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
	now := time.Now()
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
		f.entry = c.packer.entry(k, &raw, time.Now())
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
	now := time.Now()
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
