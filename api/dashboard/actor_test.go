package dashboard

import (
	"encoding/json"
	"strings"
	"testing"

	"promptspool/api/wire"
)

// A version says "key CI", and not key_rbznfc3qzpiq.
func TestWhatAKeyDidIsShownByItsName(t *testing.T) {
	s := openSite(t)
	const ann = "ann@example.com"
	u := s.signed[ann].User
	_, k, err := s.config.Keys.CreateKey(t.Context(), u.AccountName, "CI", wire.ScopeFull)
	if err != nil {
		t.Fatal(err)
	}
	id := s.as(ann)
	id.KeyID = k.ID
	p := wire.Publish{Name: "greet", Blueprint: json.RawMessage(`{"content":"Hi."}`), Labels: []string{"prod"}}
	if _, err := s.drafts.Publish(t.Context(), id, p); err != nil {
		t.Fatal(err)
	}

	page := s.call(ann, "GET", "/template?name=greet", nil).Body.String()
	if n := strings.Count(page, "key CI"); n != 3 || strings.Contains(page, k.ID) {
		t.Errorf("the key's name is shown %d times, its id %t; want the version twice and its label",
			n, strings.Contains(page, k.ID))
	}

	for actor, want := range map[string]string{
		"key " + k.ID:           "key CI",
		k.ID:                    "key CI",
		"key_gone":              "key_gone",
		"key_board@example.com": "key_board@example.com",
		ann:                     ann,
	} {
		by := wire.User{AccountID: u.AccountID, Email: actor}
		if err := s.people.Note(t.Context(), by, "try", "", ""); err != nil {
			t.Fatal(err)
		}
		if log := s.call(ann, "GET", "/audit", nil); !says(log, "<td>"+want+"</td><td>try</td>") {
			t.Errorf("what %s did is not shown as by %s: %s", actor, want, log.Body)
		}
	}
}

func TestExportsAreInTheAuditLog(t *testing.T) {
	s := openSite(t)
	const ann, vic = "ann@example.com", "vic@example.com"
	s.logs(ann, "user-1", 1)
	if r := s.call(vic, "GET", "/requests/export?format=csv&filter=user_id:user-1", nil); r.Code != 200 {
		t.Fatalf("%d %s", r.Code, r.Body)
	}
	log := s.call(ann, "GET", "/audit", nil).Body.String()
	want := "<td>" + vic + `</td><td>export requests</td><td class="wrap">csv</td><td class="wrap">user_id:user-1</td>`
	if !strings.Contains(log, want) {
		t.Errorf("the export is not in the audit log: %s", log)
	}
}
