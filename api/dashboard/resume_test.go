package dashboard

import (
	"encoding/json"
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"promptspool/api/wire"
)

// typedText must survive a lost session.
const typedText = "what eve typed, for an hour"

// edited returns the form of the editor, as the browser of this person sends it.
func (s *site) edited(email string) url.Values {
	return s.form(email,
		"session", s.signed[email].FormSession(),
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

// pendingField matches the form that a sign-in page keeps.
var pendingField = regexp.MustCompile(`name="pending" value="([^"]*)"`)

// pendingIn returns the form that a sign-in page keeps, or "" if there is none.
func pendingIn(page *httptest.ResponseRecorder) string {
	m := pendingField.FindStringSubmatch(page.Body.String())
	if m == nil {
		return ""
	}
	return html.UnescapeString(m[1])
}

// signInWith signs in on a page that keeps a form.
func (s *site) signInWith(email, pending string) *httptest.ResponseRecorder {
	form := signInForm(email, password)
	form.Set("next", "/templates")
	form.Set("pending", pending)

	return s.call("", "POST", "/sign-in", form)
}

// pendingForm is a form as a sign-in page keeps it.
type pendingForm struct {
	Path    string     `json:"path"`
	Session string     `json:"session"`
	Fields  url.Values `json:"fields"`
}

// text returns the form as the page has it.
func (p pendingForm) text() string {
	raw, _ := json.Marshal(p)

	return string(raw)
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

func TestAFormOfAnEarlierSessionIsShownAgain(t *testing.T) {
	s := openSite(t)
	form := s.edited("eve@example.com")
	fresh, err := s.people.SignIn(t.Context(), "eve@example.com", password, wire.Browser{IP: "192.0.2.1"})
	if err != nil {
		t.Fatal(err)
	}
	s.signed["eve@example.com"] = fresh // in another tab

	again := s.call("eve@example.com", "POST", "/template/edit", form)
	if again.Code != http.StatusOK || !says(again, typedText) || s.published("greet") {
		t.Errorf("the form is answered %d: %s", again.Code, again.Body)
	}
}

func TestNobodySeesTheFormOfAnother(t *testing.T) {
	s := openSite(t)
	form := s.edited("eve@example.com")

	// One has the same account, the other another.
	for _, other := range []string{"ann@example.com", "mallory@example.com"} {
		got := s.call(other, "POST", "/template/edit", form)
		if got.Code != http.StatusForbidden || says(got, typedText) {
			t.Errorf("the form in a session of %s is answered %d: %s", other, got.Code, got.Body)
		}
	}

	s.end("eve@example.com")
	pending := pendingIn(s.call("", "POST", "/template/edit", form))
	if pending == "" {
		t.Fatal("the sign-in page does not keep the form")
	}
	for _, other := range []string{"ann@example.com", "mallory@example.com"} {
		got := s.signInWith(other, pending)
		to := got.Header().Get("Location")
		if got.Code != http.StatusSeeOther || to != "/templates?done=other-person" || says(got, typedText) {
			t.Errorf("signing in as %s answers %d %v: %s", other, got.Code, got.Header(), got.Body)
		}
	}

	next := s.call("ann@example.com", "GET", "/templates?done=other-person", nil)
	if !says(next, "You signed in as someone else") || says(next, "eve@") {
		t.Errorf("the next page is: %s", next.Body)
	}
}

func TestNoFormIsPlanted(t *testing.T) {
	s := openSite(t)
	s.end("eve@example.com")
	form := s.edited("eve@example.com")
	good := pendingForm{Path: "/template/edit", Session: form.Get("session"), Fields: form}
	mallory := s.signed["mallory@example.com"]
	invented := wire.SignedIn{Token: "x"}
	change := func(fn func(p *pendingForm)) string {
		p := good
		fn(&p)
		return p.text()
	}

	for what, pending := range map[string]string{
		"an attacker's session": change(func(p *pendingForm) { p.Session = mallory.FormSession() }),
		"no session":            change(func(p *pendingForm) { p.Session = "" }),
		"an invented session":   change(func(p *pendingForm) { p.Session = invented.FormSession() }),
		"a CSRF for a session": change(func(p *pendingForm) {
			p.Session = s.signed["eve@example.com"].CSRF()
		}),
		"the path of a key": change(func(p *pendingForm) { p.Path = "/keys" }),
		"the path of a role": change(func(p *pendingForm) {
			p.Path = "/people/" + mallory.User.ID + "/role"
		}),
		"a path that leads elsewhere": change(func(p *pendingForm) { p.Path = "/requests/../keys" }),
		"another site":                change(func(p *pendingForm) { p.Path = "//evil.example/template/edit" }),
		"a path that does not exist":  change(func(p *pendingForm) { p.Path = "/nowhere" }),
		"no fields":                   change(func(p *pendingForm) { p.Fields = nil }),
		"no JSON":                     "{",
	} {
		got := s.signInWith("eve@example.com", pending)
		if got.Code != http.StatusSeeOther || says(got, typedText) {
			t.Errorf("%s: %d %s", what, got.Code, got.Body)
		}
	}

	if got := s.signInWith("eve@example.com", good.text()); got.Code != http.StatusOK ||
		!says(got, typedText) {
		t.Errorf("the valid form, from which the others were made, answers %d", got.Code)
	}

	link := s.call("", "GET", "/sign-in?"+url.Values{"pending": {good.text()}}.Encode(), nil)
	if pendingIn(link) != "" || says(link, typedText) {
		t.Errorf("a link can bring a form: %s", link.Body)
	}

	for _, path := range []string{"/sign-in", "/template/edit"} {
		body := url.Values{
			"email":    {"eve@example.com"},
			"password": {password},
			"pending":  {good.text()},
		}
		if path == "/template/edit" {
			body = good.Fields
		}

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

func TestAViewerIsNotShownAFormForEditors(t *testing.T) {
	s := openSite(t)
	form := s.edited("eve@example.com")
	ann, eve := s.signed["ann@example.com"].User, s.signed["eve@example.com"].User
	if _, err := s.people.SetRole(t.Context(), ann, eve.ID, wire.RoleViewer); err != nil {
		t.Fatal(err)
	}

	page := s.call("eve@example.com", "POST", "/template/edit", form)
	if got := s.signInWith("eve@example.com", pendingIn(page)); got.Code != http.StatusForbidden ||
		s.published("greet") {
		t.Errorf("after losing the role: %d %s", got.Code, got.Body)
	}
}

func TestOnlySomeFormsAreCarriedAlong(t *testing.T) {
	s := openSite(t)
	carried := map[string]bool{}
	for email := range s.signed {
		s.end(email)
	}

	for _, r := range routes(t) {
		if r.method != http.MethodPost {
			continue
		}

		form := s.form("ann@example.com",
			"session", s.signed["ann@example.com"].FormSession(), "name", typedText)
		page := s.call("ann@example.com", "POST", r.path, form)

		var p pendingForm
		if pending := pendingIn(page); pending != "" && json.Unmarshal([]byte(pending), &p) != nil {
			t.Fatalf("%s keeps %q", r.path, pending)
		}

		if p.Path != "" {
			carried[strings.Replace(p.Path, "/01a1fcdb-6cb7-7ca5-a7cd-791d677e22cd", "", 1)] = true
		} else if says(page, typedText) || says(page, "are kept") {
			t.Errorf("%s shows what was sent, or says that it is kept: %s", r.path, page.Body)
		}
	}

	want := []string{"/template/edit", "/template/label", "/requests/score", "/sessions/score", "/traces/score",
		"/review", "/views", "/project-views"}
	for _, path := range want {
		if !carried[path] {
			t.Errorf("the form for %s is not kept", path)
		}
	}
	if len(carried) != len(want) {
		t.Errorf("the forms for %v are kept, want %v", carried, want)
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
		if w.Code != http.StatusUnauthorized || !says(w, next) {
			t.Errorf("from %q: %d, want %s in: %s", referer, w.Code, next, w.Body)
		}
	}
}

func TestAShortFormIsShownAgainWithWhatWasFilledIn(t *testing.T) {
	s := openSite(t)
	form := s.form("eve@example.com",
		"session", s.signed["eve@example.com"].FormSession(), "score", "87", "name", "")
	s.end("eve@example.com")
	page := s.call("eve@example.com", "POST", "/requests/01a1fcdb-6cb7-7ca5-a7cd-791d677e22cd/score", form)

	again := s.signInWith("eve@example.com", pendingIn(page))
	isPage(t, "the form again", again, http.StatusOK, "Set this score?", "<dt>score</dt><dd>87</dd>")
	if says(again, "<dt>name</dt>") {
		t.Errorf("an empty field is listed: %s", again.Body)
	}
}

func TestAFormThatIsTooLongIsNotPromised(t *testing.T) {
	s := openSite(t)
	form := s.edited("eve@example.com")
	s.end("eve@example.com")

	form.Set("text", strings.Repeat(`"`, 1_200_000)) // 3.6 MB as sent, 7.2 MB inside JSON
	page := s.call("eve@example.com", "POST", "/template/edit", form)
	if page.Code != http.StatusUnauthorized || pendingIn(page) != "" || says(page, "are kept") {
		t.Errorf("the form is answered %d with %d bytes", page.Code, page.Body.Len())
	}

	form.Set("text", strings.Repeat("x", 4_000_000))
	page = s.call("eve@example.com", "POST", "/template/edit", form)
	if again := s.signInWith("eve@example.com", pendingIn(page)); again.Code != http.StatusOK {
		t.Errorf("the longest form that is kept answers %d after signing in", again.Code)
	}
}
