// Package api is the HTTP face of promptspool, the same for a sidecar and a server. It knows routes, reads and checks
// bodies, authenticates, mints ids and writes answers. What stands behind a route it is handed as a capability; it does
// not know which role it plays.
//
// A call goes through these steps, and the first that fails answers it: route (404, 405), origin (403), body (413,
// 415, 400), key (401), scope (403), fields (422), capability. /sync/events looks at the header (413, 415), then at the key, then at
// the body: what it reads is claimed from the key's share of the memory, so without a key there is none to read it into, and nobody
// may have 33 MiB unpacked to be told 401. Every answer is a JSON object, errors are
// {"success":false,"error":code,"message":what and the next step,"fields":[{"field","reason"}]}.
package api

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"promptspool/api/admission"
	"promptspool/api/edge"
	"promptspool/api/room"
	"promptspool/api/wire"
	"promptspool/metrics"
)

// Recorder takes writes. When Record returns results without an error, every event that is accepted or a duplicate there is
// durable. Results come in the order of the events. It may be called concurrently. The bytes of the events' bodies are its own
// from then on: it may keep them, and write over them. On a sidecar it is the spool, on a server the archive.
type Recorder interface {
	Record(ctx context.Context, id wire.Identity, events []wire.Event) ([]wire.Result, error)
}

// Querier reads what was recorded. On a sidecar it asks the server, and is unavailable (503) while that is away.
type Querier interface {
	Request(ctx context.Context, id wire.Identity, requestID string) (wire.Record, error)
	Search(ctx context.Context, id wire.Identity, s wire.Search) (wire.SearchPage, error)
	Orphans(ctx context.Context, id wire.Identity, q wire.OrphanQuery) (wire.OrphanPage, error)
}

// Analyst counts what was recorded.
type Analyst interface {
	Analyze(ctx context.Context, id wire.Identity, q wire.StatisticsQuery) (wire.Analytics, error)
	TemplateStatistics(ctx context.Context, id wire.Identity, q wire.StatisticsQuery) (wire.TemplateStatistics, error)
	Suggest(ctx context.Context, id wire.Identity, q wire.SuggestQuery) (wire.Suggestions, error)
}

// Keeper changes what was recorded. When Delete returns, the records can no longer be found. Reprice and Scan work for
// a few seconds and say where to go on.
type Keeper interface {
	Delete(ctx context.Context, id wire.Identity, d wire.Deletion) (wire.Deleted, error)
	Reprice(ctx context.Context, id wire.Identity, cursor string) (wire.Repriced, error)
	Scan(ctx context.Context, id wire.Identity, q wire.ScanQuery) (wire.Scanned, error)
}

// Templates is the registry. On a sidecar Fetch and Raw answer from its cache where they can; Publish and List go to
// the server.
type Templates interface {
	Fetch(ctx context.Context, id wire.Identity, ident string, f wire.TemplateFetch) (wire.RenderedTemplate, error)
	Raw(ctx context.Context, id wire.Identity, ident string, s wire.Selector) (wire.RawTemplate, error)
	Publish(ctx context.Context, id wire.Identity, p wire.Publish) (wire.Published, error)
	List(ctx context.Context, id wire.Identity, q wire.TemplateListQuery) (wire.TemplateList, error)
	wire.TemplateEditor
}

// Changes tells which templates changed after the revision that a caller knows, waiting for the first as long as it would.
type Changes interface {
	Changes(ctx context.Context, id wire.Identity, q wire.ChangesQuery) (wire.Changes, error)
}

// Authenticator says whose key it is. Unknown keys are CodeUnauthorized. A sidecar that cannot ask gives an Identity with
// Verified false and no error.
type Authenticator interface {
	Authenticate(ctx context.Context, key wire.Secret) (wire.Identity, error)
}

// Config is what an API is made of. A capability that is nil answers 501.
type Config struct {
	Name    string // who accepts: stands in every event; 1..255 bytes
	Version string // sent as Promptspool-Version; by it a sidecar knows the server's answers

	Recorder      Recorder
	Querier       Querier
	Analyst       Analyst
	Keeper        Keeper
	Templates     Templates
	Changes       Changes
	Fleet         Fleet
	Exporter      Exporter
	ExportRelay   ExportRelay // in place of an Exporter
	Authenticator Authenticator
	Pages         Pages // nil: none

	// Blueprint makes what a track-request is answered with, if the caller asks for it, of its body alone; nil: nobody gets one.
	Blueprint func(body json.RawMessage) json.RawMessage

	// OwnKey: the Authenticator puts a key of its own in the place of the caller's, who may be anybody. Then only what an app needs
	// is served, all else is 403. LocalKey: it wants a key from the caller all the same.
	OwnKey, LocalKey bool

	// GuardBrowsers refuses cross-site requests and Host names that are neither loopback nor in Hosts (403). For a
	// sidecar, whose callers are programs on the same machine or pod, while a browser there may show anybody's page.
	GuardBrowsers bool
	Hosts         []string

	// MaskBatches masks the secrets in batches of events before the Recorder has them. For a sidecar, which puts them on
	// disk as they are; an archive masks what it gets.
	MaskBatches bool

	Limiter *admission.Limiter // of each key's calls and bytes; nil: no limits

	// Room is for what is made of large bodies and answers beside the bodies themselves;
	// nil: it is not bounded.
	Room *room.Room

	BodyBytesMax int64 // of one body, as sent and unpacked; 0 means wire.BodyBytesMax
	BufferBytes  int64 // of all bodies held at once; beyond it 503; 0 means 4 * BodyBytesMax
	// Connections that may be open at once; beyond it those that keep us waiting are cut. 0 means 16,384: 400 MB if all of them do.
	ConnectionsMax int
	BatchBytes     int64 // of all batches held at once, shared between keys; beyond it 429 or 503; 0 means 4 * BodyBytesMax

	Metrics *metrics.Metrics
	Logger  *slog.Logger
	Clock   *Clock // of accepted times and ids; nil means the system's
	ClockID string // a UUIDv7 that stays while Clock never goes back, also over restarts; "" means one of this process
}

// API answers calls. Safe for concurrent use.
type API struct {
	c           Config
	conns       *edge.Connections
	bodies      *admission.Pool // bytes
	batches     *admission.Pool // bytes
	batchRetry  admission.RetryAfter
	polls       *admission.Pool // by the key's id
	exports     *admission.Pool // by the key's id
	pageExports *admission.Pool // by the person
	busy        *busy

	version []byte // Config.Version

	// life is the root of every call's context: it ends when the server shuts down, so that long polls do not hold that up.
	// fasthttp's own RequestCtx must not be used as a context: it is recycled while who it was handed to may still look at it.
	life context.Context
	end  context.CancelFunc
}

// callTimeMax bounds every call's context; it lies above changesWaitMax.
const callTimeMax = 75 * time.Second

// New makes an API. It starts nothing: Serve does.
func New(c Config) *API {
	if c.BodyBytesMax == 0 {
		c.BodyBytesMax = wire.BodyBytesMax
	}
	if c.BufferBytes == 0 {
		c.BufferBytes = 4 * c.BodyBytesMax
	}
	if c.BatchBytes == 0 {
		c.BatchBytes = 4 * c.BodyBytesMax
	}
	if c.ConnectionsMax == 0 {
		c.ConnectionsMax = 16 << 10
	}
	if c.Clock == nil {
		c.Clock = NewClock(nil)
	}
	if c.ClockID == "" {
		c.ClockID = wire.NewID()
	}
	a := &API{
		c:           c,
		conns:       edge.NewConnections(c.ConnectionsMax, c.Metrics),
		bodies:      newBodyPool(c.BufferBytes, c.BodyBytesMax),
		batches:     newBatchPool(c.BatchBytes, c.Metrics),
		polls:       newCallPool(pollsMax, pollsOfKeyMax),
		exports:     newCallPool(exportsMax, exportsOfKeyMax),
		pageExports: newCallPool(pageExportsMax, exportsOfKeyMax),
		busy:        newBusy(),
		version:     []byte(c.Version),
	}
	a.life, a.end = context.WithCancel(context.Background())
	a.present()
	return a
}

// present puts the metrics of what is served here there at zero, so that a rate counts the first call too. The times of routes that
// people call come with their first call: each is eighteen series.
func (a *API) present() {
	for i := range routes {
		r := &routes[i]
		if a.missing(r) != nil {
			continue
		}
		a.c.Metrics.HTTPRequests.WithLabelValues(r.name, "200")
		if r.isForApps() {
			a.c.Metrics.HTTPSeconds.WithLabelValues(r.name)
		}
	}
}
