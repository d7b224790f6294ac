package dashboard

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"promptspool/api/wire"
)

// route is a page for signed-in people, as a test calls it.
type route struct {
	method, path string
	role         wire.Role
}

// routes returns all pages that need a role.
func routes(t *testing.T) (all []route) {
	t.Helper()
	for _, r := range Routes() {
		if r.Role() == "" {
			continue
		}
		method, path, _ := strings.Cut(r.Pattern, " ")
		path = strings.NewReplacer("{$}", "", "{id}", "01a1fcdb-6cb7-7ca5-a7cd-791d677e22cd").Replace(path)
		all = append(all, route{method, path, r.Role()})
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

		for email, signed := range s.signed {
			role := signed.User.Role
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
}

func TestAnotherAccountSeesAndChangesNothing(t *testing.T) {
	s := openSite(t)
	const ann, mallory = "ann@example.com", "mallory@example.com"
	if _, err := s.drafts.Publish(t.Context(), s.as(ann), wire.Publish{
		PublishedName:    wire.PublishedName{Name: "secret plan"},
		PublishedVersion: wire.PublishedVersion{Blueprint: json.RawMessage(`{"content":"hush"}`)},
		PublishedPlace:   wire.PublishedPlace{Labels: []string{"prod"}},
	}); err != nil {
		t.Fatal(err)
	}

	e := newEvent(wire.KindRequest, `{"function_name":"f","kwargs":{"model":"hush-1"},"request_response":{},
		"request_start_time":1,"request_end_time":2}`)
	s.record(ann, e)
	request := e.RequestID
	own := s.call(ann, "GET", "/templates", nil)
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
	for _, page := range []string{"", "/edit", "/compare", "/statistics", "/backtest", "/experiment"} {
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
		page := s.call("", "GET", "/sign-in?"+url.Values{"next": {next}}.Encode(), nil)
		if field := `name="next" value="` + want + `"`; !says(page, field) {
			t.Errorf("%q: the page has no %s: %s", next, field, page.Body)
		}
	}

	// The form may be sent without the page.
	for next, want := range map[string]string{"/requests?q=x": "/requests?q=x", "//evil.example": "/"} {
		form := signInForm("vic@example.com", password)
		form.Set("next", next)
		got := s.call("", "POST", "/sign-in", form)
		if at := got.Header().Get("Location"); got.Code != http.StatusSeeOther || at != want {
			t.Errorf("%q leads to %q (%d), want %q", next, at, got.Code, want)
		}
	}
}
