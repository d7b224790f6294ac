// Package api is the HTTP interface of promptspool, the same for a sidecar and a server.
// It knows routes, reads and checks bodies, authenticates, mints ids and writes answers.
// It is given the parts that answer a route as capabilities, and does not know which role
// it plays.
//
// A request goes through these steps, and the first that fails answers it: route (404, 405),
// origin (403), body (413, 415, 400), key (401), scope (403), fields (422), capability.
//
// /sync/events differs: it checks the header (413, 415), then the key, then reads the body. The
// memory for the body is claimed from the key's share, so without a key there is none to read it
// into, and an unknown caller cannot make us unpack 33 MiB before being told 401.
//
// Every answer is a JSON object. Errors are {"success":false,"error":code,"message":what
// happened and the next step,"fields":[{"field","reason"}]}.
//
// routes.go is the table. Beside it are the handlers, a file for each kind of route, and
// the steps of a request (exchange.go, admit.go, stream.go). Reading bodies,
// admission and connections are packages below. Handlers stay here, because all of them
// need the request and its capabilities.
package api

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"sync"
	"time"

	"promptspool/api/admission"
	"promptspool/api/edge"
	"promptspool/api/mcp"
	"promptspool/api/wire"
	"promptspool/metrics"
)

// Upstream is the server of a sidecar, which is asked for what only the server has. While it cannot
// be reached, requests for that are answered 503.
type Upstream interface {
	wire.Recorded
	wire.Sidecars
	wire.Scoring
	wire.Views
	wire.Alerts

	// OpenExport returns the answer to an export as it comes. An export through a sidecar is neither
	// held nor read: one event may be larger than the sidecar's memory. The caller must close it.
	OpenExport(ctx context.Context, id wire.Identity, e wire.Export) (io.ReadCloser, error)
}

// Changes lists the templates that changed after a revision. If none has yet, it waits for one
// as long as the query allows.
type Changes interface {
	Changes(ctx context.Context, id wire.Identity, q wire.ChangesQuery) (wire.Changes, error)
}

// Authenticator returns the identity that a key belongs to. An unknown key is CodeUnauthorized.
// A sidecar that cannot ask its server returns an Identity with Verified false and no error.
type Authenticator interface {
	Authenticate(ctx context.Context, key wire.Secret) (wire.Identity, error)
}

// Config is what an API is made of. Routes whose capability is nil answer 501.
type Config struct {
	Name    string // of the process that accepts events, which carry it; 1..255 bytes
	Version string // sent as Promptspool-Version; sidecars recognize the server's answers by it

	Recorder wire.Recorder

	// RecorderKeepsNothing means that the Recorder has no use for the bytes of bodies once it
	// has returned without an error, so their memory serves the next requests. A spool has written
	// them to its disk by then; an archive may keep them.
	RecorderKeepsNothing bool

	// Those from Records to Alerts are a server's. A sidecar keeps none: it asks its Upstream, and
	// refuses nothing for a closed trace or a score's definition, so that what it takes while the
	// server is away is not lost because of what only the server knows.
	Records  wire.Records
	Fleet    wire.Sidecars
	Scoring  wire.Scoring
	Views    wire.Views
	Targets  wire.Targets
	Alerts   wire.Alerts
	Upstream Upstream // in place of these

	Templates     wire.Templates
	Changes       Changes
	Audit         wire.AuditLog // nil: what keys do is noted elsewhere
	Authenticator Authenticator
	Pages         Pages // nil serves no pages

	// BasePath is the path below which the API and the pages are reached, such as /promptspool; ""
	// is the root. It may be in front of a request's path or not: a proxy may have removed it.
	BasePath string
	Proxies  edge.Proxies // who may say for whom they call

	// Blueprint makes the prompt blueprint of a track-request's body, for callers who ask for
	// it in the answer. If it is nil, they get null.
	Blueprint func(body json.RawMessage) json.RawMessage

	// OwnKey means that the Authenticator uses its own key in place of the caller's, so
	// that a caller may be anybody. Then only what an app needs is served; the rest is 403.
	// With LocalKey a caller must show a key nevertheless.
	OwnKey, LocalKey bool

	// KeepPlumbing records the spans of an app's HTTP and database instrumentation, too, which are
	// dropped otherwise.
	KeepPlumbing bool

	// GuardBrowsers rejects cross-site requests, and Host names that are neither loopback nor in
	// Hosts (403). It is for a sidecar: its callers are programs on the same machine or pod, but
	// a browser there may show a hostile page.
	GuardBrowsers bool
	Hosts         []string

	// MaskBatches masks the secrets in batches of events before the Recorder gets them. It is
	// for a sidecar, which writes them to disk as they are; an archive masks what it gets.
	MaskBatches bool

	Limiter *admission.Limiter // of each key's requests and bytes; nil means no limits

	// Room bounds the memory for copies that are made of large bodies and answers. If it is
	// nil, that memory is not bounded.
	Room *admission.Room

	BodyBytesMax int64 // of one body, as sent and unpacked; 0 means wire.BodyBytesMax
	BufferBytes  int64 // of all bodies held at once; beyond it 503; 0 means 4 * BodyBytesMax

	// BatchBytes bounds all batches held at once, shared between keys; beyond it 429 or 503.
	// 0 means 4 * BodyBytesMax.
	BatchBytes int64

	// ConnectionsMax bounds the open connections. Beyond it, those that keep us waiting are cut.
	// 0 means 16,384, which take 400 MB if all of them keep us waiting.
	ConnectionsMax int

	Drops   *DropCounter // of what exporters send; nil counts apart
	Metrics *metrics.Metrics
	Logger  *slog.Logger
	Clock   *Clock // of accepted times and ids; nil means the system's

	// ClockID is a UUIDv7 that stays the same as long as Clock never goes back, restarts
	// included. "" means a new one for this process.
	ClockID string
}

// API answers requests. Safe for concurrent use.
type API struct {
	c           Config
	recorded    wire.Recorded // of Config.Records, or of its Upstream
	conns       *edge.Connections
	grpc        *edge.GRPC
	intake      *admission.Intake
	polls       *admission.Pool // by the key's id
	exports     *admission.Pool // by the key's id
	pageExports *admission.Pool // by the person
	scans       *admission.Pool // by the key's id
	longTraces  sync.Mutex      // its holder answers one
	continued   continuedExports
	busy        *busy
	agents      *mcp.Server

	// root is the parent of every request's context. It ends when the server shuts down, so that
	// long polls do not delay that. fasthttp's RequestCtx must not be used as a context: it is
	// recycled while a capability that was given it may still read it.
	root       context.Context
	cancelRoot context.CancelFunc
}

// requestTimeMax bounds every request's context. It is more than changesWaitMax.
const requestTimeMax = 75 * time.Second

// New makes an API. It starts nothing; Server.Serve does.
func New(c Config) *API {
	c.BodyBytesMax = cmp.Or(c.BodyBytesMax, wire.BodyBytesMax)
	c.BufferBytes = cmp.Or(c.BufferBytes, 4*c.BodyBytesMax)
	c.BatchBytes = cmp.Or(c.BatchBytes, 4*c.BodyBytesMax)
	c.ConnectionsMax = cmp.Or(c.ConnectionsMax, 16<<10)
	c.Drops = cmp.Or(c.Drops, new(DropCounter))
	c.Clock = cmp.Or(c.Clock, NewClock(nil))
	c.ClockID = cmp.Or(c.ClockID, wire.NewID())

	a := &API{
		c:     c,
		conns: edge.NewConnections(c.ConnectionsMax, c.Metrics),
		intake: admission.New(admission.Config{
			BodyBytesMax: c.BodyBytesMax,
			BufferBytes:  c.BufferBytes,
			BatchBytes:   c.BatchBytes,
			Metrics:      c.Metrics,
		}),
		polls:       newRequestPool(pollsMax, pollsOfKeyMax),
		exports:     newRequestPool(exportsMax, exportsOfKeyMax),
		pageExports: newRequestPool(pageExportsMax, exportsOfKeyMax),
		scans:       newRequestPool(exportsMax, exportsOfKeyMax),
		busy:        newBusy(),
	}

	// A sidecar passes on what it is asked about records, sidecars, definitions, views and alerts.
	a.recorded = c.Records
	if c.Upstream != nil {
		a.recorded, a.c.Fleet, a.c.Scoring = c.Upstream, c.Upstream, c.Upstream
		a.c.Views, a.c.Alerts = c.Upstream, c.Upstream
	}

	a.agents = mcp.New(mcp.Config{Version: c.Version, Call: a.callRoute, Panicked: a.notePanic})
	a.grpc = edge.NewGRPC(a.conns, a.handleGRPC)

	a.root, a.cancelRoot = context.WithCancel(context.Background())
	a.initMetrics()

	return a
}

// initMetrics initializes the metrics of the routes served here to zero.
func (a *API) initMetrics() {
	for i := range routes {
		r := &routes[i]
		if a.missingCapability(r) != nil {
			continue
		}

		// A rate() sees a first request only if the counter was there before it. The histogram of a
		// route that people call appears with its first request, because each is eighteen series.
		a.c.Metrics.HTTPRequests.WithLabelValues(r.name, "200")
		if r.isForApps() {
			a.c.Metrics.HTTPSeconds.WithLabelValues(r.name)
		}
	}
}
