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

// done sends a form, follows to the page that reports it, and returns that page with its offer to
// undo.
func (s *site) done(email, path string, form url.Values) (page, sealed string) {
	s.t.Helper()
	r := s.call(email, "POST", path, form)
	if r.Code != http.StatusSeeOther {
		s.t.Fatalf("%s answers %d: %s", path, r.Code, r.Body)
	}
	to := r.Header().Get("Location")
	page = s.call(email, "GET", to, nil).Body.String()
	_, sealed, _ = strings.Cut(page, `name="undo" value="`)
	sealed, _, _ = strings.Cut(sealed, `"`)

	return page, sealed
}

// labelVersion returns the version that a label points to, "" if there is no such label.
func labelVersion(labels []wire.Label, name string) string {
	i := slices.IndexFunc(labels, func(l wire.Label) bool { return l.Name == name })
	if i < 0 {
		return ""
	}

	return strconv.Itoa(labels[i].Version)
}

func TestWhatWasJustDoneCanBeUndone(t *testing.T) {
	s := openSite(t)
	const ann, eve = "ann@example.com", "eve@example.com"
	id := s.as(ann)
	for range 3 {
		if _, err := s.drafts.Publish(t.Context(), id, wire.Publish{
			PublishedName:    wire.PublishedName{Name: "greet"},
			PublishedVersion: wire.PublishedVersion{Blueprint: json.RawMessage(`{"content":"` + wire.NewID() + `"}`)},
		}); err != nil {
			t.Fatal(err)
		}
	}
	person := s.signed[eve].User.ID

	for _, step := range []struct {
		path, says, back string
		form             []string
	}{
		{"/template/label", "prod is a new label and points to version 2.", "",
			[]string{"label", "prod", "version", "2"}},
		{"/template/label", "prod is a new label and points to version 1.", "keep",
			[]string{"label", "prod", "version", "1"}},
		{"/template/label", "prod now points to version 3 (was 1).", "", []string{"label", "prod", "version", "3"}},
		{"/template/label/delete", "The label prod was deleted (was version 1).", "", []string{"label", "prod"}},
		{"/template/archive", "The template is archived.", "", nil},
		{"/people/" + person + "/role", eve + " now has the role viewer (was editor)", "", []string{"role", "viewer"}},
		{"/people/" + person + "/disabled", eve + " can no longer sign in.", "", []string{"disabled", "true"}},
	} {
		page, sealed := s.done(ann, step.path, s.form(ann, append(step.form, "name", "greet", "compared", "true")...))
		if !strings.Contains(page, step.says) || sealed == "" {
			t.Errorf("%s %v is reported without %q, or cannot be undone: %s", step.path, step.form, step.says, page)
			continue
		}
		if step.back != "" {
			continue
		}

		page, _ = s.done(ann, "/undo", s.form(ann, "undo", sealed))
		says := "Undone: it is as it was before."
		if step.path == "/template/label/delete" {
			says = "The label was created again, with a new ID."
		}
		if !strings.Contains(page, says) {
			t.Errorf("%s %v is not undone: %s", step.path, step.form, page)
		}
		// A second time it is not what it was.
		if r := s.call(ann, "POST", "/undo", s.form(ann, "undo", sealed)); r.Code != http.StatusConflict {
			t.Errorf("%s %v is undone twice: %d", step.path, step.form, r.Code)
		}
	}

	head, err := s.drafts.Head(t.Context(), id, "greet")
	if err != nil || head.DeletedAt != nil || labelVersion(head.Labels, "prod") != "1" {
		t.Errorf("in the end the template is %+v, %v", head, err)
	}
	members, err := s.people.Members(t.Context(), s.signed[ann].User)
	for _, m := range members {
		if m.Email == eve && (m.Role != wire.RoleEditor || m.DisabledAt != nil) {
			t.Errorf("in the end the person is %+v, %v", m, err)
		}
	}
}

func TestADisableThatWasMadeAgainIsNotUndone(t *testing.T) {
	s := openSite(t)
	const ann, eve = "ann@example.com", "eve@example.com"
	person := s.signed[eve].User.ID
	disable := func() (page, sealed string) {
		return s.done(ann, "/people/"+person+"/disabled", s.form(ann, "disabled", "true"))
	}
	_, sealed := disable()

	// As another owner would in another session.
	for _, disabled := range []bool{false, true} {
		if _, err := s.people.SetDisabled(t.Context(), s.signed[ann].User, person, disabled); err != nil {
			t.Fatal(err)
		}
	}
	if r := s.call(ann, "POST", "/undo", s.form(ann, "undo", sealed)); r.Code != http.StatusConflict {
		t.Errorf("somebody else's change is undone: %d", r.Code)
	}

	if page, sealed := disable(); sealed != "" || !strings.Contains(page, eve+" can no longer sign in.") {
		t.Errorf("what somebody else had done before can be undone: %s", page)
	}
}

func TestAnUndoIsThatOfItsSessionForAWhile(t *testing.T) {
	s := openSite(t)
	const ann, eve = "ann@example.com", "eve@example.com"
	now := time.Now()
	s.d.Now = func() time.Time { return now }
	person := s.signed[eve].User.ID
	role := func(role string) (page, sealed string) {
		return s.done(ann, "/people/"+person+"/role", s.form(ann, "role", role))
	}
	_, sealed := role("viewer")

	// What others seal, or change, is nothing that a page offers.
	const mallory = "mallory@example.com"
	version := wire.Publish{
		PublishedName:    wire.PublishedName{Name: "greet"},
		PublishedVersion: wire.PublishedVersion{Blueprint: json.RawMessage(`{"content":"Hi."}`)},
	}
	if _, err := s.drafts.Publish(t.Context(), s.as(mallory), version); err != nil {
		t.Fatal(err)
	}
	label := s.form(mallory, "name", "greet", "label", "prod", "version", "1")
	_, foreign := s.done(mallory, "/template/label", label)
	seals := map[string]string{"another session's": foreign, "a changed one": "x" + sealed, "none": "."}
	for what, seal := range seals {
		page := s.call(ann, "GET", "/people?undo="+url.QueryEscape(seal), nil).Body.String()
		says := strings.Contains(page, "now has the role") || strings.Contains(page, "is a new label")
		if seal == "" || says || strings.Contains(page, `name="undo"`) {
			t.Errorf("%s is offered", what)
		}
		if r := s.call(ann, "POST", "/undo", s.form(ann, "undo", seal)); r.Code != http.StatusUnprocessableEntity {
			t.Errorf("%s is carried out: %d", what, r.Code)
		}
	}

	// Another change since, and the time, end it.
	if _, err := s.people.SetRole(t.Context(), s.signed[ann].User, person, wire.RoleOwner); err != nil {
		t.Fatal(err)
	}
	r := s.call(ann, "POST", "/undo", s.form(ann, "undo", sealed))
	if r.Code != http.StatusConflict || !strings.Contains(r.Body.String(), "changed meanwhile") {
		t.Errorf("a role that was changed again is undone: %d %s", r.Code, r.Body)
	}
	_, sealed = role("viewer")
	now = now.Add(31 * time.Second)
	if page := s.call(ann, "GET", "/people?undo="+sealed, nil).Body.String(); strings.Contains(page, `name="undo"`) {
		t.Error("it is still offered after 30 seconds")
	}
	now = now.Add(5 * time.Second)
	if r := s.call(ann, "POST", "/undo", s.form(ann, "undo", sealed)); r.Code != http.StatusConflict {
		t.Errorf("it is undone after 36 seconds: %d", r.Code)
	}
}
