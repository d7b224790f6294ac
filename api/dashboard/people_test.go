package dashboard

import (
	"html"
	"net/http"
	"net/url"
	"regexp"
	"testing"
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
