// Package access is the table of who may do what: the routes of the API, the pages and
// forms of the dashboard and the commands, each with the rights that a key needs for it
// and the role that a person needs. A button on a page has the entry of the form that it
// sends.
package access

import (
	"strings"

	"promptspool/api/wire"
)

// Entry is something that a caller may do.
type Entry struct {
	Does  string     // as the documentation names it
	Scope wire.Scope // a key must have one of these rights; 0 means that no key may
	Role  wire.Role  // the least role of a person; "" needs none, where there are pages

	Routes   string // names of routes of the API, with spaces between them
	Pages    string // patterns of pages and forms, with commas between them
	Commands string // with commas between them

	// Operator means that the commands act on the machine itself, for those who may read the data
	// folder there.
	Operator bool
}

// Table is who may do what. Nothing else is served.
var Table = []Entry{
	{
		Does: "Log calls, with metadata, groups and template links", Scope: wire.ScopeLog,
		Routes: "track-request track-metadata track-prompt create-group track-group log-request " +
			"spans-bulk close-trace otlp-traces otlp-logs otlp-metrics",
		Commands: "requests import",
	},
	{
		Does: "Score calls", Scope: wire.ScopeScore, Role: wire.RoleReviewer,
		Routes: "track-score",
		Pages: "POST /requests/{id}/score, POST /traces/{id}/score, POST /sessions/{id}/score, " +
			"GET /review, POST /review, GET /review/{name}",
	},
	{
		Does: "Fetch templates", Scope: fetches, Role: wire.RoleViewer,
		Routes:   "fetch-template raw-template get-template",
		Pages:    "GET /template, GET /template/compare",
		Commands: "templates show, templates render",
	},
	{
		Does: "List templates and labels", Scope: wire.ScopeRead | wire.ScopePublish, Role: wire.RoleViewer,
		Routes:   "list-templates template-labels",
		Pages:    "GET /templates",
		Commands: "templates list, templates pull, templates diff",
	},
	{
		Does: "Publish templates and move labels", Scope: wire.ScopePublish, Role: wire.RoleEditor,
		Routes: "publish-template patch-template archive-template restore-template " +
			"create-label move-label delete-label",
		Pages: "GET /template/edit, POST /template/edit, POST /template/preview, POST /template/label, " +
			"POST /template/label/delete, POST /template/archive, POST /template/restore",
		Commands: "templates push, templates label, templates archive, templates restore",
	},
	{
		Does: "Define scores and make review queues", Scope: wire.ScopePublish, Role: wire.RoleEditor,
		Routes:   "define-score undefine-score",
		Pages:    "POST /scores, POST /scores/{id}/remove, POST /queues, POST /queues/{id}/remove",
		Commands: "scores define, scores remove",
	},
	{
		Does: "Save views for the project", Scope: wire.ScopePublish, Role: wire.RoleEditor,
		Routes: "put-view delete-view",
		Pages:  "POST /project-views, POST /project-views/{id}/remove",
	},
	{
		Does: "List alerts", Scope: wire.ScopeRead | wire.ScopePublish, Role: wire.RoleViewer,
		Routes:   "list-alerts",
		Pages:    "GET /alerts",
		Commands: "alerts list, alerts pull",
	},
	{
		Does: "Make, change and remove alerts", Scope: wire.ScopePublish, Role: wire.RoleEditor,
		Routes:   "put-alert remove-alert",
		Pages:    "POST /alerts, POST /alerts/{id}/remove",
		Commands: "alerts push",
	},
	{
		Does: "Search, read, count and export calls", Scope: wire.ScopeRead, Role: wire.RoleViewer,
		Routes: "search-requests get-request get-trace search-spans search-sessions get-session " +
			"export-requests suggest-values list-orphans analyze-requests statistics " +
			"backtest list-score-definitions list-views test-alert",
		Pages: "GET /{$}, GET /find, GET /find/offers, GET /projects, " +
			"GET /requests, POST /requests/view, GET /suggestions, GET /requests/export, " +
			"GET /requests/{id}, GET /requests/{id}/raw, GET /requests/{id}/text, GET /traces/{id}, " +
			"GET /traces, GET /sessions, GET /sessions/{id}, GET /users, GET /scores, GET /scores/{id}, " +
			"GET /template/statistics, GET /template/backtest, GET /template/experiment",
		Commands: "requests search, requests get, requests tail, requests stats, requests export, " +
			"requests orphans, traces list, traces get, sessions list, sessions get, users list, " +
			"templates compare, alerts test, scores list, experiments run, experiments compare",
	},
	{
		Does: "Delete calls, and rewrite what is stored of them", Scope: wire.ScopeManage, Role: wire.RoleOwner,
		Routes: "delete-request delete-requests delete-session delete-trace " +
			"reprice-requests scan-requests",
		Pages:    "GET /requests/delete, POST /requests/delete",
		Commands: "requests delete, requests reprice, requests scan",
	},
	{
		Does: "Set up targets, and replay notices", Scope: wire.ScopeManage, Role: wire.RoleOwner,
		Routes: "list-targets put-target remove-target test-target list-deliveries replay-deliveries " +
			"discard-deliveries",
		Pages: "GET /targets, POST /targets, GET /targets/{id}, POST /targets/{id}/test, " +
			"POST /targets/{id}/remove, POST /targets/{id}/replay, POST /targets/{id}/discard",
	},
	{
		Does: "See sidecars", Scope: wire.ScopeFull, Role: wire.RoleViewer,
		Routes:   "sync-fleet",
		Pages:    "GET /sidecars",
		Commands: "status",
	},
	{
		Does:   "Forward what a sidecar has accepted, each event by the right that its kind needs",
		Scope:  wire.ScopeFull,
		Routes: "sync-events sync-key sync-heartbeat",
	},
	{
		Does: "Ask over MCP, each tool by the right of the route that it reads", Scope: wire.ScopeFull,
		Routes:   "mcp",
		Commands: "mcp",
	},
	{
		Does: "Hear which templates have changed", Scope: fetches,
		Routes: "sync-changes",
	},
	{
		Does: "Make another project", Role: wire.RoleOwner,
		Pages: "POST /projects",
	},
	{
		Does: "Manage people and invitations", Role: wire.RoleOwner,
		Pages: "GET /people, POST /invites, POST /invites/{id}/delete, POST /people/{id}/role, " +
			"POST /people/{id}/disabled, POST /people/{id}/reset",
	},
	{
		Does: "Make, rotate and revoke keys", Role: wire.RoleOwner,
		Pages: "GET /keys, POST /keys, POST /keys/{id}/rotate, POST /keys/{id}/revoke",
	},
	{
		Does: "Read and export the audit log", Role: wire.RoleOwner,
		Pages: "GET /audit, GET /audit/export",
	},
	{
		Does: "Change one's own password, time zone, views and session, and join and open projects",
		Role: wire.RoleViewer,
		Pages: "POST /join, POST /project, POST /sign-out, GET /password, POST /password, POST /zone, " +
			"GET /views, POST /views, POST /views/{id}/remove",
	},
	{
		Does: "Sign in and up, and read the documentation",
		Pages: "GET /sign-in, POST /sign-in, POST /sign-in/continue, GET /sign-in/oidc, " +
			"GET /sign-in/oidc/callback, GET /sign-up, POST /sign-up, GET /reset-password, POST /reset-password, " +
			"GET /docs, GET /docs/{page}, GET /llms.txt, GET /openapi.json",
		Commands: "completion, docs, version, login, contexts list, contexts use, contexts remove",
	},
	{
		Does: "Run promptspool, and manage keys, people and data on its machine", Operator: true,
		Commands: "up, server, sidecar, keys create, keys list, keys rotate, keys revoke, people list, " +
			"people invite, people reset-password, people disable, people enable, projects list, projects create, " +
			"projects rename, " +
			"projects archive, projects apply, spool status, spool check, " +
			"spool export, spool repair, spool drain, dead list, dead show, dead replay, dead export, dead purge, " +
			"archive copy, archive check, archive spread, backup, restore, config check, config print",
	},
}

// fetches are the rights with which templates are fetched: who may read or publish all of
// them may as well.
const fetches = wire.ScopeFetch | wire.ScopeRead | wire.ScopePublish

var (
	scopes = map[string]wire.Scope{} // by the names of routes
	roles  = map[string]wire.Role{}  // by the patterns of pages
)

func init() {
	for _, e := range Table {
		for name := range strings.FieldsSeq(e.Routes) {
			scopes[name] = e.Scope
		}
		for _, pattern := range List(e.Pages) {
			roles[pattern] = e.Role
		}
	}
}

// List returns the items of Entry.Pages or Entry.Commands.
func List(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, ", ")
}

// Scope returns the rights of which a key needs one to call a route, by the route's name.
// It panics if the table does not have the route.
func Scope(route string) wire.Scope { return entry(scopes, route) }

// Role returns the least role that may open a page or send a form, by its pattern. It is ""
// if no one needs to be signed in. It panics if the table does not have the page.
func Role(pattern string) wire.Role { return entry(roles, pattern) }

func entry[V any](all map[string]V, name string) V {
	v, ok := all[name]
	if !ok {
		panic("the table of package access has no " + name)
	}
	return v
}
