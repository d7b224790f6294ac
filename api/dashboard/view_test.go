package dashboard

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
)

// shownHeadings matches the heading of a column of the list.
var shownHeading = regexp.MustCompile(`<th[^>]*>(?:<a[^>]*>)?([^<]+)`)

func TestABrowserRemembersColumnsAndDensity(t *testing.T) {
	s := openSite(t)
	const vic = "vic@example.com"
	s.logs(s.signed[vic].User.AccountID, "user-1", 1)

	// Each time the browser has the cookies of the time before.
	var cookies []*http.Cookie
	open := func(method, path string, form url.Values) *httptest.ResponseRecorder {
		r := s.request(vic, method, path, form)
		for _, c := range cookies {
			r.AddCookie(c)
		}
		w := httptest.NewRecorder()
		s.d.ServeHTTP(w, r)
		if set := w.Result().Cookies(); len(set) > 0 {
			cookies = set
		}
		return w
	}
	list := func(path, headings string, compact bool) {
		t.Helper()
		page := open("GET", path, nil).Body.String()
		var got []string
		for _, m := range shownHeading.FindAllStringSubmatch(page, -1) {
			got = append(got, m[1])
		}
		if strings.Join(got, ", ") != headings || strings.Contains(page, `class="list compact"`) != compact {
			t.Errorf("%s has the columns %q, compact or not; want %s, %t", path, got, headings, compact)
		}
	}
	const usual = "Started, Template, Input → output, Latency, Cost"
	list("/requests", usual, false)

	form := s.form(vic, "density", "compact", "filter", "user_id:user-1", "sort", "cost")
	form["col"] = []string{"cost", "model", "no column"}
	to := open("POST", "/requests/view", form).Header().Get("Location")
	if to != "/requests?col=model&col=cost&filter=user_id%3Auser-1&sort=cost" {
		t.Errorf("it leads to %s", to)
	}
	list(to, "Started, Model, Cost", true)
	list("/requests", "Started, Model, Cost", true)
	list("/requests?col=tags", "Started, Tags", true) // somebody sent the address to show its columns

	form = s.form(vic)
	form["col"] = []string{"template", "call", "latency", "cost", "score"}
	if to := open("POST", "/requests/view", form).Header().Get("Location"); to != "/requests" {
		t.Errorf("the usual view leads to %s", to)
	}
	list("/requests", usual, false)
}
