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
	"promptspool/registry/prices"
	"promptspool/spool/archive/alerts"
	"promptspool/spool/archive/records"
	"promptspool/spool/database/accounts"
	"promptspool/spool/database/badgerdb"
	"promptspool/spool/database/keyed/keyedtest"
	"promptspool/spool/disk/disktest"
)

func TestMain(m *testing.M) {
	disktest.InMemory()
	m.Run()
}

// password is that of everyone in these tests.
const password = "correct horse battery"

// site is a dashboard over a real database.
type site struct {
	t       *testing.T
	config  Config
	cookie  string // of a session
	d       *frame.Frame
	people  *auth.People
	store   *badgerdb.DB
	records *records.Service
	drafts  *registry.Registry
	signed  map[string]wire.SignedIn // by email
}

// openSite returns a dashboard with two accounts. One has an owner ann, an editor eve, a
// reviewer rev and a viewer vic; mallory is the owner of the other.
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

	s := &site{t: t, cookie: "__Host-promptspool", people: peopleOf(db), store: db, signed: maps.Clone(town.signed)}
	s.drafts = registry.New(registry.Config{Store: accounts.New(&keyedtest.Memory{}, time.Now), Logger: quiet})
	s.records = records.New(records.Config{
		Prices:      prices.BuiltIn(),
		Definitions: db,
		Store:       db,
		Versions:    s.drafts,
		Metrics:     metrics.New("server", "test"),
		Logger:      quiet,
	})
	s.config = Config{
		Config: frame.Config{
			People:   s.people,
			Keys:     auth.New(auth.Config{Store: db}),
			Scoring:  db,
			Views:    db,
			Sidecars: db,
			Version:  "test",
			Logger:   quiet,
		},
		Records:   s.records,
		Recorder:  s.records,
		Templates: s.drafts,
		Targets:   onLoopback(s),
		Alerts:    alerts.New(alerts.Config{Store: db, Records: db, Logger: quiet}),
	}
	s.d = New(s.config)

	return s
}

// quiet is a logger that discards everything.
var quiet = slog.New(slog.DiscardHandler)

// peopleOf returns the people of a database where anyone may sign up.
func peopleOf(db *badgerdb.DB) *auth.People {
	config := auth.PeopleConfig{Store: db, SignUp: wire.SignUpOpen, GroupProjects: []string{"payroll"}}
	return auth.NewPeople(config)
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
		"rev@example.com": wire.RoleReviewer,
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
		r.AddCookie(&http.Cookie{Name: s.cookie, Value: string(s.signed[email].Token)})
	}

	return r
}

// sender returns what sends a person's forms, which must have the wanted status. It returns the page, or where
// it leads.
func (s *site) sender(email string) func(path string, want int, pairs ...string) string {
	return func(path string, want int, pairs ...string) string {
		s.t.Helper()
		got := s.call(email, "POST", path, s.form(email, pairs...))
		if got.Code != want {
			s.t.Fatalf("%s answers %d: %s", path, got.Code, got.Body)
		}
		return got.Body.String() + got.Header().Get("Location")
	}
}

// form returns a form with these fields and the token of this person.
func (s *site) form(email string, pairs ...string) url.Values {
	f := url.Values{"csrf": {s.signed[email].CSRF()}}
	for i := 0; i < len(pairs); i += 2 {
		f.Add(pairs[i], pairs[i+1])
	}

	return f
}

// as returns the identity of this person's account, as one of its keys.
func (s *site) as(email string) wire.Identity {
	return wire.Identity{
		Account: s.signed[email].User.AccountID, KeyID: "k", Scope: wire.ScopeFull, Verified: true,
	}
}

// record logs events in the account of this person.
func (s *site) record(email string, events ...wire.Event) {
	s.t.Helper()
	if _, err := s.records.Record(s.t.Context(), s.as(email), events); err != nil {
		s.t.Fatal(err)
	}
}

// newEvent returns the event of a record of its own.
func newEvent(kind wire.Kind, body string) wire.Event {
	return wire.Event{
		ID: wire.NewID(), Kind: kind, RequestID: wire.NewID(), AcceptedAt: time.Now().UTC(),
		Body: json.RawMessage(body),
	}
}
