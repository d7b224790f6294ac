package dashboard

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"promptspool/api/wire"
)

// reopen makes the site's dashboard again, at another address.
func (s *site) reopen(public string, insecure bool) {
	s.t.Helper()
	s.config.PublicURL, s.config.CookiesInsecure = nil, insecure
	s.cookie = "__Host-promptspool"
	if public != "" {
		u, err := url.Parse(public)
		if err != nil {
			s.t.Fatal(err)
		}
		s.config.PublicURL = u
		if u.Path != "" {
			s.cookie = "__Secure-promptspool"
		}
	}
	if insecure {
		s.cookie = "promptspool"
	}
	s.d = New(s.config)
}

// visit opens a page at an address, with headers given as pairs.
func (s *site) visit(address string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest("GET", address, nil)
	r.TLS = nil // what a proxy terminated is not seen here
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	s.d.ServeHTTP(w, r)

	return w
}

var rooted = regexp.MustCompile(`\s([a-z-]+)="(/[^"]*)"`)

func TestBelowABasePathEveryAddressIsBelowIt(t *testing.T) {
	s := openSite(t)
	s.reopen("https://example.com/team/promptspool", false)

	// What people wrote is not an address, whatever it looks like.
	const typed = `metadata. href="/elsewhere"` // a wrong line, which is shown as it is
	quoted := strings.ReplaceAll(typed, `"`, "&#34;")
	search := s.call("ann@example.com", "GET", "/requests?filter="+url.QueryEscape(typed+" ("), nil)
	if got := search.Body.String(); !strings.Contains(got, quoted) {
		t.Errorf("what was searched for is not on the page: %s", got)
	}

	seen := 0
	for _, pattern := range append([]string{"GET /nowhere", "GET /docs/deploy"}, patterns()...) {
		method, path, _ := strings.Cut(pattern, " ")
		path = strings.NewReplacer("{$}", "", "{id}", "x", "{page}", "tutorial").Replace(path)
		form := url.Values{}
		if method == http.MethodPost {
			form = s.form("ann@example.com")
		}
		for _, email := range []string{"", "ann@example.com"} {
			got := s.call(email, method, path, form)
			if to := got.Header().Get("Location"); to != "" && !strings.HasPrefix(to, "/team/promptspool/") {
				t.Errorf("%s leads to %s", pattern, to)
			}
			for _, found := range rooted.FindAllStringSubmatch(got.Body.String(), -1) {
				seen++
				if found[1] != "value" && !strings.HasPrefix(found[2], "/team/promptspool/") {
					t.Errorf("%s has %s", pattern, found[0])
				}
			}
		}
	}
	if seen < 300 {
		t.Errorf("only %d addresses were found", seen)
	}

	// The router's own redirects.
	if to := s.visit("http://localhost//docs").Header().Get("Location"); to != "/team/promptspool/docs" {
		t.Errorf("a path with two slashes leads to %q", to)
	}
}

// patterns lists what the dashboard serves.
func patterns() (all []string) {
	for _, r := range Routes() {
		all = append(all, r.Pattern)
	}
	return all
}

func TestACookieFitsTheAddress(t *testing.T) {
	s := openSite(t)
	credentials := url.Values{"email": {"vic@example.com"}, "password": {password}}
	for _, c := range []struct {
		public   string
		insecure bool
		want     http.Cookie
	}{
		{"", false, http.Cookie{Name: "__Host-promptspool", Path: "/", Secure: true}},
		{"https://example.com", false, http.Cookie{Name: "__Host-promptspool", Path: "/", Secure: true}},
		{"https://example.com/p", false, http.Cookie{Name: "__Secure-promptspool", Path: "/p", Secure: true}},
		{"", true, http.Cookie{Name: "promptspool", Path: "/"}},
		{"http://example.com/p", true, http.Cookie{Name: "promptspool", Path: "/p"}},
	} {
		s.reopen(c.public, c.insecure)
		cookie := s.call("", "POST", "/sign-in", credentials).Result().Cookies()[0]
		if cookie.Name != c.want.Name || cookie.Path != c.want.Path || cookie.Secure != c.want.Secure ||
			!cookie.HttpOnly || cookie.SameSite != http.SameSiteLaxMode || cookie.Domain != "" {
			t.Errorf("%q, insecure %v: the cookie is %s", c.public, c.insecure, cookie)
		}

		// It is the one that is read, and the one that is deleted.
		vic := s.signed["vic@example.com"]
		vic.Token = wire.Secret(cookie.Value)
		s.signed["vic@example.com"] = vic
		if got := s.call("vic@example.com", "GET", "/requests", nil); got.Code != http.StatusOK {
			t.Errorf("%q: with the cookie a page answers %d", c.public, got.Code)
		}
		out := s.call("vic@example.com", "POST", "/sign-out", s.form("vic@example.com"))
		gone := out.Result().Cookies()[0]
		if gone.Name != c.want.Name || gone.Path != c.want.Path || gone.MaxAge >= 0 {
			t.Errorf("%q: signing out sets %s", c.public, gone)
		}
	}
}

func TestTheSignInPageSaysWhyACookieDoesNotComeBack(t *testing.T) {
	s := openSite(t)
	const (
		notKept     = "your browser will not keep you signed in"
		unencrypted = "This connection is not encrypted"
		elsewhere   = "You opened this page at "
	)
	overHTTP, overHTTPS := []string{"X-Forwarded-Proto", "http"}, []string{"X-Forwarded-Proto", "https"}
	for _, c := range []struct {
		public   string
		insecure bool
		address  string
		headers  []string
		want     []string
	}{
		{"", false, "http://localhost:8788", nil, nil},
		{"", false, "http://127.0.0.1:8788", nil, nil},
		{"", false, "http://[::1]:8788", nil, nil},
		{"", false, "http://10.0.0.5:8788", nil, []string{notKept, "--cookies-insecure"}},
		{"", false, "http://10.0.0.5:8788", overHTTPS, nil},
		{"", true, "http://10.0.0.5:8788", nil, []string{unencrypted}},
		{"", true, "http://localhost:8788", nil, nil},

		{"https://example.com/p", false, "http://example.com", nil, nil},
		{"https://example.com:8443/p", false, "http://example.com", nil, nil},
		{"https://example.com/p", false, "http://example.com", overHTTP, []string{notKept}},
		{"https://example.com/p", false, "http://10.0.0.5:8788", nil, []string{
			elsewhere + "10.0.0.5:8788", `href="https://example.com/p/sign-in"`, notKept,
		}},
		{"https://example.com", false, "http://other.example", overHTTPS,
			[]string{elsewhere + "other.example"}},
		{"http://example.com", true, "http://example.com", nil, []string{unencrypted}},
	} {
		s.reopen(c.public, c.insecure)
		for _, page := range []string{"/sign-in", "/sign-up"} {
			got := s.visit(c.address+page, c.headers...).Body.String()
			for _, text := range []string{notKept, unencrypted, elsewhere} {
				wanted := slices.ContainsFunc(c.want, func(w string) bool { return strings.HasPrefix(w, text) })
				if strings.Contains(got, text) != wanted {
					t.Errorf("%+v: %s says %q: %v", c, page, text, !wanted)
				}
			}
			for _, text := range c.want {
				if !strings.Contains(got, text) {
					t.Errorf("%+v: %s does not say %q:\n%s", c, page, text, got)
				}
			}
		}
	}
}

func TestABrowserThatKeepsNoCookieIsTold(t *testing.T) {
	s := openSite(t)
	s.reopen("https://example.com/p", false)
	for referer, want := range map[string]string{
		"https://example.com/p/sign-in":      "no-cookie",
		"https://example.com/p/sign-up?x=y":  "no-cookie",
		"https://example.com/p/requests":     "",
		"https://evil.example/p/sign-in":     "",
		"https://example.com/other/sign-in/": "",
	} {
		to := s.visit("https://example.com/requests", "Referer", referer).Header().Get("Location")
		u, err := url.Parse(to)
		if err != nil || u.Path != "/p/sign-in" || u.Query().Get("next") != "/requests" {
			t.Errorf("from %s: to %s", referer, to)
		}
		if u.Query().Get("done") != want {
			t.Errorf("from %s: the notice is %q", referer, u.Query().Get("done"))
		}
	}

	// A session that has ended is another matter.
	ended := s.visit("https://example.com/requests", "Referer", "https://example.com/p/sign-in",
		"Cookie", "__Secure-promptspool=ended")
	if to := ended.Header().Get("Location"); strings.Contains(to, "no-cookie") {
		t.Errorf("with a session that has ended: to %s", to)
	}

	const notice = "your browser did not keep the session"
	if got := s.visit("https://example.com/sign-in?done=no-cookie").Body.String(); !strings.Contains(got, notice) {
		t.Errorf("the page does not say so: %s", got)
	}
}

func TestFormsOfOtherSitesAreRefusedBehindAProxy(t *testing.T) {
	s := openSite(t)
	s.reopen("https://example.com/p", false)
	for _, c := range []struct {
		host   string
		header string
		value  string
		want   int
	}{
		{"10.0.0.5:8788", "Origin", "https://example.com", http.StatusUnauthorized},
		{"10.0.0.5:8788", "Sec-Fetch-Site", "same-origin", http.StatusUnauthorized},
		{"10.0.0.5:8788", "Origin", "https://evil.example", http.StatusForbidden},
		{"10.0.0.5:8788", "Origin", "http://example.com", http.StatusForbidden},
		{"10.0.0.5:8788", "Sec-Fetch-Site", "cross-site", http.StatusForbidden},
		{"10.0.0.5:8788", "Sec-Fetch-Site", "same-site", http.StatusForbidden},
		{"example.com", "Origin", "null", http.StatusForbidden},
	} {
		body := url.Values{"email": {"x@example.com"}, "password": {"wrong, and long"}}.Encode()
		r := httptest.NewRequest("POST", "http://"+c.host+"/sign-in", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set(c.header, c.value)
		r.Header.Set("X-Forwarded-Host", "evil.example")
		w := httptest.NewRecorder()
		s.d.ServeHTTP(w, r)
		if w.Code != c.want {
			t.Errorf("at %s with %s: %s the answer is %d, want %d", c.host, c.header, c.value, w.Code, c.want)
		}
	}
}

func TestLinksForOthersHaveThePublicAddress(t *testing.T) {
	s := openSite(t)
	s.reopen("https://example.com/p", false)
	invite := s.call("ann@example.com", "POST", "/invites", s.form("ann@example.com", "role", "viewer"))
	if !strings.Contains(invite.Body.String(), "https://example.com/p/sign-up?code=") {
		t.Errorf("the invite: %s", invite.Body)
	}
	for path, want := range map[string]string{
		"/":                       "curl https://example.com/p/rest/track-request",
		"/docs/api-templates":     "https://example.com/p/rest/prompt-templates",
		"/openapi.json":           `"url": "https://example.com/p"`,
		"/llms.txt":               "](/p/docs/deploy.md)",
		"/docs/reverse-proxy":     "proxy_pass http://127.0.0.1:8788;", // what a proxy calls is not public
		"/requests?filter=nobody": `action="/p/requests"`,
	} {
		if got := s.call("ann@example.com", "GET", path, nil).Body.String(); !strings.Contains(got, want) {
			t.Errorf("%s does not have %s", path, want)
		}
	}
}
