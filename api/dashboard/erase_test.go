package dashboard

import (
	"net/http"
	"strings"
	"testing"

	"promptspool/api/wire"
)

// logs writes requests of a user as a sidecar delivers them, and returns their ids.
func (s *site) logs(email, user string, n int) (ids []string) {
	s.t.Helper()
	for range n {
		e := newEvent(wire.KindRequest, `{"function_name":"f","kwargs":{},"request_response":{},
			"request_start_time":1,"request_end_time":2,"metadata":{"user_id":"`+user+`"}}`)
		s.record(email, e)
		ids = append(ids, e.RequestID)
	}

	return ids
}

func TestOwnersDeleteWhatThePageHasCounted(t *testing.T) {
	s := openSite(t)
	const ann, vic, mallory = "ann@example.com", "vic@example.com", "mallory@example.com"
	ids := s.logs(ann, "user-42", 3)
	s.logs(ann, "user-1", 2)
	s.logs(mallory, "user-42", 1)
	counts := func(email, want string) {
		t.Helper()
		page := s.call(email, "GET", "/requests/delete?key=user_id&value=user-42", nil)
		if !strings.Contains(page.Body.String(), "deletes <strong>"+want+"</strong>") {
			t.Errorf("%s is asked %s", email, page.Body)
		}
	}

	one := s.call(ann, "GET", "/requests/delete?id="+ids[0], nil).Body.String()
	if !strings.Contains(one, "Delete 1 request<") || !strings.Contains(one, "key=user_id&amp;value=user-42") {
		t.Errorf("the page of one asks %s", one)
	}
	if r := s.call(ann, "POST", "/requests/delete", s.form(ann, "id", ids[0])); r.Code != http.StatusSeeOther {
		t.Errorf("%d %s", r.Code, r.Body)
	}
	if r := s.call(ann, "GET", "/requests/"+ids[0], nil); r.Code != http.StatusNotFound {
		t.Errorf("the deleted request answers %d", r.Code)
	}

	counts(ann, "2 requests")
	if r := s.call(vic, "POST", "/requests/delete", s.form(vic, "id", ids[1])); r.Code != http.StatusForbidden {
		t.Errorf("a viewer deletes: %d", r.Code)
	}
	// The list stays as it was, and has the number of what was deleted.
	const list = "col=model&filter=status%3Asuccess&order=asc&sort=latency_ms"
	asks := s.call(ann, "GET", "/requests/delete?key=user_id&value=user-42&"+list, nil).Body.String()
	kept := []string{"filter", "status:success", "col", "model", "sort", "latency_ms", "order", "asc"}
	for i := 0; i < len(kept); i += 2 {
		if n := strings.Count(asks, `name="`+kept[i]+`" value="`+kept[i+1]+`"`); n != 2 {
			t.Errorf("%d forms of two keep %s", n, kept[i])
		}
	}
	page := s.done(ann, "/requests/delete", s.form(ann, append(kept, "key", "user_id", "value", "user-42")...))
	if !strings.Contains(page, "The requests were deleted.") ||
		!strings.Contains(page, `name="filter" value="status:success"`) {
		t.Errorf("the deletion is reported by %s", page)
	}
	counts(ann, "0 requests")
	counts(mallory, "1 request")

	// Nothing chosen deletes nothing.
	for _, form := range [][]string{{}, {"key", "user_id"}, {"id", ids[1], "key", "user_id", "value", "user-1"}} {
		r := s.call(ann, "POST", "/requests/delete", s.form(ann, form...))
		if r.Code != http.StatusUnprocessableEntity {
			t.Errorf("%v: %d %s", form, r.Code, r.Body)
		}
	}

	log := s.call(ann, "GET", "/audit", nil).Body.String()
	for _, want := range []string{
		"delete requests", "request " + ids[0], "all with one value of user_id", "2 records, 2 events",
	} {
		if !strings.Contains(log, want) {
			t.Errorf("the audit log has no %q", want)
		}
	}
	if strings.Contains(log, "user-42") {
		t.Error("the audit log names who asked to be forgotten")
	}
}
