package dashboard_test

import (
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"

	"promptspool/api/dashboard"
)

// documentation returns the answer for a page of the documentation without a sign-in.
func documentation(path, host string) *httptest.ResponseRecorder {
	w, r := httptest.NewRecorder(), httptest.NewRequest("GET", path, nil)
	r.Host = host
	dashboard.NewDocs("1.0", slog.New(slog.DiscardHandler)).ServeHTTP(w, r)

	return w
}

func TestTheDocumentationNeedsNobody(t *testing.T) {
	for path, want := range map[string]struct {
		status int
		says   string
	}{
		"/docs":            {200, `<a href="/docs/limits">Limits</a>`},
		"/docs/limits":     {200, `rel="next"`},
		"/docs/limits.md":  {200, "# Limits\n"},
		"/llms.txt":        {200, "(/docs/limits.md)"},
		"/openapi.json":    {200, `"version": "1.0"`},
		"/docs/none":       {404, `<a class="button primary" href="/docs">Documentation</a>`},
		"/docs/none.md":    {404, "There is no page"},
		"/sign-in":         {404, "There is no page"},
		"/":                {404, `href="/docs"`},
		"/static/icon.svg": {200, "<svg"},

		"/docs/pictures/parts.svg": {200, "<svg"},
		"/docs/pictures/none.webp": {404, ""},
	} {
		got := documentation(path, "localhost:8787")
		if got.Code != want.status || !strings.Contains(got.Body.String(), want.says) {
			t.Errorf("%s: status %d, body %.300s", path, got.Code, got.Body)
		}

		policy := got.Header().Get("Content-Security-Policy")
		if !strings.Contains(policy, "default-src 'none'") || strings.Contains(policy, "unsafe") {
			t.Errorf("%s: the policy is %q", path, policy)
		}

		if strings.Contains(got.Body.String(), "/sign-in") {
			t.Errorf("%s leads to a sign-in that does not exist", path)
		}
	}
}

func TestTheDocumentationShowsTheReadersAddressAsText(t *testing.T) {
	got := documentation("/docs/log-curl", `a"><script>alert(1)</script>`).Body.String()
	if strings.Contains(got, "<script>alert") ||
		!strings.Contains(got, "http://a&#34;&gt;&lt;script&gt;alert(1)&lt;/script&gt;/rest/track-request") {
		t.Error("the Host header is not escaped, or not shown")
	}
}

func TestALongHostIsNotRepeatedInEachExample(t *testing.T) {
	usual := documentation("/docs/log-curl", "127.0.0.1:8787").Body.Len()
	long := documentation("/docs/log-curl", strings.Repeat("x", 10_000)).Body.Len()
	if long > usual+100 {
		t.Errorf("the page has %d bytes with a long host, and %d with a usual one", long, usual)
	}
}

func TestTheDocumentationIsSearched(t *testing.T) {
	for query, want := range map[string]string{
		"port+in+use":              `<a href="/docs/troubleshooting#address-already-in-use">`,
		"jinja":                    `<mark class="hit">jinja</mark>`,
		"%3Cqzx%3E":                "No page has “&lt;qzx&gt;”",
		strings.Repeat("x", 1_000): "No page has",
		"++":                       "Ten-minute tutorial",
	} {
		got := documentation("/docs?q="+query, "localhost")
		body := strings.ToLower(got.Body.String())
		if got.Code != 200 || !strings.Contains(body, strings.ToLower(want)) {
			t.Errorf("%.20s: status %d, body without %s", query, got.Code, want)
		}
	}
}
