package dashboard

import (
	"context"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"promptspool/api/wire"
)

// shownLink matches the link that a page shows once.
var shownLink = regexp.MustCompile(`<code id="link">http://localhost([^<]+)</code>`)

// link sends a form as ann and returns the path of the link that the page shows.
func (s *site) link(path string, pairs ...string) string {
	s.t.Helper()
	got := s.call("ann@example.com", "POST", path, s.form("ann@example.com", pairs...))
	m := shownLink.FindStringSubmatch(got.Body.String())
	if got.Code != http.StatusOK || m == nil {
		s.t.Fatalf("%s shows no link: %d %s", path, got.Code, got.Body)
	}

	return html.UnescapeString(m[1])
}

// codeOf returns the code of a link.
func codeOf(t *testing.T, link string) string {
	t.Helper()
	u, err := url.Parse(link)
	if err != nil {
		t.Fatal(err)
	}
	return u.Query().Get("code")
}

func TestAnInviteIsALinkThatSaysWhatOneJoins(t *testing.T) {
	s := openSite(t)
	link := s.link("/invites", "role", "editor")
	if again := s.call("ann@example.com", "GET", "/people", nil); says(again, codeOf(t, link)) {
		t.Error("the code is shown again")
	}

	page := s.call("", "GET", link, nil)
	for _, want := range []string{
		"<b>default</b> as an editor",
		`name="code" value="` + codeOf(t, link) + `"`,
	} {
		if page.Code != http.StatusOK || !says(page, want) {
			t.Errorf("the link answers %d without %q: %s", page.Code, want, page.Body)
		}
	}

	h := page.Header()
	if h.Get("Referrer-Policy") != "same-origin" || h.Get("Cache-Control") != "no-store" {
		t.Errorf("the headers let the code leave this site: %v", page.Header())
	}

	form := url.Values{"code": {codeOf(t, link)}, "email": {"bob@example.com"}, "password": {"short"}}
	got := s.call("", "POST", "/sign-up", form)
	if !says(got, "at least 12") || !says(got, "as an editor") {
		t.Errorf("a short password answers %d: %s", got.Code, got.Body)
	}
}

func TestAResetLinkIsNotShownAgain(t *testing.T) {
	s := openSite(t)
	link := s.link("/people/" + s.signed["eve@example.com"].User.ID + "/reset")
	set := url.Values{"code": {codeOf(t, link)}, "password": {"short"}}
	short := s.call("", "POST", "/reset-password", set)
	if short.Code != http.StatusUnprocessableEntity || !says(short, codeOf(t, link)) {
		t.Errorf("a short password answers %d: %s", short.Code, short.Body)
	}

	log := s.call("ann@example.com", "GET", "/audit", nil)
	if !says(log, "make reset link") || says(log, codeOf(t, link)) {
		t.Errorf("the audit log lacks it, or shows the code: %s", log.Body)
	}
}

func TestWhoMayResetWhosePassword(t *testing.T) {
	s := openSite(t)
	eve, ann := s.signed["eve@example.com"].User, s.signed["ann@example.com"].User

	for _, tt := range []struct {
		by, id string
		want   int
	}{
		{"mallory@example.com", eve.ID, http.StatusNotFound},
		{"ann@example.com", ann.ID, http.StatusForbidden}, // her own needs the old one
		{"ann@example.com", "nobody", http.StatusNotFound},
	} {
		got := s.call(tt.by, "POST", "/people/"+tt.id+"/reset", s.form(tt.by))
		if got.Code != tt.want || shownLink.MatchString(got.Body.String()) {
			t.Errorf("%s resets the password of %s: %d %s", tt.by, tt.id, got.Code, got.Body)
		}
	}
}

func TestGuessingCodesEndsAndHindersNobody(t *testing.T) {
	s := openSite(t)
	good := s.link("/people/" + s.signed["vic@example.com"].User.ID + "/reset")
	invite := s.link("/invites", "role", "viewer")

	code := 0
	for n := 0; n < 120 && code != http.StatusTooManyRequests; n++ {
		path := []string{"/reset-password", "/sign-up"}[n%2] + "?code=aaaaa-bbbbb-ccccc-ddddd"
		code = s.call("", "GET", path, nil).Code
	}
	if code != http.StatusTooManyRequests {
		t.Errorf("the last of 120 guesses is answered %d", code)
	}

	for _, link := range []string{good, invite} {
		if got := s.call("", "GET", link, nil); got.Code != http.StatusOK {
			t.Errorf("a good link from the same address answers %d", got.Code)
		}
	}
	got := s.call("", "POST", "/sign-in", signInForm("vic@example.com", password))
	if got.Code != http.StatusSeeOther {
		t.Errorf("signing in from the same address answers %d", got.Code)
	}
}

// newSecret is the secret of a new key on a page.
var newSecret = regexp.MustCompile(`<code id="secret">(ps_[^<]+)</code>`)

func TestAKeyIsMadeAndRotatedOnItsPage(t *testing.T) {
	s := openSite(t)
	const ann, mallory = "ann@example.com", "mallory@example.com"
	send := func(who, path string, status int, shows []string, pairs ...string) wire.Identity {
		t.Helper()
		got := s.call(who, "POST", path, s.form(who, pairs...))
		for _, text := range shows {
			if !strings.Contains(got.Body.String(), text) {
				t.Errorf("POST %s %v: the page does not show %q", path, pairs, text)
			}
		}
		if got.Code != status {
			t.Fatalf("POST %s %v answers %d: %s", path, pairs, got.Code, got.Body)
		}

		secret := newSecret.FindStringSubmatch(got.Body.String())
		if secret == nil {
			return wire.Identity{}
		}
		id, err := s.config.Keys.(interface {
			Authenticate(ctx context.Context, key wire.Secret) (wire.Identity, error)
		}).Authenticate(t.Context(), wire.Secret(secret[1]))
		if err != nil {
			t.Fatal(err)
		}
		return id
	}

	// A preset outweighs what is checked; without one, that counts.
	if id := send(ann, "/keys", 200, nil, "scope", "app", "right", "manage"); id.Scope != wire.ScopeApp {
		t.Errorf("the preset app makes a key of scope %s", id.Scope)
	}
	id := send(ann, "/keys", 200, []string{"log,publish", "ends in 36 hours", "support/"},
		"name", "CI", "scope", "", "right", "log", "right", "publish", "prefix", "support/", "expires", " 36h ")
	if id.Scope != wire.ScopeLog|wire.ScopePublish || id.Prefix != "support/" || id.Expires.IsZero() {
		t.Errorf("the key is %+v", id)
	}

	// What was typed is shown again with what is wrong.
	typed := []string{`value="CI &amp; more"`, `value="nonsense"`, `value="read" checked`, `value="" checked`}
	send(ann, "/keys", 422, append(typed,
		`<input name="expires" aria-invalid="true" aria-describedby="fault" autofocus`,
		`id="fault" role="alert"><p>expires must be a time in the future`),
		"name", "CI & more", "scope", "", "right", "read", "expires", "nonsense")
	send(ann, "/keys", 422, []string{"is no scope"}, "scope", "")
	send(ann, "/keys", 422, []string{"which cover everything"}, "scope", "full", "prefix", "support/")

	next := send(ann, "/keys/"+id.KeyID+"/rotate", 200,
		[]string{"replaces <code>" + id.KeyID, "replaced by <code>", "ends in 1 hour"}, "overlap", "1h")
	if next.Scope != id.Scope || next.Prefix != id.Prefix || next.KeyID == id.KeyID || next.Expires.IsZero() {
		t.Errorf("the successor of %+v is %+v", id, next)
	}
	send(ann, "/keys/"+id.KeyID+"/rotate", 409, []string{next.KeyID + " replaces it"}, "overlap", "1h")
	send(ann, "/keys/"+next.KeyID+"/rotate", 422, nil, "overlap", "soon")
	send(ann, "/keys/"+next.KeyID+"/rotate", 200, []string{"which has ended"}, "overlap", "0s")
	send(mallory, "/keys/"+id.KeyID+"/rotate", http.StatusNotFound, nil, "overlap", "1h")

	log := s.call(ann, "GET", "/audit", nil).Body.String()
	for _, text := range []string{"create key", "rotate key", "log,publish, CI, templates support/, ends "} {
		if !strings.Contains(log, text) {
			t.Errorf("the audit log does not show %q", text)
		}
	}
}
