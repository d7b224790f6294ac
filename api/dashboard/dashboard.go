// Package dashboard serves what people see of a server in their browser: requests and
// scores, templates and their versions, statistics, sidecars, people, keys and the docs.
//
// Every page is rendered here, as a whole, from html/template, and works without scripts;
// the little script that there is makes it quicker. Nothing is loaded from other hosts.
//
// A page is answered in these steps: find out who is signed in (otherwise redirect to
// /sign-in), check that their role may do this, check that a form carries the session's
// token, then call the page's own handler, which uses the capabilities in Config on behalf
// of the person's account.
//
// Whatever was logged is data: it is escaped wherever it is shown, and the
// Content-Security-Policy allows no script, style or image but our own.
//
// # Files
//
//	dashboard.go, page.go, error.go, public_url.go   routes, and the frame of every page
//	session.go, sign.go, resume.go                   signing in; a form that outlives its session
//	overview.go, statistics.go, counted.go           numbers and charts
//	requests.go, request_row.go, column.go,
//	order.go, list_view.go, export.go                the list of requests
//	span.go, zone.go                                 times
//	filter.go, suggest.go, closest.go                its filter
//	record.go, conversation.go, failure.go,
//	record_text.go, replay.go, number.go, trace.go   one request, and the spans of its trace
//	text.go, mark.go                                 its texts: folded, laid out, marked
//	erase.go                                         deleting some
//	templates.go, template.go, compare.go,
//	backtest.go                                      templates and their versions
//	editor.go, draft.go, finding.go                  the form of a version
//	people.go, account.go, operations.go, docs.go    people, keys, sidecars, the docs
//	undo.go                                          taking back what was just done
//
// Charts, the comparison of texts, markup and the docs are packages of their own. What is left are
// pages: each is a method on the one type that knows sessions and layout, and all of them
// share the filter. Apart, they would only reach each other through it.
package dashboard

import (
	"context"
	"embed"
	"encoding/json"
	"io/fs"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"promptspool/api/wire"
)

// People signs people up and in. Package auth documents the errors.
type People interface {
	SignUp() wire.SignUp
	Join(ctx context.Context, a wire.Application, ip string) (wire.SignedIn, error)
	SignIn(ctx context.Context, email, password string, from wire.Browser) (wire.SignedIn, error)
	Session(ctx context.Context, token wire.Secret) (wire.SignedIn, error)
	SignOut(ctx context.Context, token wire.Secret) error
	MadeFor(ctx context.Context, session string) (wire.User, error)
	SetPassword(ctx context.Context, by wire.User, old, password string) (wire.SignedIn, error)
	Codes
	Members
}

// Codes redeems the one-time codes in the links of invites and password resets.
type Codes interface {
	Invitation(ctx context.Context, code wire.Secret, ip string) (wire.Invite, error)
	ResetOf(ctx context.Context, code wire.Secret, ip string) (wire.User, error)
	ResetPassword(ctx context.Context, code wire.Secret, password, ip string) (wire.SignedIn, error)
}

// Members lets owners manage the people of their account.
type Members interface {
	Members(ctx context.Context, by wire.User) ([]wire.User, error)
	Invite(ctx context.Context, by wire.User, role wire.Role) (wire.Secret, wire.Invite, error)
	Invites(ctx context.Context, by wire.User) ([]wire.Invite, error)
	Uninvite(ctx context.Context, by wire.User, id string) error
	SetRole(ctx context.Context, by wire.User, id string, role wire.Role) (wire.User, error)
	SetDisabled(ctx context.Context, by wire.User, id string, disabled bool) (wire.User, error)
	RevertRole(ctx context.Context, by wire.User, id string, is, was wire.Role) error
	RevertDisabled(ctx context.Context, by wire.User, id string, at time.Time) error
	MakeReset(ctx context.Context, by wire.User, id string) (wire.Secret, wire.User, error)
	Note(ctx context.Context, by wire.User, action, target, detail string) error
	AuditLog(ctx context.Context, by wire.User, before string, limit int) ([]wire.AuditEntry, error)
}

// Keys manages the API keys of all accounts. The dashboard shows people only those of
// their own account.
type Keys interface {
	CreateKey(ctx context.Context, account, name string, scope wire.Scope) (wire.Secret, wire.Key, error)
	Keys(ctx context.Context) ([]wire.Key, error)
	RevokeKey(ctx context.Context, id string) (wire.Key, error)
}

// Records reads what was logged, and deletes it.
type Records interface {
	Kept(ctx context.Context, id wire.Identity) (wire.Kept, error)
	Delete(ctx context.Context, id wire.Identity, d wire.Deletion) (wire.Deleted, error)
	Request(ctx context.Context, id wire.Identity, requestID string) (wire.Record, error)
	Trace(ctx context.Context, id wire.Identity, trace string) (wire.Trace, error)
	Search(ctx context.Context, id wire.Identity, s wire.Search) (wire.SearchPage, error)
	Analyze(ctx context.Context, id wire.Identity, q wire.StatisticsQuery) (wire.Analytics, error)
	Export(ctx context.Context, id wire.Identity, e wire.ExportQuery, fn func(wire.Exported) error) error
	ExportEvents(
		ctx context.Context, id wire.Identity, s wire.Search,
		fn func([]wire.Event) error, mark func(cursor string) error,
	) error
	Suggest(ctx context.Context, id wire.Identity, s wire.SuggestQuery) (wire.Suggestions, error)
	TemplateStatistics(
		ctx context.Context, id wire.Identity, q wire.StatisticsQuery,
	) (wire.TemplateStatistics, error)
}

// Recorder writes events. Package api documents the results.
type Recorder interface {
	Record(ctx context.Context, id wire.Identity, events []wire.Event) ([]wire.Result, error)
}

// Config is what a Dashboard is made from. All fields are required, except Now
// and those about the address.
type Config struct {
	People    People
	Keys      Keys
	Records   Records
	Recorder  Recorder
	Templates Templates
	Providers []string // the providers that llm_kwargs can be made for
	Sidecars  Sidecars
	Retention Retention
	Version   string
	Logger    *slog.Logger
	Now       func() time.Time // time.Now if nil

	// PublicURL is where people open the dashboard, without a slash at its end; nil is wherever
	// they call it. CookiesInsecure lets sessions travel over plain HTTP. See public_url.go.
	PublicURL       *url.URL
	CookiesInsecure bool
}

// Dashboard is an http.Handler. It is safe for concurrent use.
type Dashboard struct {
	Config
	mux     *http.ServeMux
	routes  []Route
	guarded http.Handler // mux, behind the protection against other sites' calls
	pages   pages
	reviews map[string]review // by the patterns of their routes
	links   *strings.Replacer // puts the base path in front of a page's addresses
	cookie  http.Cookie       // of a session, without its value
	read    func(request json.RawMessage) Conversation
}

//go:embed html static
var files embed.FS

// New returns a Dashboard. It panics if one of its pages does not parse.
func New(c Config) *Dashboard {
	if c.Now == nil {
		c.Now = time.Now
	}

	d := newDashboard(c, parsePages())
	d.pageRoutes()
	d.protect()

	return d
}

// newDashboard returns a Dashboard with only the routes that need no capability.
func newDashboard(c Config, pages pages) *Dashboard {
	d := &Dashboard{
		Config:  c,
		mux:     http.NewServeMux(),
		pages:   pages,
		reviews: map[string]review{},
		links:   newLinks(c.basePath()),
		cookie:  c.newCookie(),
		read:    readConversation,
	}

	static, err := fs.Sub(files, "static")
	if err != nil {
		panic("dashboard: " + err.Error())
	}

	// What is not registered gets our error page, and not the plain text of net/http.
	d.mux.HandleFunc("/", d.notFound)
	d.mux.HandleFunc("GET /static/{name}", d.staticFile(static))
	d.mux.HandleFunc("GET /favicon.ico", func(w http.ResponseWriter, r *http.Request) {
		http.ServeFileFS(w, r, static, "icon.svg") // browsers ask for it on what is no page, such as JSON
	})
	d.docRoutes()

	return d
}

// pageRoutes registers the pages of a server.
func (d *Dashboard) pageRoutes() {
	d.signRoutes()
	d.zoneRoutes()
	d.undoRoutes()
	d.overviewRoutes()
	d.requestRoutes()
	d.recordRoutes()
	d.traceRoutes()
	d.eraseRoutes()
	d.templateRoutes()
	d.operationRoutes()
	d.accountRoutes()
	d.peopleRoutes()
}

// Route is a method and a path that the dashboard serves.
type Route struct {
	Pattern string    // as http.ServeMux takes it
	Role    wire.Role // the least role that may call it; "" if nobody has to be signed in
}

// Routes lists what the dashboard serves, except its static files.
func Routes() []Route {
	// Nothing is called, so neither capabilities nor pages are needed.
	d := newDashboard(Config{}, nil)
	d.pageRoutes()

	return d.routes
}

// protect rejects calls made by other sites.
func (d *Dashboard) protect() {
	protection := http.NewCrossOriginProtection()

	// A proxy may call with another Host than the browser's, and old browsers send an Origin only.
	if d.PublicURL != nil {
		origin := d.PublicURL.Scheme + "://" + d.PublicURL.Host
		if err := protection.AddTrustedOrigin(origin); err != nil {
			panic("dashboard: " + err.Error())
		}
	}
	protection.SetDenyHandler(http.HandlerFunc(d.refuseCrossSite))
	d.guarded = protection.Handler(d.mux)
}

// Serves reports whether path is a page, for any method.
func (d *Dashboard) Serves(path string) bool { return len(d.methods(path)) > 0 }

// methods returns the methods that a path accepts.
func (d *Dashboard) methods(path string) (all []string) {
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		// The mux answers with the pattern "/" for everything that is not a page.
		r := http.Request{Method: method, URL: &url.URL{Path: path}}
		if _, pattern := d.mux.Handler(&r); pattern != "/" {
			all = append(all, method)
		}
	}

	return all
}

// ServeHTTP answers a call for a page.
func (d *Dashboard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// Both come before anything else, so that they hold for errors as well.
	setSecurityHeaders(w.Header())
	r.Body = http.MaxBytesReader(w, r.Body, formBytesMax)

	d.guarded.ServeHTTP(d.below(w), r)
}

// formBytesMax bounds a form. The longest one is a template's.
const formBytesMax = 4 << 20

// setSecurityHeaders sets the headers that every page has. HSTS is left to whatever
// terminates TLS.
func setSecurityHeaders(h http.Header) {
	// Nothing comes from elsewhere, and nothing that stands in a page itself is run.
	policy := []string{
		"default-src 'none'",
		"script-src 'self'",
		"style-src 'self'",
		"img-src 'self' data:",
		"connect-src 'self'",
		"form-action 'self'",
		"base-uri 'none'",
		"frame-ancestors 'none'",
	}

	h.Set("Content-Security-Policy", strings.Join(policy, "; "))
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}

// staticFile serves our own files. Browsers may keep them for an hour; their addresses
// carry the version, so a new version is never served old files.
func (d *Dashboard) staticFile(files fs.FS) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		// ServeFileFS would list a folder.
		name := r.PathValue("name")
		if info, err := fs.Stat(files, name); err != nil || info.IsDir() {
			d.notFound(w, r)
			return
		}

		w.Header().Set("Cache-Control", "public, max-age=3600")
		http.ServeFileFS(w, r, files, name)
	}
}
