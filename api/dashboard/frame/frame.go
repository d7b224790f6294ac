// Package frame is what all pages of the dashboard have around them: routes, sessions, the layout,
// notices, the error page, and the address and the zone that a reader sees.
//
// A page is answered in these steps: find out who is signed in (otherwise redirect to
// /sign-in), check that their role may do this, check that a form carries the session's
// token, then call the page of the route, which uses its section's capabilities on behalf of the
// person's account.
//
// # Files
//
//	frame.go, page.go                      routes, sections and files; what is around every page, and its numbers
//	exchange.go, session.go, sign.go       one request for a page; who makes it, in which project; signing in
//	public_url.go                          where and when the reader is
//	keys.go, score.go                      keys; giving scores
//	layout.html                            what is around every page
//	components/, static/style.css          the parts of pages, each once in both
package frame

import (
	"embed"
	"fmt"
	"html/template"
	"io/fs"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"path"
	"strings"
	"sync"
	"time"

	"promptspool/api/access"
	"promptspool/api/wire"
)

// Config is what a Frame is made from. All fields are required, except Issuer, Now,
// those of `up` and those about the address. Without sign-in, there are no People and Keys.
type Config struct {
	People  People
	Keys    wire.Keys
	Issuer  Issuer
	Version string
	Logger  *slog.Logger
	Now     func() time.Time // time.Now if nil

	Scoring  wire.Reviews // nil: no score is defined
	Views    wire.Views
	Sidecars wire.Sidecars

	// Under `up`, a sidecar is in the same process, and the terminal has a key of the first project.
	SidecarURL string
	PrintedKey wire.Secret

	// PublicURL is where people open the dashboard, without a slash at its end; nil is wherever
	// they call it. CookiesInsecure lets sessions travel over plain HTTP. See public_url.go.
	PublicURL       *url.URL
	CookiesInsecure bool
}

// Frame is an http.Handler of the pages of some sections. It is safe for concurrent use.
type Frame struct {
	Config
	mux     *http.ServeMux
	guarded http.Handler                         // mux, with the protection against other sites' requests
	pages   map[string]func() *template.Template // by the names of their files, each with the layout around it
	links   *strings.Replacer                    // puts the base path in front of a page's addresses
	cookie  http.Cookie                          // of a session, without its value

	reviews map[string]Route // those of forms that outlive their session, by their patterns
	notices map[string]string
	inNeed  sync.Map // inNeed by account
}

//go:embed static error.html
var files embed.FS

//go:embed layout.html components first-calls
var shared embed.FS

// New returns a Frame of sections. It panics if one of their pages has the name of another.
//
// A page is parsed when it is shown first: all of them take more memory than the rest of a server that starts.
func New(c Config, sections ...Section) *Frame {
	if c.Now == nil {
		c.Now = time.Now
	}
	static, err := fs.Sub(files, "static")
	if err != nil {
		panic("dashboard: " + err.Error())
	}

	f := &Frame{
		Config:  c,
		mux:     http.NewServeMux(),
		pages:   map[string]func() *template.Template{},
		links:   newLinks(c.BasePath()),
		cookie:  c.newCookie(),
		reviews: map[string]Route{},
		notices: map[string]string{},
	}
	// An unknown path gets our error page, and not the plain text of net/http.
	f.mux.HandleFunc("/", f.notFound)
	f.mux.HandleFunc("GET /favicon.ico", func(w http.ResponseWriter, r *http.Request) {
		// Browsers ask for it even on JSON.
		http.ServeFileFS(w, r, static, "icon.svg")
	})
	f.add(Section{HTML: files, Files: map[string]fs.FS{"/static/": static}})
	for _, section := range sections {
		f.add(section)
	}
	f.protect()

	return f
}

// protect rejects requests made by other sites.
func (f *Frame) protect() {
	protection := http.NewCrossOriginProtection()

	// A proxy may call with another Host than the browser's, and old browsers send an Origin only.
	if f.PublicURL != nil {
		origin := f.PublicURL.Scheme + "://" + f.PublicURL.Host
		if err := protection.AddTrustedOrigin(origin); err != nil {
			panic("dashboard: " + err.Error())
		}
	}
	protection.SetDenyHandler(http.HandlerFunc(f.refuseCrossSite))
	f.guarded = protection.Handler(f.mux)
}

// Serves reports whether path is a page, for any method.
func (f *Frame) Serves(path string) bool { return len(f.methods(path)) > 0 }

// methods returns the methods that a path accepts.
func (f *Frame) methods(path string) (all []string) {
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		// The mux answers with the pattern "/" for everything that is not a page.
		r := http.Request{Method: method, URL: &url.URL{Path: path}}
		if _, pattern := f.mux.Handler(&r); pattern != "/" {
			all = append(all, method)
		}
	}

	return all
}

// ServeHTTP answers a request for a page.
func (f *Frame) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// Both come before anything else, so that they hold for errors as well.
	f.setSecurityHeaders(w.Header())
	r.Body = http.MaxBytesReader(w, r.Body, formBytesMax)

	f.guarded.ServeHTTP(f.below(w), r)
}

// formBytesMax bounds a form. The longest one is a template's.
const formBytesMax = 4 << 20

// setSecurityHeaders sets the headers that every page has. HSTS is left to whatever
// terminates TLS.
func (f *Frame) setSecurityHeaders(h http.Header) {
	// Signing out continues at the issuer.
	forms := "form-action 'self'"
	if f.Issuer != nil {
		at := f.Issuer.Address()
		forms += " " + at.Scheme + "://" + at.Host
	}

	// Nothing comes from elsewhere, and no script inside a page is run.
	policy := []string{
		"default-src 'none'",
		"script-src 'self'",
		"style-src 'self'",
		"img-src 'self' data:",
		"connect-src 'self'",
		forms,
		"base-uri 'none'",
		"frame-ancestors 'none'",
	}

	h.Set("Content-Security-Policy", strings.Join(policy, "; "))
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}

// serveFiles serves our own files. Browsers may keep them for an hour; the addresses of what changes
// carry the version, so a new version is never served old files.
func (f *Frame) serveFiles(files fs.FS) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		// ServeFileFS would list a folder.
		name := r.PathValue("name")
		if info, err := fs.Stat(files, name); err != nil || info.IsDir() {
			f.Refuse(w, r, ErrNoPage)
			return
		}

		w.Header().Set("Cache-Control", "public, max-age=3600")
		http.ServeFileFS(w, r, files, name)
	}
}

// Section is some of the dashboard's pages, with what they need.
type Section struct {
	Routes  []Route
	HTML    fs.FS             // has NAME.html for the page NAME of Call.Show
	Files   map[string]fs.FS  // what is served as it is, by the path of its folder
	Notices map[string]string // by the words of Call.Redirect
}

// Route is a method and a path that a section serves.
type Route struct {
	Pattern string // as http.ServeMux takes it; package access has the role that it needs
	Page    func(c *Exchange) error

	// Personal marks a form that acts in no project: it may come from a page of any of them.
	Personal bool

	// Review, if set, shows the route's form again to a person whose session had ended
	// when they sent it. See session.go.
	Review func(c *Exchange) error
}

// Role returns the least role that may call the route; "" if no session is needed.
func (r Route) Role() wire.Role { return access.Role(r.Pattern) }

// newLayout parses the layout, which is around each page, and the components that they share.
func newLayout() *template.Template {
	return template.Must(template.New("").Funcs(helpers).ParseFS(shared, "layout.html", "components/*.html"))
}

// layout is the one that pages copy. It is never executed.
var layout = sync.OnceValue(newLayout)

// newPage returns a page, with its own copy of the layout: pages define templates of the same names.
func newPage(html fs.FS, file string) *template.Template {
	return template.Must(template.Must(layout().Clone()).ParseFS(html, file))
}

// add adds a section.
func (f *Frame) add(section Section) {
	for _, r := range section.Routes {
		f.mux.HandleFunc(r.Pattern, func(w http.ResponseWriter, request *http.Request) {
			c := &Exchange{Request: request, W: w, frame: f}
			if err := c.answer(r); err != nil {
				c.fail(err)
			}
		})
		if r.Review != nil {
			f.reviews[r.Pattern] = r
		}
	}
	for folder, content := range section.Files {
		f.mux.HandleFunc("GET "+folder+"{name}", f.serveFiles(content))
	}
	maps.Copy(f.notices, section.Notices)

	names, err := fs.Glob(section.HTML, "*.html")
	if err != nil || len(names) == 0 {
		panic(fmt.Sprintf("dashboard: no pages: %v", err))
	}
	for _, file := range names {
		name := strings.TrimSuffix(path.Base(file), ".html")
		if f.pages[name] != nil {
			panic("dashboard: two sections have a page " + name)
		}
		f.pages[name] = sync.OnceValue(func() *template.Template { return newPage(section.HTML, file) })
	}
}
