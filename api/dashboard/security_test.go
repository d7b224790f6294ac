package dashboard

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"promptspool/api/auth"
	"promptspool/api/dashboard/frame"
	"promptspool/api/wire"
	"promptspool/metrics"
	"promptspool/registry"
	"promptspool/registry/registrytest"
	"promptspool/spool/archive"
	"promptspool/spool/database/badgerdb"
)

// password is that of everyone in these tests.
const password = "correct horse battery"

// site is a dashboard over a real database.
type site struct {
	t       *testing.T
	config  Config
	d       *frame.Frame
	people  *auth.People
	records *archive.Archive
	drafts  *registry.Registry
	signed  map[string]wire.SignedIn // by email
}

// openSite returns a dashboard with two accounts. One has an owner ann, an editor eve and
// a viewer vic; mallory is the owner of the other.
func openSite(t *testing.T) *site {
	t.Helper()
	town, err := settled()
	if err != nil {
		t.Fatal(err)
	}

	dir := t.TempDir()
	if err := os.CopyFS(dir, town.files); err != nil {
		t.Fatal(err)
	}
	db, err := badgerdb.Open(badgerdb.Config{Dir: dir, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })

	s := &site{t: t, people: peopleOf(db), signed: maps.Clone(town.signed)}
	s.drafts = registry.New(registry.Config{Store: registrytest.NewMemory(), Logger: quiet})
	s.records = archive.New(archive.Config{
		Store:    db,
		Versions: s.drafts,
		Metrics:  metrics.New("server", "test"),
		Logger:   quiet,
	})
	s.config = Config{
		People:    s.people,
		Keys:      auth.New(auth.Config{Store: db}),
		Records:   s.records,
		Recorder:  s.records,
		Templates: s.drafts,
		Sidecars:  db,
		Version:   "test",
		Logger:    quiet,
	}
	s.d = New(s.config)

	return s
}

// quiet is a logger that discards everything.
var quiet = slog.New(slog.DiscardHandler)

// peopleOf returns the people of a database where anyone may sign up.
func peopleOf(db *badgerdb.DB) *auth.People {
	return auth.NewPeople(auth.PeopleConfig{Store: db, SignUp: wire.SignUpOpen})
}

// town is a closed database with the sessions of all people.
type town struct {
	files  fs.FS
	signed map[string]wire.SignedIn // by email
}

// settled makes a town once for all tests, because signing up and in is slow by design.
var settled = sync.OnceValues(func() (tn town, err error) {
	dir, err := os.MkdirTemp("", "promptspool-dashboard-")
	if err != nil {
		return tn, err
	}
	defer os.RemoveAll(dir)

	db, err := badgerdb.Open(badgerdb.Config{Dir: dir, Logger: quiet})
	if err != nil {
		return tn, err
	}
	tn.signed, err = settle(peopleOf(db))
	if err = errors.Join(err, db.Close()); err != nil {
		return tn, err
	}

	files := fstest.MapFS{}
	tn.files = files
	return tn, fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(filepath.Join(dir, path))
		files[path] = &fstest.MapFile{Data: data, Mode: 0o600}
		return err
	})
})

// settle signs all people up and in, and returns their sessions by email.
func settle(people *auth.People) (map[string]wire.SignedIn, error) {
	ctx, signed := context.Background(), map[string]wire.SignedIn{}
	join := func(email string, a wire.Application) (u wire.User, err error) {
		a.Email, a.Password = email, password
		signed[email], err = people.Join(ctx, a, "192.0.2.1")
		return signed[email].User, err
	}

	code, err := people.Setup(ctx)
	if err != nil {
		return nil, err
	}
	ann, err := join("ann@example.com", wire.Application{Code: code})
	if err != nil {
		return nil, err
	}

	for email, role := range map[string]wire.Role{
		"eve@example.com": wire.RoleEditor,
		"vic@example.com": wire.RoleViewer,
	} {
		invite, _, err := people.Invite(ctx, ann, role)
		if err == nil {
			_, err = join(email, wire.Application{Code: invite})
		}
		if err != nil {
			return nil, err
		}
	}

	_, err = join("mallory@example.com", wire.Application{Account: "other"})

	return signed, err
}

// call requests a page in the session of this email, or without a session if it is "".
// The form is sent as given.
func (s *site) call(email, method, path string, form url.Values) *httptest.ResponseRecorder {
	s.t.Helper()
	w := httptest.NewRecorder()
	s.d.ServeHTTP(w, s.request(email, method, path, form))

	return w
}

// request is what call sends.
func (s *site) request(email, method, path string, form url.Values) *http.Request {
	r := httptest.NewRequest(method, "http://localhost"+path, strings.NewReader(form.Encode()))
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if email != "" {
		for _, name := range sessionCookies {
			r.AddCookie(&http.Cookie{Name: name, Value: string(s.signed[email].Token)})
		}
	}

	return r
}

// sessionCookies are the names of the cookie of a session, at whatever address the site is.
var sessionCookies = []string{"__Host-promptspool", "__Secure-promptspool", "promptspool"}

// form returns a form with these fields and the token of this person.
func (s *site) form(email string, pairs ...string) url.Values {
	f := url.Values{"csrf": {s.signed[email].CSRF()}}
	for i := 0; i < len(pairs); i += 2 {
		f.Set(pairs[i], pairs[i+1])
	}

	return f
}

// route is a page for signed-in people, as a test calls it.
type route struct {
	method, path string
	role         wire.Role
}

// routes returns all pages that need a role.
func routes(t *testing.T) (all []route) {
	t.Helper()
	for _, r := range Routes() {
		if r.Role == "" {
			continue
		}
		method, path, _ := strings.Cut(r.Pattern, " ")
		path = strings.NewReplacer("{$}", "", "{id}", "01a1fcdb-6cb7-7ca5-a7cd-791d677e22cd").Replace(path)
		all = append(all, route{method, path, r.Role})
	}
	if len(all) < 25 {
		t.Fatalf("only %d routes are listed", len(all))
	}

	return all
}

func TestEveryPageWantsSomebodyOfItsRoleAndATokenOfTheirs(t *testing.T) {
	s := openSite(t)
	for _, r := range routes(t) {
		get := r.method == http.MethodGet
		nobody := s.call("", r.method, r.path, nil)
		if get && (nobody.Code != http.StatusSeeOther ||
			!strings.HasPrefix(nobody.Header().Get("Location"), "/sign-in?next=")) ||
			!get && nobody.Code != http.StatusUnauthorized {
			t.Errorf("%s %s answers %d without a session", r.method, r.path, nobody.Code)
		}
		csp := nobody.Header().Get("Content-Security-Policy")
		if !strings.Contains(csp, "default-src 'none'; script-src 'self'; style-src 'self'") ||
			!strings.Contains(csp, "form-action 'self'") ||
			!strings.Contains(csp, "frame-ancestors 'none'") || strings.Contains(csp, "unsafe") {
			t.Errorf("%s %s has the policy %q", r.method, r.path, csp)
		}

		for email, role := range map[string]wire.Role{
			"vic@example.com": wire.RoleViewer,
			"eve@example.com": wire.RoleEditor,
		} {
			if !role.Includes(r.role) {
				if got := s.call(email, r.method, r.path, s.form(email)); got.Code != http.StatusForbidden ||
					!strings.Contains(got.Body.String(), " can do this. Your role is ") {
					t.Errorf("%s %s answers %d to a %s", r.method, r.path, got.Code, role)
				}
			}
		}

		if get {
			if got := s.call("ann@example.com", r.method, r.path, nil); got.Code >= 500 {
				t.Errorf("%s %s answers %d: %s", r.method, r.path, got.Code, got.Body)
			}
			continue
		}
		for what, form := range map[string]url.Values{
			"no token":        {},
			"a foreign token": s.form("eve@example.com"),
			"a made-up token": {"csrf": {"x"}},
		} {
			if got := s.call("ann@example.com", r.method, r.path, form); got.Code != http.StatusForbidden ||
				!strings.Contains(got.Body.String(), "out of date") {
				t.Errorf("%s %s answers %d to a form with %s", r.method, r.path, got.Code, what)
			}
		}
	}

	// A valid form succeeds, so those above were rejected for what they lacked.
	valid := s.form("ann@example.com", "name", "app", "scope", "app")
	if got := s.call("ann@example.com", "POST", "/keys", valid); got.Code != http.StatusOK {
		t.Errorf("a valid form answers %d", got.Code)
	}

	cross := httptest.NewRequest("POST", "http://localhost/keys",
		strings.NewReader(s.form("ann@example.com").Encode()))
	cross.Header.Set("Sec-Fetch-Site", "cross-site")
	w := httptest.NewRecorder()
	s.d.ServeHTTP(w, cross)
	if w.Code != http.StatusForbidden {
		t.Errorf("a form of another site answers %d", w.Code)
	}
}

func TestAnotherAccountSeesAndChangesNothing(t *testing.T) {
	s := openSite(t)
	ann, mallory := s.signed["ann@example.com"].User, "mallory@example.com"
	id := wire.Identity{Account: ann.AccountID, KeyID: "k", Scope: wire.ScopeFull, Verified: true}
	if _, err := s.drafts.Publish(t.Context(), id, wire.Publish{
		Name:      "secret plan",
		Blueprint: json.RawMessage(`{"content":"hush"}`),
		Labels:    []string{"prod"},
	}); err != nil {
		t.Fatal(err)
	}

	request := wire.NewID()
	body := `{"function_name":"f","kwargs":{"model":"hush-1"},"request_response":{},` +
		`"request_start_time":1,"request_end_time":2}`
	if _, err := s.records.Record(t.Context(), id, []wire.Event{{
		ID:         wire.NewID(),
		Kind:       wire.KindRequest,
		RequestID:  request,
		AcceptedAt: time.Now().UTC(),
		Sidecar:    "test",
		Body:       json.RawMessage(body),
	}}); err != nil {
		t.Fatal(err)
	}
	own := s.call("ann@example.com", "GET", "/templates", nil)
	if !strings.Contains(own.Body.String(), "secret plan") {
		t.Fatalf("ann does not see her own template: %s", own.Body)
	}

	for _, path := range []string{"/", "/requests", "/templates", "/sidecars", "/keys", "/people", "/audit"} {
		if got := s.call(mallory, "GET", path, nil); got.Code != http.StatusOK ||
			strings.Contains(got.Body.String(), "hush") ||
			strings.Contains(got.Body.String(), "secret plan") ||
			strings.Contains(got.Body.String(), "ann@") || strings.Contains(got.Body.String(), request) {
			t.Errorf("%s answers %d:\n%s", path, got.Code, got.Body)
		}
	}

	for _, path := range []string{"/requests/" + request, "/requests/" + request + "/raw"} {
		if got := s.call(mallory, "GET", path, nil); got.Code != http.StatusNotFound {
			t.Errorf("%s answers %d", path, got.Code)
		}
	}
	for _, page := range []string{"", "/edit", "/compare", "/statistics", "/backtest"} {
		got := s.call(mallory, "GET", "/template"+page+"?name=secret+plan", nil)
		if got.Code != http.StatusNotFound {
			t.Errorf("/template%s answers %d", page, got.Code)
		}
	}

	for _, path := range []string{
		"/template/label", "/template/label/delete", "/template/archive", "/template/restore",
		"/requests/" + request + "/score",
	} {
		form := s.form(mallory, "name", "secret plan", "label", "prod", "version", "1", "score", "1")
		if got := s.call(mallory, "POST", path, form); got.Code != http.StatusNotFound {
			t.Errorf("POST %s answers %d", path, got.Code)
		}
	}
}

func TestASessionIsNewAtEverySignInAndEndsWithThePassword(t *testing.T) {
	s := openSite(t)
	before := s.signed["eve@example.com"]
	credentials := url.Values{"email": {"eve@example.com"}, "password": {password}}
	got := s.call("eve@example.com", "POST", "/sign-in", credentials)

	cookie := got.Result().Cookies()[0]
	if cookie.Value == string(before.Token) || cookie.Value == "" {
		t.Error("signing in keeps the old session of the browser")
	}
	if !cookie.HttpOnly || !cookie.Secure || cookie.SameSite != http.SameSiteLaxMode ||
		!strings.HasPrefix(cookie.Name, "__Host-") || cookie.Path != "/" {
		t.Errorf("the cookie is %+v", cookie)
	}

	change := s.form("eve@example.com", "old", password, "password", "another good one")
	if got := s.call("eve@example.com", "POST", "/password", change); got.Code != http.StatusSeeOther {
		t.Fatalf("changing the password answers %d: %s", got.Code, got.Body)
	}
	if got := s.call("eve@example.com", "GET", "/requests", nil); got.Code != http.StatusSeeOther {
		t.Errorf("after the password was changed, an old session answers %d", got.Code)
	}
}

func TestGuessingPasswordsIsSlow(t *testing.T) {
	s := openSite(t)
	for range 20 {
		got := s.call("", "POST", "/sign-in",
			url.Values{"email": {"vic@example.com"}, "password": {"a wrong one, again"}})
		if got.Code == http.StatusTooManyRequests {
			right := s.call("", "POST", "/sign-in",
				url.Values{"email": {"vic@example.com"}, "password": {password}})
			if right.Code != http.StatusTooManyRequests {
				t.Errorf("the right password is not delayed: %d", right.Code)
			}
			return
		}
		if got.Code != http.StatusUnauthorized {
			t.Fatalf("a wrong password answers %d", got.Code)
		}
	}
	t.Error("twenty wrong passwords cause no delay")
}

func TestSigningInLeadsToNoOtherSite(t *testing.T) {
	s := openSite(t)
	for next, want := range map[string]string{
		"/requests?q=x":        "/requests?q=x",
		"https://evil.example": "/",
		"//evil.example":       "/",
		`/\evil.example`:       "/",
		"/\t/evil.example":     "/",
		"javascript:alert(1)":  "/",
		"":                     "/",
	} {
		got := s.call("", "POST", "/sign-in",
			url.Values{"email": {"vic@example.com"}, "password": {password}, "next": {next}})
		if at := got.Header().Get("Location"); got.Code != http.StatusSeeOther || at != want {
			t.Errorf("%q leads to %q (%d), want %q", next, at, got.Code, want)
		}
	}
}
