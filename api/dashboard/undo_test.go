package dashboard

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"promptspool/api/wire"
)

// done sends a form, and returns the page that reports it.
func (s *site) done(email, path string, form url.Values) (page string) {
	s.t.Helper()
	r := s.call(email, "POST", path, form)
	if r.Code != http.StatusSeeOther {
		s.t.Fatalf("%s answers %d: %s", path, r.Code, r.Body)
	}

	return s.call(email, "GET", r.Header().Get("Location"), nil).Body.String()
}

// labelVersion returns the version that a label points to, "" if there is no such label.
func labelVersion(labels []wire.Label, name string) string {
	i := slices.IndexFunc(labels, func(l wire.Label) bool { return l.Name == name })
	if i < 0 {
		return ""
	}

	return strconv.Itoa(labels[i].Version)
}

func TestAMoveOfALabelIsTakenBackForAWhile(t *testing.T) {
	s := openSite(t)
	const ann, eve, offer = "ann@example.com", "eve@example.com", `<button>Undo</button>`
	now := time.Now()
	s.d.Now = func() time.Time { return now }
	id := s.as(ann)
	for range 3 {
		if _, err := s.drafts.Publish(t.Context(), id, wire.Publish{
			PublishedName:    wire.PublishedName{Name: "greet"},
			PublishedVersion: wire.PublishedVersion{Blueprint: json.RawMessage(`{"content":"` + wire.NewID() + `"}`)},
		}); err != nil {
			t.Fatal(err)
		}
	}
	points := func(form ...string) url.Values {
		return s.form(ann, append(form, "name", "greet", "label", "prod", "compared", "true")...)
	}

	// A new label is not offered to be taken back, nor one that stays where it was.
	for range 2 {
		page := s.done(ann, "/template/label", points("version", "1"))
		if !strings.Contains(page, "The label now points to this version.") || strings.Contains(page, offer) {
			t.Errorf("the new label is reported so: %s", page)
		}
	}
	page := s.done(ann, "/template/label", points("version", "3"))
	if !strings.Contains(page, "prod now points to version 3 (was 1).") || !strings.Contains(page, offer) {
		t.Errorf("the move is reported so: %s", page)
	}
	if page := s.call(eve, "GET", "/template?name=greet", nil).Body.String(); strings.Contains(page, offer) {
		t.Error("another person is offered to take it back")
	}

	back := points("version", "1", "from", "3")
	page = s.done(ann, "/template/label", back)
	if !strings.Contains(page, "prod now points to version 1 (was 3).") {
		t.Errorf("it is not taken back: %s", page)
	}
	if r := s.call(ann, "POST", "/template/label", back); r.Code != http.StatusConflict {
		t.Errorf("what has been changed since is taken back: %d", r.Code)
	}

	now = now.Add(31 * time.Second)
	if page := s.call(ann, "GET", "/template?name=greet", nil).Body.String(); strings.Contains(page, offer) {
		t.Error("it is still offered after 30 seconds")
	}
	now = now.Add(-31 * time.Second)
	page = s.done(ann, "/template/label/delete", points())
	if !strings.Contains(page, "The label was deleted.") || strings.Contains(page, offer) {
		t.Errorf("the deletion is reported so: %s", page)
	}
	head, err := s.drafts.Head(t.Context(), id, "greet")
	if err != nil || labelVersion(head.Labels, "prod") != "" {
		t.Errorf("in the end the template is %+v, %v", head, err)
	}
}
