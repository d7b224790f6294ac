package api_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"promptspool/api"
	"promptspool/api/wire"
)

// onePage is a dashboard with the page /requests.
type onePage struct{}

func (onePage) Serves(path string) bool { return path == "/requests" }

func (onePage) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/html")
	if r.URL.Path != "/requests" {
		w.WriteHeader(http.StatusNotFound)
	}
	fmt.Fprint(w, "the page for ", r.URL.Path)
}

func (onePage) Refuse(w http.ResponseWriter, _ *http.Request, err error) {
	w.Header().Set("Content-Type", "text/html")
	w.WriteHeader(wire.AsError(err).Status())
	fmt.Fprint(w, "the page of an error")
}

// visit makes a call as a browser does, with headers given as pairs.
func visit(t *testing.T, method, url string, body io.Reader, headers ...string) (res *http.Response, text string) {
	t.Helper()
	r, err := http.NewRequest(method, url, body)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		if headers[i+1] != "" {
			r.Header.Set(headers[i], headers[i+1])
		}
	}
	res, err = http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	all, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}

	return res, string(all)
}

func TestBrowsersGetPagesAndProgramsGetJSON(t *testing.T) {
	_, addr := startTCP(t, func(c *api.Config) { c.Pages = onePage{} })
	const (
		browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
		program = "*/*"
	)
	for _, tt := range []struct {
		method, path, accept string
		bytes, status        int
		kind, says           string
	}{
		{"GET", "/requests", program, 0, 200, "text/html", "/requests"},
		{"GET", "/nowhere", browser, 0, 404, "text/html", "/nowhere"},
		{"GET", "/nowhere/at/all", browser, 0, 404, "text/html", "/nowhere/at/all"},
		{"GET", "/%25zz", browser, 0, 404, "text/html", "zz"},
		{"POST", "/requests", browser, 5 << 20, 413, "text/html", "the page of an error"},

		{"GET", "/nowhere", program, 0, 404, "application/json", "no route"},
		{"GET", "/nowhere", "", 0, 404, "application/json", "no route"},
		// Some HTTP libraries accept text/html by default.
		{"GET", "/rest/nowhere", browser, 0, 404, "application/json", "no route"},
		{"GET", "/api/public/v9", browser, 0, 404, "application/json", "no route"},
		{"GET", "/rest/track-request", browser, 0, 405, "application/json", "takes POST"},
		{"POST", "/rest/track-request", browser, 2, 401, "application/json", "key is missing"},
	} {
		var body io.Reader
		if tt.bytes > 0 {
			body = strings.NewReader("{}" + strings.Repeat(" ", tt.bytes-2))
		}

		res, got := visit(t, tt.method, "http://"+addr+tt.path, body, "Accept", tt.accept)
		kind := res.Header.Get("Content-Type")
		isWanted := strings.HasPrefix(kind, tt.kind) && strings.Contains(got, tt.says)
		if res.StatusCode != tt.status || !isWanted {
			t.Errorf("%s %s for %q: %d %s %q, want %d %s with %q",
				tt.method, tt.path, tt.accept, res.StatusCode, kind, got, tt.status, tt.kind, tt.says)
		}
	}
}
