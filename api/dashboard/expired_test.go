package dashboard

import (
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"promptspool/api/wire"
)

// typedText is in a form that is not sent.
const typedText = "what eve typed, for an hour"

// edited returns the form of the editor, as the browser of this person sends it.
func (s *site) edited(email string) url.Values {
	return s.form(email,
		"new", "true", "kind", "chat", "name", "greet",
		"role", "user", "format", "", "json", "false", "text", typedText, "more", "",
		"settings", "{}", "variables", "{}", "do", "save")
}

// end ends a session, as a sign-out in another tab does.
func (s *site) end(email string) {
	s.t.Helper()
	if err := s.people.SignOut(s.t.Context(), s.signed[email].Token); err != nil {
		s.t.Fatal(err)
	}
}

// says reports whether an answer contains a text.
func says(answer *httptest.ResponseRecorder, text string) bool {
	return strings.Contains(answer.Body.String(), text)
}

// signInForm returns the form that the sign-in page sends.
func signInForm(email, password string) url.Values {
	return url.Values{"email": {email}, "password": {password}}
}

// published reports whether the template exists.
func (s *site) published(name string) bool {
	s.t.Helper()
	_, err := s.drafts.Head(s.t.Context(), s.as("eve@example.com"), name)
	if err != nil && !wire.IsCode(err, wire.CodeNotFound) {
		s.t.Fatal(err)
	}

	return err == nil
}

func TestAFormOfAnotherSessionIsNotSent(t *testing.T) {
	s := openSite(t)
	form := s.edited("eve@example.com")
	fresh, err := s.people.SignIn(t.Context(), "eve@example.com", password, wire.Browser{IP: "192.0.2.1"})
	if err != nil {
		t.Fatal(err)
	}
	s.signed["eve@example.com"] = fresh // in another tab

	// One has the same account, the other another.
	for _, sender := range []string{"eve@example.com", "ann@example.com", "mallory@example.com"} {
		got := s.call(sender, "POST", "/template/edit", form)
		if got.Code != http.StatusForbidden || says(got, typedText) || !says(got, "This form is out of date") {
			t.Errorf("the form in a session of %s is answered %d: %s", sender, got.Code, got.Body)
		}
	}

	for _, path := range []string{"/sign-in", "/template/edit"} {
		body := s.edited("eve@example.com")
		body.Set("email", "eve@example.com")
		body.Set("password", password)
		r := httptest.NewRequest("POST", "http://localhost"+path, strings.NewReader(body.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Sec-Fetch-Site", "cross-site")
		w := httptest.NewRecorder()
		s.d.ServeHTTP(w, r)
		if w.Code != http.StatusForbidden || says(w, typedText) {
			t.Errorf("a form of another site to %s answers %d: %s", path, w.Code, w.Body)
		}
	}

	if s.published("greet") {
		t.Error("one of the forms was saved")
	}
}

func TestAfterSigningInOneIsOnThePageOfTheForm(t *testing.T) {
	s := openSite(t)
	s.end("ann@example.com")

	for referer, want := range map[string]string{
		"http://localhost/keys?done=revoked": "/keys",
		"http://localhost/requests?q=a":      "/requests?q=a",
		"http://localhost/invites":           "/",
		"http://localhost//evil.example":     "/",
		"http://evil.example/keys":           "/",
		"":                                   "/",
	} {
		r := httptest.NewRequest("POST", "http://localhost/keys",
			strings.NewReader(s.form("ann@example.com", "name", "x").Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Referer", referer)
		w := httptest.NewRecorder()
		s.d.ServeHTTP(w, r)

		next := `name="next" value="` + html.EscapeString(want) + `"`
		if w.Code != http.StatusUnauthorized || !says(w, next) || !says(w, "The form was not sent.") {
			t.Errorf("from %q: %d, want %s in: %s", referer, w.Code, next, w.Body)
		}
	}

	form := signInForm("ann@example.com", password)
	form.Set("next", "/keys")
	if to := s.call("", "POST", "/sign-in", form).Header().Get("Location"); to != "/keys" {
		t.Errorf("signing in leads to %q", to)
	}
}
