package dashboard

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestAnErrorIsAPageThatNamesItsCauseAndAWayOn(t *testing.T) {
	s := openSite(t)
	const ann, vic = "ann@example.com", "vic@example.com"
	const overview, signIn = `href="/">Go to Overview`, `href="/sign-in">Sign in`

	for _, tt := range []struct {
		who, method, path string
		status            int
		allow             string
		says              []string
	}{
		{ann, "GET", "/nowhere", 404, "", []string{"Page not found", overview, `href="/requests"`}},
		{"", "GET", "/nowhere", 404, "", []string{"Page not found", signIn}},
		{ann, "GET", "/requests/a/b/c", 404, "", []string{"Page not found", overview}},
		{ann, "GET", "/requests/01a1fcdb-6cb7-7ca5-a7cd-791d677e22cd", 404, "",
			[]string{"<h1>Not found</h1>", overview}},
		{ann, "GET", "/static/", 404, "", []string{"Page not found", overview}},
		{ann, "GET", "/static/nothing.js", 404, "", []string{"Page not found"}},
		{ann, "GET", "/sign-out", 405, "POST", []string{"Nothing to show here", overview}},
		{ann, "POST", "/requests", 405, "GET", []string{"Nothing to show here", overview}},
		{"", "DELETE", "/requests", 405, "GET", []string{"Nothing to show here", signIn}},
		{ann, "POST", "/keys", 403, "", []string{"Form out of date", overview}}, // without a token
		{vic, "GET", "/keys", 403, "",
			[]string{"No access", "Only owners can do this. Your role is viewer", overview}},
		{vic, "GET", "/template/edit", 403, "",
			[]string{"No access", "Only editors and owners can do this. Your role is viewer", overview}},
	} {
		got := s.call(tt.who, tt.method, tt.path, nil)
		isPage(t, tt.method+" "+tt.path, got, tt.status, tt.says...)

		if allow := got.Header().Get("Allow"); allow != tt.allow {
			t.Errorf("%s %s allows %q, want %q", tt.method, tt.path, allow, tt.allow)
		}
	}
}

func TestWhatIsNotThereAndAWrongPasswordAreNamed(t *testing.T) {
	s := openSite(t)
	const ann = "ann@example.com"

	gone := s.call(ann, "POST", "/keys/key_gone/revoke", s.form(ann))
	isPage(t, "an unknown key", gone, http.StatusNotFound, "<h1>Not found</h1>",
		"This project has no such key.")

	wrong := s.call(ann, "POST", "/password",
		s.form(ann, "old", "not this one", "password", "a good new password"))
	isPage(t, "a wrong password", wrong, http.StatusUnauthorized, "The current password is wrong.")
	if says(wrong, "email or password") {
		t.Error("the page for a signed-in person mentions an email")
	}
}

// isPage checks that an answer is a whole page with this status and all these texts.
func isPage(t *testing.T, what string, got *httptest.ResponseRecorder, status int, says ...string) {
	t.Helper()
	body := got.Body.String()
	if kind := got.Header().Get("Content-Type"); got.Code != status || kind != "text/html; charset=utf-8" ||
		!strings.Contains(body, "</html>") {
		t.Errorf("%s answers %d %s: %s", what, got.Code, kind, body)
		return
	}

	for _, text := range says {
		if !strings.Contains(body, text) {
			t.Errorf("%s does not contain %q:\n%s", what, text, body)
		}
	}
}

func TestAnErrorLeadsBackToThePageBeforeIt(t *testing.T) {
	s := openSite(t)
	ask := func(method, referer string) string {
		r := httptest.NewRequest(method, "http://localhost/nowhere", nil)
		r.Header.Set("Referer", referer)
		w := httptest.NewRecorder()
		s.d.ServeHTTP(w, r)

		return w.Body.String()
	}

	body := ask("GET", "http://localhost/requests?tags=a&span=7d")
	if !strings.Contains(body, `href="/requests?tags=a&amp;span=7d">Back`) {
		t.Errorf("the page does not link back:\n%s", body)
	}

	for _, referer := range []string{"", "http://other.example/requests", "http://localhost/nowhere", "::"} {
		if body := ask("GET", referer); strings.Contains(body, "Back<") {
			t.Errorf("a page with the Referer %q links back:\n%s", referer, body)
		}
	}
	if body := ask("GET", "http://localhost//other.example/"); strings.Contains(body, "other.example") {
		t.Errorf("the page links to another site:\n%s", body)
	}
}

// Browsers ask for an icon at an address of their own where a page names none, as with raw JSON.
func TestAnIconIsWhereBrowsersLookForIt(t *testing.T) {
	r := openSite(t).call("", "GET", "/favicon.ico", nil)
	if r.Code != http.StatusOK || r.Header().Get("Content-Type") != "image/svg+xml" {
		t.Errorf("%d %s", r.Code, r.Header().Get("Content-Type"))
	}
}
