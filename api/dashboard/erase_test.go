package dashboard

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"promptspool/api/wire"
)

// logs writes requests of a user as a sidecar delivers them, and returns their ids.
func (s *site) logs(account, user string, n int) (ids []string) {
	s.t.Helper()
	id := wire.Identity{Account: account, KeyID: "k", Scope: wire.ScopeFull, Verified: true}
	for range n {
		e := wire.Event{ID: wire.NewID(), Kind: wire.KindRequest, RequestID: wire.NewID(), AcceptedAt: time.Now().UTC()}
		e.Body, _ = json.Marshal(map[string]any{
			"function_name": "f", "kwargs": map[string]any{}, "request_response": map[string]any{},
			"request_start_time": 1, "request_end_time": 2, "metadata": map[string]string{"user_id": user},
		})
		if _, err := s.records.Record(s.t.Context(), id, []wire.Event{e}); err != nil {
			s.t.Fatal(err)
		}
		ids = append(ids, e.RequestID)
	}

	return ids
}

func TestOwnersDeleteWhatThePageHasCounted(t *testing.T) {
	s := openSite(t)
	const ann, vic = "ann@example.com", "vic@example.com"
	ours, theirs := s.signed[ann].User.AccountID, s.signed["mallory@example.com"].User.AccountID
	ids := s.logs(ours, "user-42", 3)
	s.logs(ours, "user-1", 2)
	s.logs(theirs, "user-42", 1)
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
	page, sealed := s.done(ann, "/requests/delete", s.form(ann, append(kept, "key", "user_id", "value", "user-42")...))
	if !strings.Contains(page, "Deleted: 2 records, 2 events.") || sealed != "" ||
		!strings.Contains(page, `name="filter" value="status:success"`) {
		t.Errorf("the deletion is reported by %s", page)
	}
	counts(ann, "0 requests")
	counts("mallory@example.com", "1 request")

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
