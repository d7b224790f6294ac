package api

import (
	"cmp"
	"context"
	"crypto/subtle"
	"encoding/base64"
	"net"
	"net/url"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize/english"
	"github.com/valyala/fasthttp"

	"promptspool/api/admission"
	"promptspool/api/edge"
	"promptspool/api/wire"
	"promptspool/api/wire/jsonscan"
	"promptspool/api/wire/secrets"
)

// exchange is one HTTP request on its way through a route, and its answer. Its bytes are
// valid until the handler returns.
type exchange struct {
	ctx        *fasthttp.RequestCtx
	context    context.Context // for capabilities; ownContext, except in tests
	ownContext requestContext  // in the same allocation as the request

	route  *route
	ident  string          // from the path
	source *admission.Body // that the handler may take; nil for noBody
	body   []byte          // the bytes of source
	object wire.Object
	id     wire.Identity

	warnings []string // sentences about what has no effect
}

// Handle answers one request. A panic in a handler is answered 500, logged and counted, because
// fasthttp itself would end the process.
func (a *API) Handle(ctx *fasthttp.RequestCtx) { _ = a.handle(ctx, false) }

// handleOTLP is Handle for a listener that serves nothing but what OpenTelemetry exporters send.
func (a *API) handleOTLP(ctx *fasthttp.RequestCtx) { _ = a.handle(ctx, true) }

// handle is Handle, or with onlyOTLP handleOTLP. It returns the error that it has answered.
func (a *API) handle(ctx *fasthttp.RequestCtx, onlyOTLP bool) (err error) {
	started := time.Now()
	name := "none"
	a.busy.begin()
	defer func() {
		if p := recover(); p != nil {
			err = a.answerPanic(ctx, p)
		}
		a.finish(ctx, name, started)
	}()

	a.cutBasePath(ctx)

	// A request whose end is in doubt is rejected whatever its route is.
	r, ident, allow, err := findRoute(ctx.Method(), ctx.URI().PathOriginal())
	if onlyOTLP && allow == "" && (r == nil || r.body != otlpBody) {
		r, err = nil, errOnlyOTLP(ctx)
	}
	if bad := edge.CheckHead(ctx); bad != nil {
		r, err = nil, bad
	}

	switch {
	case r == nil && string(ctx.Method()) == "PRI": // HTTP/2
		err = nil
		a.grpc.Take(ctx)
	case wire.IsCode(err, wire.CodeBadJSON): // the head is bad, so not even a page is served
	case err != nil && !onlyOTLP && a.isForPages(ctx):
		name, err = "page", nil
		a.page(ctx)
	case r != nil:
		name = r.name
		c := a.newExchange(ctx, r, ident, started)
		defer c.ownContext.end()
		err = a.serveExchange(c)
	}

	// A client that is still sending would not read the answer, so its body is drained first.
	if err != nil {
		a.c.Metrics.Refused.WithLabelValues(string(wire.AsError(err).Code)).Inc()
		admission.Drain(ctx)
		if allow != "" {
			ctx.Response.Header.Set("Allow", allow)
		}
		if r != nil && r.body == otlpBody {
			a.writeOTLPError(ctx, err)
		} else {
			writeError(ctx, a.c.Logger, err)
		}
	}

	return err
}

func (a *API) newExchange(ctx *fasthttp.RequestCtx, r *route, ident string, started time.Time) *exchange {
	c := &exchange{ctx: ctx, route: r, ident: ident}
	a.beginContext(&c.ownContext, ctx, started)
	c.ownContext.claim = a.c.Room.Claim(r.isForApps())

	// A write continues without its caller, who may never send it again.
	if r.isReadOnly() {
		c.ownContext.endWhenLeft(ctx.Conn())
	}
	c.context = &c.ownContext

	return c
}

// answerPanic answers a request whose handler panicked. The connection is closed, because the
// handler may have left part of the body unread.
func (a *API) answerPanic(ctx *fasthttp.RequestCtx, p any) error {
	a.notePanic(p)
	ctx.SetConnectionClose()
	err := wire.Errorf(wire.CodeInternal, "Something failed inside promptspool. Its log has the details.")
	writeError(ctx, a.c.Logger, err)

	return err
}

// notePanic logs and counts a panic. It is called while the goroutine panics.
func (a *API) notePanic(p any) {
	a.c.Metrics.Panics.Inc()
	a.c.Logger.Error("a handler panicked", "panic", p, "stack", string(debug.Stack()))
}

// finish sets the headers that every answer has, and counts the request.
func (a *API) finish(ctx *fasthttp.RequestCtx, name string, started time.Time) {
	ctx.Response.Header.Set("Promptspool-Version", a.c.Version)
	ctx.Response.Header.Set(wire.TimeHeader, a.c.Clock.Now().Format(time.RFC3339Nano))

	now := time.Now()
	a.c.Metrics.HTTPRequests.WithLabelValues(name, strconv.Itoa(ctx.Response.StatusCode())).Inc()
	a.c.Metrics.HTTPSeconds.WithLabelValues(name).Observe(now.Sub(started).Seconds())
	a.busy.finish(now)
}

// serveExchange takes a request through the steps of the package comment.
func (a *API) serveExchange(c *exchange) error {
	if err := a.missingCapability(c.route); err != nil {
		return err
	}
	// A hostile page must not even make us read a body.
	if a.c.GuardBrowsers {
		if err := guard(c.ctx, a.c.Hosts); err != nil {
			return err
		}
	}

	switch c.route.body {
	case noBody:
		admission.Drain(c.ctx)
		edge.Answering(c.ctx.Conn())
	case batchBody:
		return a.serveBatch(c)
	default:
		if err := a.readBody(c); err != nil {
			return err
		}
		defer c.releaseBody()
	}

	// The key may be in the body, so this comes before authentication. Larger bodies are read for
	// a known key only; see headKey.
	if err := c.parseBody(); err != nil {
		return err
	}
	if err := a.authenticate(c); err != nil {
		return err
	}
	if err := a.limit(c, len(c.body)); err != nil {
		return err
	}

	if err := c.checkMembers(); err != nil {
		return err
	}

	defer c.releaseRoom()
	if err := a.takeRoom(c); err != nil {
		return err
	}

	return c.route.handle(a, c)
}

// serveBatch serves a route whose handler reads the body itself, once the key is known:
// no bytes are kept without one.
func (a *API) serveBatch(c *exchange) error {
	if _, err := admission.Encoding(c.ctx, wire.BatchBodyBytesMax); err != nil {
		return err
	}
	if err := a.authenticate(c); err != nil {
		return err
	}

	return c.route.handle(a, c)
}

// readBody reads the request's body. Then the caller must call releaseBody.
func (a *API) readBody(c *exchange) error {
	most := min(a.c.BodyBytesMax, cmp.Or(c.route.bodyMax, a.c.BodyBytesMax))
	b, err := a.intake.Read(c.ctx, most, a.headKey(c))
	if err != nil {
		return err
	}
	c.source, c.body = b, b.Bytes

	return nil
}

func (c *exchange) releaseBody() {
	c.body, c.object = nil, nil
	c.source.Release()
}

// parseBody parses the body of a route that takes one.
func (c *exchange) parseBody() (err error) {
	switch c.route.body {
	case objectBody:
		c.object, err = c.source.Parse()
	case optionalBody:
		c.object, err = c.source.ParseOptional()
	}

	return err
}

// takeBody returns the body without its secrets, for an event to keep. The request's object, and
// what aliases it, must not be used afterwards.
func (c *exchange) takeBody() []byte {
	c.source.Take()
	return secrets.Strip(c.body, c.object)
}

// headKey returns a function that authenticates the key in the request's head, for a large
// body. One in Authorization may be a proxy's, and the body have another: it is not refused.
// authenticate checks whether the key may call this route later, with the whole request in
// hand.
func (a *API) headKey(c *exchange) func() (owner string, err error) {
	return func() (string, error) {
		var key wire.Secret
		if a.wantsKey() {
			key = wire.Secret(c.ctx.Request.Header.Peek("X-API-KEY"))
			if key == "" && c.route.body == otlpBody {
				key = c.authorization()
			}
			if key == "" {
				id, _ := a.identify(c, c.authorization())
				return id.KeyID, nil
			}
		}
		id, err := a.identify(c, key)

		return id.KeyID, err
	}
}

// identify returns the identity that a key belongs to, unless it has ended and the route does not
// take such keys.
func (a *API) identify(c *exchange, key wire.Secret) (wire.Identity, error) {
	id, err := a.c.Authenticator.Authenticate(c.context, key)
	if err == nil && id.Expired && !c.route.takesExpired {
		return wire.Identity{}, wire.ErrKeyExpired(id.Expires)
	}
	return id, err
}

// wantsKey reports whether callers must show a key. A sidecar with its own key need not ask
// for one.
func (a *API) wantsKey() bool { return !a.c.OwnKey || a.c.LocalKey }

// authenticate finds the caller's key in the header or the body, and checks that it may call this
// route.
func (a *API) authenticate(c *exchange) error {
	var key wire.Secret
	var err error
	if a.wantsKey() {
		key, err = c.key()
		if err != nil {
			return err
		}
	}
	c.id, err = a.identify(c, key)
	if err != nil {
		return err
	}

	return a.mayCall(c)
}

// mayCall checks that the caller's key may call the route.
func (a *API) mayCall(c *exchange) error {
	// The sidecar's own key may have the scope full. Its callers may be anybody, and must not
	// inherit that.
	if a.c.OwnKey && !c.route.isForApps() {
		return wire.Errorf(wire.CodeForbidden,
			"This sidecar uses its own key (--api-key), so it serves only track-*, groups and "+
				"template fetches. Call the server directly, with your own key.")
	}

	switch {
	case !c.id.Verified && !c.route.takesUnverified():
		return wire.Unavailable(5*time.Second,
			"This key is new here, and the server that could verify it cannot be reached. "+
				"Writes are accepted meanwhile; send this again when the server is back.")
	case c.id.Verified:
		return mayKey(c.id, c.route.scope)
	}

	return nil
}

// mayScore returns why a request may not come with its score: a 403 for a key without that right, a
// 422 for a score that does not fit.
func (a *API) mayScore(c *exchange, w wire.LogWrite) error {
	if w.Score == nil {
		return nil
	}
	if c.id.Verified {
		if err := mayKey(c.id, wire.ScopeScore); err != nil {
			return err
		}
	}
	return a.fits(c, wire.IntegerScore(w.ScoreName, int(*w.Score)))
}

// mayKey returns a 403 unless a verified key has one of some rights.
func mayKey(id wire.Identity, rights wire.Scope) error {
	if id.Allows(rights) {
		return nil
	}

	names := rights.Names()
	return wire.Errorf(wire.CodeForbidden,
		"This key's scope is %s; the request needs %s. Make a key with `promptspool keys create --scope %s`.",
		id.Scope, english.WordSeries(names, "or"), names[0])
}

// authorization returns the credentials of Authorization. Proxies set that header, too, so it
// never overrules another key, and Basic counts only where exporters send it.
func (c *exchange) authorization() wire.Secret {
	header := c.ctx.Request.Header.Peek("Authorization")
	scheme, rest, _ := strings.Cut(string(header), " ")
	rest = strings.TrimSpace(rest)
	switch strings.ToLower(scheme) {
	case "bearer":
		return wire.Secret(rest)
	case "basic":
		if c.route.body != otlpBody {
			return ""
		}

		// Public and secret key, as some exporters are configured: the second one counts.
		pair, err := base64.StdEncoding.DecodeString(rest)
		if _, key, ok := strings.Cut(string(pair), ":"); err == nil && ok {
			return wire.Secret(key)
		}
	}

	return ""
}

// key returns the X-API-KEY header or the body's api_key. If both are there they must agree. Only
// without them does Authorization count.
func (c *exchange) key() (wire.Secret, error) {
	header := string(c.ctx.Request.Header.Peek("X-API-KEY"))
	inBody := ""
	if raw, ok := c.object.Get("api_key"); ok {
		if raw[0] != '"' {
			return "", wire.Errorf(wire.CodeUnauthorized, "api_key must be a string: your key.")
		}
		inBody = jsonscan.Unquote(raw)
	}

	switch {
	case header == "" && inBody == "":
		if key := c.authorization(); key != "" {
			return key, nil
		}
		place := "or Authorization: Bearer, or as api_key in the body"
		if c.route.body == otlpBody {
			place = "(OTEL_EXPORTER_OTLP_HEADERS=X-API-KEY=...) or Authorization: Bearer"
		}
		return "", wire.Errorf(wire.CodeUnauthorized,
			"The key is missing. Send it as the header X-API-KEY %s. `promptspool keys create` makes one.", place)
	case header == "":
		return wire.Secret(inBody), nil
	case inBody != "" && subtle.ConstantTimeCompare([]byte(header), []byte(inBody)) != 1:
		return "", wire.Errorf(wire.CodeUnauthorized,
			"The header X-API-KEY and the body's api_key differ. Send one of them.")
	}

	return wire.Secret(header), nil
}

// guard rejects what a web page in a browser could send to this listener. These are requests that
// the browser marks as coming from another site, and Host names of a page's own that resolve to
// us (DNS rebinding). Programs send neither.
func guard(ctx *fasthttp.RequestCtx, hosts []string) error {
	h := &ctx.Request.Header

	host := hostOnly(string(h.Host()))
	if host != "" && !isLoopback(host) && !slices.Contains(hosts, host) {
		return wire.Errorf(wire.CodeForbidden,
			"The Host name %.100q is not allowed here. Call this sidecar as localhost, "+
				"or allow the name with --allow-host.", host)
	}

	if site := string(h.Peek("Sec-Fetch-Site")); site != "" && site != "same-origin" && site != "none" {
		return wire.Errorf(wire.CodeForbidden, "Cross-site requests from a browser are refused.")
	}

	// Old browsers send no Sec-Fetch-Site, but an Origin with what can change something.
	if origin := string(h.Peek("Origin")); origin != "" {
		u, err := url.Parse(origin)
		if err != nil || u.Host == "" || !strings.EqualFold(u.Host, string(h.Host())) {
			return wire.Errorf(wire.CodeForbidden, "Cross-site requests from a browser are refused.")
		}
	}

	return nil
}

// hostOnly returns an address in lower case, without its port and brackets.
func hostOnly(hostport string) string {
	return strings.ToLower(strings.TrimSuffix((&url.URL{Host: hostport}).Hostname(), "."))
}

func isLoopback(host string) bool {
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || net.ParseIP(host).IsLoopback()
}
