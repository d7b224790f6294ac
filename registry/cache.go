package registry

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"promptspool/api/room"
	"promptspool/api/wire"
	"promptspool/metrics"
)

// Bounds of a Cache.
const (
	entriesMax      = 10_000
	entryBytesMax   = 64 << 20 // of all entries together, unpacked
	openedBytesMax  = 4 << 20  // of opened ones, beside them: of some 400 templates of 2 KB, which is more than an app uses at a time
	negativesMax    = 1000
	negativeTTL     = 3 * time.Second
	askTimeout      = 2 * time.Second        // for the server, when nothing is cached
	refreshTimeout  = time.Second            // for the server, when a stale copy can be served instead
	copyTTL         = time.Minute            // after which a copy that no feed confirms is asked for beside its use
	settleMax       = 250 * time.Millisecond // after a start, for the feed to speak
	unavailableWait = time.Second            // Retry-After of what a server that is away would have to answer
)

// CacheConfig is what a Cache needs. Dir, Upstream and Metrics must be set.
type CacheConfig struct {
	Dir        string // made if absent; no one else may write in it
	Upstream   Upstream
	Identities func() []wire.Identity // verified ones, one per account that the sidecar knows when Run starts; nil: none
	Metrics    *metrics.Metrics
	Logger     *slog.Logger     // nil: slog.Default()
	Now        func() time.Time // nil: time.Now
	Room       *room.Room       // for what is made of large templates; nil: it is not bounded
}

// Cache is the sidecar's side of templates. What was fetched once is on disk and is served from memory, or asked for,
// as cache_find.go says.
//
// Safe for concurrent use. Run keeps it fresh; without Run it serves what it has as stale.
type Cache struct {
	upstream   Upstream
	identities func() []wire.Identity
	metrics    *metrics.Metrics
	hits       prometheus.Counter // of metrics.TemplateCache, looked up once
	log        *slog.Logger
	now        func() time.Time
	room       *room.Room
	packer     packer
	disk       disk
	files      [64]sync.Mutex // by key: who makes a file agree with memory. Locked before mu
	added      chan struct{}  // wakes Run: there is a feed to start

	mu        sync.Mutex // guards all below, and what their comments say
	entries   entries
	negatives map[key]negative
	flights   map[key]*flight
	feeds     map[string]*feed // by account
	unstarted []*feed
}

// key says what was asked for, and by whose account.
type key struct {
	account, ident string
	selector       wire.Selector
}

// of is what the key asks for, whatever the version.
func (k key) of() ident { return ident{k.account, k.ident} }

// pinned says whether the key asks for a version by number: that never changes.
func (k key) pinned() bool { return k.selector.Version > 0 }

func newKey(account, ident string, s wire.Selector) key {
	if s.Label != "" {
		s.Version = 0 // the label wins
	}
	return key{account, ident, s}
}

// negative is an answer of the server that there is no such thing.
type negative struct {
	err   error
	until time.Time
}

// NewCache opens the folder and loads what is in it. A file that it cannot read is set aside under its name with .bad behind
// it, logged, and not used. It starts nothing.
func NewCache(c CacheConfig) (*Cache, error) {
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Identities == nil {
		c.Identities = func() []wire.Identity { return nil }
	}
	packer, err := newPacker()
	if err != nil {
		return nil, err
	}
	cache := &Cache{
		upstream: c.Upstream, identities: c.Identities, metrics: c.Metrics, hits: c.Metrics.TemplateCache.WithLabelValues("hit"), log: c.Logger,
		now: c.Now, room: c.Room,
		packer: packer, disk: disk{dir: c.Dir, packer: packer, log: c.Logger}, added: make(chan struct{}, 1),
		entries: newEntries(), negatives: make(map[key]negative), flights: make(map[key]*flight), feeds: make(map[string]*feed),
	}
	loaded, err := cache.disk.load()
	if err != nil {
		return nil, err
	}
	for _, e := range loaded {
		cache.entries.put(e)
	}
	for _, k := range cache.entries.shrink() {
		cache.agree(k)
	}
	return cache, nil
}

// Fetch answers a template fetch, rendered as the server would. Its Cache says how it was found, its Age since when nobody has
// confirmed it. It waits for the server 2 s at most, and not at all while the server is away and there is a copy.
// wire.CodeUnavailable: there is no copy, and the server is away.
func (c *Cache) Fetch(ctx context.Context, id wire.Identity, ident string, f wire.TemplateFetch) (wire.RenderedTemplate, error) {
	found, err := c.find(ctx, id, ident, f.Selector)
	if err != nil {
		return wire.RenderedTemplate{}, err
	}
	if err := room.Take(ctx, found.entry.bytesToRender()); err != nil {
		return wire.RenderedTemplate{}, err
	}
	o, err := c.open(found.entry)
	if err != nil {
		return wire.RenderedTemplate{}, err
	}
	out, err := renderTemplate(ctx, o.raw, o.prepared, f)
	out.Cache, out.Age = found.how, found.age
	return out, err
}

// Raw is Fetch without rendering.
func (c *Cache) Raw(ctx context.Context, id wire.Identity, ident string, s wire.Selector) (wire.RawTemplate, error) {
	found, err := c.find(ctx, id, ident, s)
	if err != nil {
		return wire.RawTemplate{}, err
	}
	if err := room.Take(ctx, rawCopies*found.entry.textBytes); err != nil {
		return wire.RawTemplate{}, err
	}
	raw, err := c.raw(found.entry)
	if err != nil {
		return wire.RawTemplate{}, err
	}
	return *raw, nil
}

// Version says what a selector means now; ok is false if there is no copy that is known to be current.
func (c *Cache) Version(account, ident string, sel wire.Selector) (version int, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()

	e, standing := c.look(newKey(account, ident, sel))
	if standing != current {
		return 0, false
	}

	return e.about.version, true
}

// raw is the version as the server told it. It must not be changed.
func (c *Cache) raw(e *entry) (*wire.RawTemplate, error) {
	if o := e.opened.Load(); o != nil {
		return o.raw, nil
	}
	return c.packer.unpack(e.text)
}

// open is the version with its texts parsed. It is kept beside the entry, as long as there is room for it.
func (c *Cache) open(e *entry) (*opened, error) {
	if o := e.opened.Load(); o != nil {
		return o, nil
	}
	raw, err := c.raw(e)
	if err != nil {
		return nil, err
	}
	o, err := open(raw)
	if err == nil {
		c.mu.Lock()
		c.entries.keepOpened(e, o)
		c.mu.Unlock()
	}
	return o, err
}

// confirmed is when an entry was last known to be current. Called with mu held.
func (c *Cache) confirmed(e *entry) time.Time {
	if feed := c.feeds[e.key.account]; feed != nil && !e.invalid && feed.heardAt.After(e.currentAt) {
		return feed.heardAt
	}
	return e.currentAt
}

// invalidate marks the entries of these names, and of those with their texts in them, that were read before revision, and returns
// their keys. Called with mu held.
func (c *Cache) invalidate(account string, names []string, revision uint64) []key {
	told := make(map[string]bool, len(names))
	for _, name := range names {
		told[name] = true
	}
	return c.mark(account, func(e *entry) bool {
		if e.about.revision < revision && slices.ContainsFunc(e.about.snippets, func(s wire.UsedSnippet) bool { return told[s.Name] }) {
			return true
		}
		if e.key.pinned() { // unless the ident, once an id, has become the name of another template
			return told[e.key.ident] && e.key.ident != e.about.name
		}
		return e.about.revision < revision && (told[e.about.name] || told[e.key.ident])
	})
}

// renew makes everything that is being asked worthless as a copy, whatever revision it claims. Called with mu held.
func (c *Cache) renew(account string) {
	if feed := c.feeds[account]; feed != nil { // without one nothing was asked yet
		feed.epoch++
	}
}

// mark marks the entries of an account that outdated picks, and returns their keys, forgets that anything was not there, and has
// whoever comes later not share the answer of a question that is out already. Called with mu held.
func (c *Cache) mark(account string, outdated func(*entry) bool) (marked []key) {
	for k, e := range c.entries.byKey {
		if k.account == account && !e.invalid && outdated(e) {
			e.currentAt = c.confirmed(e)
			e.invalid = true
			marked = append(marked, k)
		}
	}
	for k := range c.negatives {
		if k.account == account {
			delete(c.negatives, k)
		}
	}
	for k := range c.flights {
		if k.account == account {
			delete(c.flights, k)
		}
	}
	return marked
}

// definite says whether the server judged the call. Anything else, its own failures included, is no reason to refuse an app
// what is in the cache.
func definite(err error) bool {
	for _, code := range []wire.Code{wire.CodeNotFound, wire.CodeUnauthorized, wire.CodeForbidden, wire.CodeInvalid} {
		if wire.IsCode(err, code) {
			return true
		}
	}
	return false
}

// orAway makes a 503 of an error that is not the server's own.
func orAway(err error) error {
	var e *wire.Error
	if err == nil || errors.As(err, &e) {
		return err
	}
	return wire.Unavailable(unavailableWait, "The server cannot be reached; try again. The sidecar's --upstream says where it looks: %w", err)
}
