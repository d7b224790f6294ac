package api

import (
	"bytes"
	"net/url"
	"strings"

	"promptspool/api/wire"
)

// route is one line of the table: what a request must bring, and its handler.
type route struct {
	method string
	path   string // exact; or, if it ends in "/", what comes before an identifier
	suffix string // after the identifier
	name   string // the metrics' label
	needs  capability
	body   bodyKind
	scope  wire.Scope // a key must have one of these rights; from package access

	bodyMax int64 // bytes of the body; 0 means Config.BodyBytesMax

	// takesExpired means that a key which has ended may call it, for wire.KeyGrace: to deliver what
	// was accepted before.
	takesExpired bool

	// strict is the one difference between the spellings of track-request: request_response must
	// be an object.
	strict bool

	// unservedSuffix is the end of a route that the peer's schema has after the identifier, and
	// that is answered 404. Older clients send the slashes of a name unescaped, so only the schema
	// distinguishes such a route from a name. With %2F it is a name.
	unservedSuffix string

	handling
}

// isForApps reports whether the route writes or fetches a template, as an app does.
func (r *route) isForApps() bool {
	return (r.needs == recorder || r.needs == templates) && r.scope&wire.ScopeApp != 0 && r.body != batchBody
}

// takesUnverified reports whether the route takes a key that a sidecar could not ask its server
// about. The server judges the key with the events.
func (r *route) takesUnverified() bool { return r.needs == recorder && r.isForApps() }

// isReadOnly reports whether the work is of no use once the caller has left. Calls that
// keep, change or delete something continue.
func (r *route) isReadOnly() bool {
	switch r.needs {
	case readRecords, changes, fleet:
		return true
	case scoring, views, targets, alerts:
		return r.method == "GET" || r.name == "test-alert"
	default:
		return r.needs == templates && (r.method == "GET" || r.name == "fetch-template" || r.name == "mcp")
	}
}

// hasIdent reports whether the path has an identifier.
func (r *route) hasIdent() bool { return len(r.path) > 1 && r.path[len(r.path)-1] == '/' }

// match reports whether the route has this path, and returns the identifier in it, as it was
// sent.
func (r *route) match(path []byte) (ident []byte, ok bool) {
	// A slash at the end belongs to a name, or is a slip. An empty name is neither.
	endsInName := r.hasIdent() && r.suffix == ""
	if !endsInName && len(path) > 1 && r.name != "list-templates" {
		path = bytes.TrimRight(path, "/")
	}
	if len(path) < len(r.path) || string(path[:len(r.path)]) != r.path {
		return nil, false
	}

	ident = path[len(r.path):]
	if r.suffix != "" {
		ident, ok = bytes.CutSuffix(ident, []byte(r.suffix))
		if !ok {
			return nil, false
		}
	}

	return ident, r.hasIdent() == (len(ident) > 0)
}

// capability is what a route needs to be answered.
type capability int

const (
	nothing capability = iota
	recorder
	readRecords
	changeRecords
	templates
	changes
	fleet
	scoring
	views
	targets
	alerts
)

// capability returns what a route needs, nil if this process was not given it.
func (a *API) capability(needs capability) any {
	c := &a.c
	return [...]any{
		nothing:       a,
		recorder:      c.Recorder,
		readRecords:   a.recorded,
		changeRecords: a.recorded,
		templates:     c.Templates,
		changes:       c.Changes,
		fleet:         c.Fleet,
		scoring:       c.Scoring,
		views:         c.Views,
		targets:       c.Targets,
		alerts:        c.Alerts,
	}[needs]
}

// missingCapability returns the 501 of a route whose capability this process was not given, or
// nil.
func (a *API) missingCapability(r *route) error {
	if a.capability(r.needs) != nil {
		return nil
	}

	where := "a sidecar or a server"
	if r.needs == changes || r.needs == targets {
		where = "the server, which a sidecar is given by --upstream"
	}

	return wire.Errorf(wire.CodeNotImplemented, "%s is not served here. Call %s.", r.path, where)
}

// bodyKind says how a route reads its body.
type bodyKind int

const (
	noBody       bodyKind = iota // drained unread
	objectBody                   // one JSON object, which may have api_key
	optionalBody                 // the same, or absent, empty or null
	otlpBody                     // an OTLP request in protobuf or JSON
	batchBody                    // newline-delimited events, bounded by wire.BatchBodyBytesMax
)

// findRoute returns the route for a method and a path as it was sent, and the identifier in the
// path. Its errors are 404 and 405; with 405 it returns the methods that are allowed.
//
// The identifier may have several segments: old clients send a name with its slashes, newer ones
// with %2F. It is decoded once.
func findRoute(method, path []byte) (r *route, ident, allow string, err error) {
	asked := method
	// A GET without its body, which the HTTP server leaves out.
	if string(method) == "HEAD" {
		method = []byte("GET")
	}

	// Base URLs are often configured with a slash at their end.
	for len(path) > 1 && path[1] == '/' {
		path = path[1:]
	}

	// Exporters are given bases of other services, and whole paths with a slash at the end.
	for _, base := range []string{"", "/otlp", "/otel", "/api/public/otel"} {
		if rest, ok := bytes.CutPrefix(path, []byte(base)); ok && bytes.HasPrefix(rest, []byte("/v1/")) {
			path = rest
		}
	}

	var allowed []string
	for i := range routes {
		r := &routes[i]
		rest, ok := r.match(path)
		if !ok {
			continue
		}
		// Only an exporter means this one, so it is not there for other methods.
		if r.path == "/" && r.method != string(method) {
			continue
		}
		// Another route may have the same path with this method.
		if r.method != string(method) {
			allowed = append(allowed, r.method)
			continue
		}

		if r.unservedSuffix != "" && bytes.HasSuffix(rest, []byte(r.unservedSuffix)) {
			return nil, "", "", wire.Errorf(wire.CodeNotFound,
				"%s below a template is not served here. "+
					"If that is the end of the template's name, send its slashes as %%2F.", r.unservedSuffix)
		}
		ident, err := url.PathUnescape(string(rest))
		if err != nil {
			return nil, "", "", wire.Errorf(wire.CodeNotFound,
				"The path's last part is not valid percent-encoding.")
		}

		return r, ident, "", nil
	}

	if allowed != nil {
		allow = strings.Join(allowed, ", ")
		return nil, "", allow, wire.Errorf(wire.CodeMethod, "This path takes %s, not %.20s.", allow, asked)
	}

	return nil, "", "", wire.Errorf(wire.CodeNotFound,
		"There is no route %.200s. Check the base URL: "+
			"it must end before /rest, /prompt-templates and the like. "+
			"OpenTelemetry exporters send to /v1/traces, /v1/logs and /v1/metrics below it. "+
			"Calls to models are not relayed: leave the base URL of a model's client as its provider has it.", path)
}
