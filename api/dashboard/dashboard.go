// Package dashboard is what people see of a server in their browser: sign up, get keys, look through requests, set scores, edit
// templates, compare versions. Every page is made here, whole, from html/template, and works without a script; what little script there is
// makes it quicker. Nothing is loaded from elsewhere.
//
// A page is answered in these steps: who is signed in (else to /sign-in), may their role do this, does a form carry the
// session's token, then the page's own handler, which asks the capabilities in Config in the name of the person's account.
// Whatever was logged is data: it is escaped wherever it is shown, and the Content-Security-Policy allows no
// script, style or image but our own.
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

// People are those who sign in. See package auth, which says what the errors are.
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

// Codes are what links carry that let somebody in.
type Codes interface {
	Invitation(ctx context.Context, code wire.Secret, ip string) (wire.Invite, error)
	ResetOf(ctx context.Context, code wire.Secret, ip string) (wire.User, error)
	ResetPassword(ctx context.Context, code wire.Secret, password, ip string) (wire.SignedIn, error)
}

// Members is how owners manage an account.
type Members interface {
	Members(ctx context.Context, by wire.User) ([]wire.User, error)
	Invite(ctx context.Context, by wire.User, role wire.Role) (wire.Secret, wire.Invite, error)
	Invites(ctx context.Context, by wire.User) ([]wire.Invite, error)
	Uninvite(ctx context.Context, by wire.User, id string) error
	SetRole(ctx context.Context, by wire.User, id string, role wire.Role) (wire.User, error)
	SetDisabled(ctx context.Context, by wire.User, id string, disabled bool) (wire.User, error)
	MakeReset(ctx context.Context, by wire.User, id string) (wire.Secret, wire.User, error)
	Note(ctx context.Context, by wire.User, action, target, detail string) error
	AuditLog(ctx context.Context, by wire.User, before string, limit int) ([]wire.AuditEntry, error)
}

// Keys are the keys of programs, of all accounts: the dashboard shows a person those of their own.
type Keys interface {
	CreateKey(ctx context.Context, account, name string, scope wire.Scope) (wire.Secret, wire.Key, error)
	Keys(ctx context.Context) ([]wire.Key, error)
	RevokeKey(ctx context.Context, id string) (wire.Key, error)
}

// Records are what was logged.
type Records interface {
	Request(ctx context.Context, id wire.Identity, requestID string) (wire.Record, error)
	Search(ctx context.Context, id wire.Identity, s wire.Search) (wire.SearchPage, error)
	Analyze(ctx context.Context, id wire.Identity, q wire.StatisticsQuery) (wire.Analytics, error)
	Export(ctx context.Context, id wire.Identity, e wire.ExportQuery, fn func(wire.Exported) error) error
	ExportEvents(ctx context.Context, id wire.Identity, s wire.Search, fn func([]wire.Event) error, mark func(cursor string) error) error
	Suggest(ctx context.Context, id wire.Identity, s wire.SuggestQuery) (wire.Suggestions, error)
	TemplateStatistics(ctx context.Context, id wire.Identity, q wire.StatisticsQuery) (wire.TemplateStatistics, error)
}

// Recorder takes events. See package api, which says what its results are.
type Recorder interface {
	Record(ctx context.Context, id wire.Identity, events []wire.Event) ([]wire.Result, error)
}

// Config is what a Dashboard is made of. All fields are needed but Now.
type Config struct {
	People    People
	Keys      Keys
	Records   Records
	Recorder  Recorder
	Templates Templates
	Providers []string // that llm_kwargs can be made for
	Sidecars  Sidecars
	Storage   Storage
	Retention Retention
	Read      func(request json.RawMessage) Conversation // of a record's request; whatever it holds
	Version   string
	Logger    *slog.Logger
	Now       func() time.Time // nil: time.Now
}

// Dashboard is an http.Handler. Safe for concurrent use.
type Dashboard struct {
	Config
	mux     *http.ServeMux
	guarded http.Handler // mux, for calls that no other site made
	pages   pages
	reviews map[string]review // by the patterns of their routes
}

//go:embed html static
var files embed.FS

// New makes a Dashboard. It panics if a page of ours cannot be parsed, which a test would have found.
func New(c Config) *Dashboard {
	if c.Now == nil {
		c.Now = time.Now
	}
	d := newDashboard(c, parsePages())
	d.signRoutes()
	d.overviewRoutes()
	d.requestRoutes()
	d.recordRoutes()
	d.templateRoutes()
	d.operationRoutes()
	d.accountRoutes()
	d.peopleRoutes()
	d.protect()
	return d
}

// newDashboard makes a Dashboard with the routes that need no capability.
func newDashboard(c Config, pages pages) *Dashboard {
	d := &Dashboard{Config: c, mux: http.NewServeMux(), pages: pages, reviews: map[string]review{}}
	static, err := fs.Sub(files, "static")
	if err != nil {
		panic("dashboard: " + err.Error())
	}
	d.mux.HandleFunc("/", d.nowhere)
	d.mux.HandleFunc("GET /static/{name}", d.staticFile(static))
	d.docRoutes()

	return d
}

// protect refuses calls that other sites make.
func (d *Dashboard) protect() {
	protection := http.NewCrossOriginProtection()
	protection.SetDenyHandler(http.HandlerFunc(d.foreign))
	d.guarded = protection.Handler(d.mux)
}

// Serves reports whether path is a page, whatever the method.
func (d *Dashboard) Serves(path string) bool { return len(d.methods(path)) > 0 }

// methods are those that a path takes.
func (d *Dashboard) methods(path string) (all []string) {
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		r := http.Request{Method: method, URL: &url.URL{Path: path}}
		if _, pattern := d.mux.Handler(&r); pattern != "/" {
			all = append(all, method)
		}
	}
	return all
}

// ServeHTTP answers a call for a page.
func (d *Dashboard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	secure(w.Header())
	r.Body = http.MaxBytesReader(w, r.Body, formBytesMax)
	d.guarded.ServeHTTP(w, r)
}

// formBytesMax bounds a form: the longest is a template's.
const formBytesMax = 4 << 20

// secure sets the headers that every page has. HSTS is the business of who ends TLS.
func secure(h http.Header) {
	h.Set("Content-Security-Policy", strings.Join([]string{
		"default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src 'self' data:", "connect-src 'self'",
		"form-action 'self'", "base-uri 'none'", "frame-ancestors 'none'",
	}, "; "))
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}

// staticFile serves our own files. A browser may keep them for an hour; the version is in their address.
func (d *Dashboard) staticFile(files fs.FS) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		name := r.PathValue("name")
		if info, err := fs.Stat(files, name); err != nil || info.IsDir() {
			d.nowhere(w, r)
			return
		}
		w.Header().Set("Cache-Control", "public, max-age=3600")
		http.ServeFileFS(w, r, files, name)
	}
}
