package api

import (
	"context"
	"crypto/subtle"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"promptspool/api/edge"
	"promptspool/api/wire"
	"promptspool/api/wire/jsonscan"
	"promptspool/api/wire/secrets"
)

// call is one request on its way through a route. Its bytes are valid until the handler returns.
type call struct {
	ctx    *fasthttp.RequestCtx
	life   context.Context // for whatever the handler calls
	own    callLife        // what life is; in the same piece of memory
	route  *route
	ident  string // from the path
	body   []byte // nil for noBody
	source *body  // what body is read into
	object wire.Object
	id     wire.Identity
}

// Handle answers one request. A panic in a handler is answered 500, logged and counted: fasthttp itself would end the
// process.
func (a *API) Handle(ctx *fasthttp.RequestCtx) {
	started := time.Now()
	name := "none"
	a.busy.begin()
	defer func() {
		if p := recover(); p != nil {
			a.c.Metrics.Panics.Inc()
			a.c.Logger.Error("a handler panicked", "panic", p, "stack", string(debug.Stack()))
			ctx.SetConnectionClose()
			writeError(ctx, a.c.Logger, wire.Errorf(wire.CodeInternal, "Something failed inside promptspool; its log says what."))
		}
		var stamp [len(time.RFC3339Nano)]byte
		ctx.Response.Header.SetCanonical(versionHeader, a.version)
		ctx.Response.Header.SetCanonical(timeHeader, a.c.Clock.Now().AppendFormat(stamp[:0], time.RFC3339Nano))
		now := time.Now()
		a.countCall(name, ctx.Response.StatusCode(), now.Sub(started))
		a.busy.finish(now)
	}()
	r, ident, allow, err := find(ctx.Method(), ctx.URI().PathOriginal())
	if bad := edge.CheckHead(ctx); bad != nil {
		r, err = nil, bad
	}
	switch {
	case wire.IsCode(err, wire.CodeBadJSON): // of the head
	case err != nil && a.isForPages(ctx):
		name, err = "page", nil
		a.page(ctx)
	case r != nil:
		name = r.name
		c := &call{ctx: ctx, route: r, ident: ident, own: callLife{parent: a.life, deadline: started.Add(callTimeMax)}}
		c.own.claim = a.c.Room.Claim(r.isForApps())
		if r.onlyAsks() {
			c.own.conn = ctx.Conn()
		}
		c.life = &c.own
		err = a.answer(c)
		c.own.end()
	}
	if err != nil {
		a.c.Metrics.Refused.WithLabelValues(string(wire.AsError(err).Code)).Inc()
		drain(ctx)
		if allow != "" {
			ctx.Response.Header.Set("Allow", allow)
		}
		writeError(ctx, a.c.Logger, err)
	}
}

// Names of headers as fasthttp keeps them, so that it need not look how they are written each time.
var (
	versionHeader  = []byte("Promptspool-Version")
	timeHeader     = []byte(wire.TimeHeader)
	cacheHeader    = []byte("X-Cache")
	ageHeader      = []byte("Age")
	keyHeader      = []byte("X-Api-Key")
	encodingHeader = []byte("Content-Encoding")
	originHeader   = []byte("Origin")
	siteHeader     = []byte("Sec-Fetch-Site")
	acceptHeader   = []byte("Accept")
)

// countCall counts a call.
func (a *API) countCall(name string, status int, took time.Duration) {
	a.c.Metrics.HTTPRequests.WithLabelValues(name, strconv.Itoa(status)).Inc()
	a.c.Metrics.HTTPSeconds.WithLabelValues(name).Observe(took.Seconds())
}

// answer takes a call through the steps of the package comment.
func (a *API) answer(c *call) error {
	if err := a.missing(c.route); err != nil {
		return err
	}
	if a.c.GuardBrowsers {
		if err := guard(c.ctx, a.c.Hosts); err != nil {
			return err
		}
	}
	switch c.route.body {
	case noBody:
		drain(c.ctx)
		edge.Answering(c.ctx.Conn())
	case batchBody: // the handler reads it, once the key is known: nobody's bytes are kept without one
		if _, err := encodingOf(c.ctx, wire.BatchBodyBytesMax); err != nil {
			return err
		}
		if err := a.authenticate(c); err != nil {
			return err
		}
		return c.route.handle(a, c)
	default:
		b, err := a.readBody(c.ctx, a.c.BodyBytesMax, a.proof(c))
		if err != nil {
			return err
		}
		defer func() {
			b.keep(c.object)
			c.body, c.object = nil, nil
			b.release()
		}()
		c.body, c.source = b.bytes, b
	}
	var err error
	switch c.route.body {
	case objectBody:
		c.object, err = c.source.members.Parse(c.body)
	case optionalBody:
		c.object, err = c.source.members.ParseOptional(c.body)
	}
	if err != nil {
		return err
	}
	if err := a.authenticate(c); err != nil {
		return err
	}
	if err := a.limit(c, len(c.body)); err != nil {
		return err
	}
	defer c.settle()
	if err := a.makeRoom(c); err != nil {
		return err
	}
	return c.route.handle(a, c)
}

// proof has the caller show a key in the call's head, before a large body is read; see body. Whether the key may call this
// route is judged with the whole call in hand, as ever.
func (a *API) proof(c *call) func() (string, error) {
	return func() (string, error) {
		var key wire.Secret
		if a.wantsKey() {
			key = wire.Secret(c.ctx.Request.Header.PeekCanonical(keyHeader))
			if key == "" {
				return stranger, nil
			}
		}
		id, err := a.c.Authenticator.Authenticate(c.life, key)

		return id.KeyID, err
	}
}

// wantsKey reports whether callers show a key: not where a sidecar has one of its own and asks for none.
func (a *API) wantsKey() bool { return !a.c.OwnKey || a.c.LocalKey }

// noKey is the proof of callers who have no key to show.
func noKey() (string, error) { return stranger, nil }

// takeBody gives the body away, without its secrets, for an event to keep. The object, and what aliases it, is gone afterwards.
func (c *call) takeBody() []byte {
	c.source.given = true
	return secrets.Strip(c.body, c.object)
}

// authenticate finds the caller's key in the header or the body, and checks that it may call this route.
func (a *API) authenticate(c *call) error {
	var key wire.Secret
	var err error
	if a.wantsKey() {
		if key, err = c.key(); err != nil {
			return err
		}
	}
	if c.id, err = a.c.Authenticator.Authenticate(c.life, key); err != nil {
		return err
	}
	switch {
	case a.c.OwnKey && !c.route.isForApps():
		return wire.Errorf(wire.CodeForbidden, "This sidecar calls the server with a key of its own (--api-key), so it serves only track-*, groups and the fetching of templates. Call the server itself, with a key of yours.")
	case !c.id.Verified && !c.route.unverified:
		return wire.Unavailable(5*time.Second, "This key has not been seen before and the server cannot be asked about it now. Writes are accepted meanwhile; try this again when the server is back.")
	case c.id.Verified && !c.id.Allows(c.route.scope):
		return wire.Errorf(wire.CodeForbidden, "This key's scope is %q; the call needs %q. Make a key with `promptspool keys create --scope %s`.", c.id.Scope, c.route.scope, c.route.scope)
	}
	return nil
}

// key is the X-API-KEY header or the body's api_key. If both are there they must agree.
func (c *call) key() (wire.Secret, error) {
	header := string(c.ctx.Request.Header.PeekCanonical(keyHeader))
	inBody := ""
	if raw, ok := c.object.Get("api_key"); ok {
		if raw[0] != '"' {
			return "", wire.Errorf(wire.CodeUnauthorized, "api_key must be a string: your key.")
		}
		inBody = jsonscan.Unquote(raw)
	}
	switch {
	case header == "" && inBody == "":
		return "", wire.Errorf(wire.CodeUnauthorized, "The key is missing. Send it as the header X-API-KEY or as api_key in the body. `promptspool keys create` makes one.")
	case header == "":
		return wire.Secret(inBody), nil
	case inBody != "" && subtle.ConstantTimeCompare([]byte(header), []byte(inBody)) != 1:
		return "", wire.Errorf(wire.CodeUnauthorized, "The header X-API-KEY and the body's api_key differ. Send one of them.")
	}
	return wire.Secret(header), nil
}
