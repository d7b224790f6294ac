package api

import (
	"bytes"
	"net/url"
	"strings"

	"promptspool/api/wire"
)

// route is one line of the table: what a call must bring, and who handles it.
type route struct {
	method string
	path   string // exact, or, ending in "/", a prefix whose rest is an identifier
	suffix string // behind the identifier
	name   string // the metrics' label
	needs  capability
	body   bodyKind
	scope  wire.Scope
	// unverified lets a key pass that a sidecar could not ask its server about.
	unverified bool
	// strict is the one difference between the spellings of track-request: request_response must be an object.
	strict bool
	// unserved ends a route that the peer's schema has below the identifier and that is answered 404. Older clients send the slashes of
	// a name as they are, so that only the schema tells such a route from a name; with %2F it is one.
	unserved string
	handle   func(*API, *call) error
}

// isForApps says whether this is a write or the fetching of a template: what an app does with any key.
func (r *route) isForApps() bool {
	return (r.needs == recorder || r.needs == templates) && r.scope == wire.ScopeApp && r.body != batchBody
}

// onlyAsks reports whether the work is for nobody once the caller has left. What is to be kept, changed or deleted goes on.
func (r *route) onlyAsks() bool {
	switch r.needs {
	case querier, analyst, changes, fleet, exporter:
		return true
	default:
		return r.needs == templates && (r.method == "GET" || r.name == "fetch-template")
	}
}

// capability is what a route needs behind it.
type capability int

const (
	nothing capability = iota
	recorder
	querier
	analyst
	keeper
	templates
	changes
	fleet
	exporter
)

// missing is the 501 of a route whose capability this process was not given.
func (a *API) missing(r *route) error {
	c, where := &a.c, "a sidecar or a server"
	switch {
	case r.needs == recorder && c.Recorder == nil:
	case r.needs == querier && c.Querier == nil:
	case r.needs == analyst && c.Analyst == nil:
	case r.needs == keeper && c.Keeper == nil:
	case r.needs == templates && c.Templates == nil:
	case r.needs == exporter && c.Exporter == nil && c.ExportRelay == nil:
	case r.needs == fleet && c.Fleet == nil:
	case r.needs == changes && c.Changes == nil:
		where = "the server, which a sidecar is given by --upstream"
	default:
		return nil
	}
	return wire.Errorf(wire.CodeNotImplemented, "%s is not served here. Call %s.", r.path, where)
}

// bodyKind says how a route reads its body.
type bodyKind int

const (
	noBody       bodyKind = iota // drained unread
	objectBody                   // one JSON object, which may carry api_key
	optionalBody                 // the same, or absent, empty or null
	batchBody                    // newline-delimited events, bounded by wire.BatchBodyBytesMax
)

// routes is the whole API. The first that fits wins; what apps call most stands first.
var routes = spell([]route{
	{path: "/prompt-templates/", name: "fetch-template", needs: templates, body: optionalBody, scope: wire.ScopeApp, handle: (*API).fetchTemplate},

	{path: "/rest/track-request", name: "track-request", needs: recorder, body: objectBody, scope: wire.ScopeApp, unverified: true, strict: true, handle: (*API).trackRequest},
	{path: "/track-request", name: "track-request", needs: recorder, body: objectBody, scope: wire.ScopeApp, unverified: true, handle: (*API).trackRequest},
	{path: "/rest/track-score /library-track-score", name: "track-score", needs: recorder, body: objectBody, scope: wire.ScopeApp, unverified: true, handle: (*API).trackScore},
	{path: "/rest/track-metadata /library-track-metadata", name: "track-metadata", needs: recorder, body: objectBody, scope: wire.ScopeApp, unverified: true, handle: (*API).trackMetadata},
	{path: "/rest/track-prompt /library-track-prompt", name: "track-prompt", needs: recorder, body: objectBody, scope: wire.ScopeApp, unverified: true, handle: (*API).trackPrompt},
	{path: "/rest/create-group /create-group", name: "create-group", needs: recorder, body: objectBody, scope: wire.ScopeApp, unverified: true, handle: (*API).createGroup},
	{path: "/rest/track-group /track-group", name: "track-group", needs: recorder, body: objectBody, scope: wire.ScopeApp, unverified: true, handle: (*API).trackGroup},

	{path: "/log-request", name: "log-request", needs: recorder, body: objectBody, scope: wire.ScopeApp, unverified: true, handle: (*API).logRequest},

	{method: "GET", path: "/prompt-templates/", suffix: "/labels", name: "template-labels", needs: templates, scope: wire.ScopeFull, handle: (*API).templateLabels},
	{path: "/prompts/", suffix: "/label", name: "create-label", needs: templates, body: objectBody, scope: wire.ScopeFull, handle: (*API).createLabel},
	{method: "PATCH", path: "/prompt-labels/", name: "move-label", needs: templates, body: objectBody, scope: wire.ScopeFull, handle: (*API).moveLabel},
	{method: "DELETE", path: "/prompt-labels/", name: "delete-label", needs: templates, scope: wire.ScopeFull, handle: (*API).deleteLabel},
	{path: "/rest/prompt-templates/", suffix: "/restore", name: "restore-template", needs: templates, body: optionalBody, scope: wire.ScopeFull, handle: (*API).restoreTemplate},
	{method: "PATCH", path: "/rest/prompt-templates/", name: "patch-template", needs: templates, body: objectBody, scope: wire.ScopeFull, handle: (*API).patchTemplate},
	{method: "DELETE", path: "/rest/prompt-templates/", name: "archive-template", needs: templates, scope: wire.ScopeFull, handle: (*API).archiveTemplate},
	{path: "/library-publish-prompt-template /rest/publish-prompt-template", name: "publish-template", needs: templates, body: objectBody, scope: wire.ScopeFull, handle: (*API).publishTemplateOld},
	{method: "GET", path: "/prompt-templates/", unserved: "/snippet-usage", name: "raw-template", needs: templates, scope: wire.ScopeApp, handle: (*API).rawTemplate},
	{method: "GET", path: "/library-get-prompt-template /rest/get-prompt-template", name: "get-template", needs: templates, scope: wire.ScopeApp, handle: (*API).getTemplate},
	{method: "GET", path: "/prompt-templates /rest/prompts", name: "list-templates", needs: templates, scope: wire.ScopeFull, handle: (*API).listTemplates},
	{path: "/rest/prompt-templates", name: "publish-template", needs: templates, body: objectBody, scope: wire.ScopeFull, handle: (*API).publishTemplate},

	{path: "/api/public/v2/requests/export", name: "export-requests", needs: exporter, body: optionalBody, scope: wire.ScopeFull, handle: (*API).exportRequests},
	{path: "/api/public/v2/requests/search", name: "search-requests", needs: querier, body: optionalBody, scope: wire.ScopeFull, handle: (*API).searchRequests},
	{path: "/api/public/v2/requests/analytics", name: "analyze-requests", needs: analyst, body: optionalBody, scope: wire.ScopeFull, handle: (*API).analyzeRequests},
	{path: "/api/public/v2/requests/template-statistics", name: "template-statistics", needs: analyst, body: optionalBody, scope: wire.ScopeFull, handle: (*API).templateStatistics},
	{path: "/api/public/v2/requests/reprice", name: "reprice-requests", needs: keeper, body: optionalBody, scope: wire.ScopeFull, handle: (*API).repriceRequests},
	{path: "/api/public/v2/requests/scan", name: "scan-requests", needs: keeper, body: optionalBody, scope: wire.ScopeFull, handle: (*API).scanRequests},
	{method: "DELETE", path: "/api/public/v2/requests", name: "delete-requests", needs: keeper, scope: wire.ScopeFull, handle: (*API).deleteRequests},
	{method: "DELETE", path: "/api/public/v2/requests/", name: "delete-request", needs: keeper, scope: wire.ScopeFull, handle: (*API).deleteRequest},
	{path: "/rest/backtest", name: "backtest", needs: querier, body: objectBody, scope: wire.ScopeFull, handle: (*API).backtest},
	{method: "GET", path: "/api/public/v2/requests/suggestions", name: "suggest-values", needs: analyst, scope: wire.ScopeFull, handle: (*API).suggestValues},
	{method: "GET", path: "/api/public/v2/requests/orphans", name: "list-orphans", needs: querier, scope: wire.ScopeFull, handle: (*API).listOrphans},
	{method: "GET", path: "/api/public/v2/requests/", name: "get-request", needs: querier, scope: wire.ScopeFull, handle: (*API).getRequest},

	{path: "/sync/events", name: "sync-events", needs: recorder, body: batchBody, scope: wire.ScopeApp, handle: (*API).syncEvents},
	{method: "GET", path: "/sync/key", name: "sync-key", scope: wire.ScopeApp, handle: (*API).syncKey},
	{path: "/sync/heartbeat", name: "sync-heartbeat", needs: fleet, body: objectBody, scope: wire.ScopeApp, handle: (*API).heartbeat},
	{method: "GET", path: "/sync/fleet", name: "sync-fleet", needs: fleet, scope: wire.ScopeApp, handle: (*API).listFleet},
	{method: "GET", path: "/sync/changes", name: "sync-changes", needs: changes, scope: wire.ScopeApp, handle: (*API).syncChanges},
})

// spell makes one route of each spelling of a path. Without a method it is POST.
func spell(table []route) []route {
	var all []route
	for _, r := range table {
		if r.method == "" {
			r.method = "POST"
		}
		for path := range strings.FieldsSeq(r.path) {
			r.path = path
			all = append(all, r)
		}
	}
	return all
}

// Routes lists what the API serves, in the order in which a call looks for its route: each a method and a path, in which {} is
// an identifier.
func Routes() (all []string) {
	for i := range routes {
		r := &routes[i]
		path := r.path
		if strings.HasSuffix(path, "/") {
			path += "{}" + r.suffix
		}
		all = append(all, r.method+" "+path)
	}

	return all
}

// find returns the route for a method and a raw path, and the identifier that stands in the path: all segments of the rest,
// decoded once, for old clients send a name with slashes as it is, newer ones as %2F. Its errors are 404 and 405; with
// 405 comes the list of what is allowed.
func find(method, path []byte) (r *route, ident, allow string, err error) {
	for len(path) > 1 && path[1] == '/' { // base URLs are often given with a slash at their end
		path = path[1:]
	}
	var allowed []string
	for i := range routes {
		r := &routes[i]
		if len(path) < len(r.path) || string(path[:len(r.path)]) != r.path {
			continue
		}
		rest := path[len(r.path):]
		if r.suffix != "" {
			ended := false
			if rest, ended = bytes.CutSuffix(rest, []byte(r.suffix)); !ended {
				continue
			}
		}
		prefix := r.path[len(r.path)-1] == '/'
		if prefix == (len(rest) == 0) {
			continue
		}
		if r.method != string(method) {
			allowed = append(allowed, r.method)
			continue
		}
		if r.unserved != "" && bytes.HasSuffix(rest, []byte(r.unserved)) {
			return nil, "", "", wire.Errorf(wire.CodeNotFound, "%s below a template is not served here. If that is the end of the template's name, send its slashes as %%2F.", r.unserved)
		}
		if prefix {
			if ident, err = url.PathUnescape(string(rest)); err != nil {
				return nil, "", "", wire.Errorf(wire.CodeNotFound, "The path's last part is not valid percent-encoding.")
			}
		}
		return r, ident, "", nil
	}
	if allowed != nil {
		allow = strings.Join(allowed, ", ")
		return nil, "", allow, wire.Errorf(wire.CodeMethod, "This path takes %s, not %.20s.", allow, method)
	}
	return nil, "", "", wire.Errorf(wire.CodeNotFound, "There is no route %.200s. Check the base URL: it must end before /rest, /prompt-templates and the like.", path)
}
