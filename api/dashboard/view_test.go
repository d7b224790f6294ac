package dashboard

import (
	"net/http/httptest"
	"strings"
	"testing"
)

func TestABrowserRemembersColumnsAndDensity(t *testing.T) {
	s := openSite(t)
	const vic = "vic@example.com"
	s.logs(vic, "user-1", 1)
	form := s.form(vic, "density", "compact", "filter", "user_id:user-1", "sort", "cost")
	form["col"] = []string{"cost", "model", "no column"}
	answer := s.call(vic, "POST", "/requests/view", form)
	to := answer.Header().Get("Location")
	if to != "/requests?col=model&col=cost&filter=user_id%3Auser-1&sort=cost" {
		t.Errorf("it leads to %s", to)
	}

	// Columns in the address win: somebody sent it to show them.
	for path, column := range map[string]string{"/requests": "Model", to: "Model", "/requests?col=tags": "Tags"} {
		r := s.request(vic, "GET", path, nil)
		r.AddCookie(answer.Result().Cookies()[0])
		page := httptest.NewRecorder()
		s.d.ServeHTTP(page, r)
		if !says(page, `class="list compact"`) || !says(page, "<th>"+column+"</th>") || says(page, "Template</th>") {
			t.Errorf("%s shows other columns than %s, or is not compact: %s", path, column, page.Body)
		}
	}

	form = s.form(vic)
	form["col"] = strings.Fields("template call latency cost score")
	if to := s.call(vic, "POST", "/requests/view", form).Header().Get("Location"); to != "/requests" {
		t.Errorf("the usual view leads to %s", to)
	}
}
