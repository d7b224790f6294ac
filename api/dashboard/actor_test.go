package dashboard

import (
	"context"
	"encoding/json"
	"fmt"
	"html"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"promptspool/api/wire"
)

// A version says "key CI", and not key_rbznfc3qzpiq.
func TestWhatAKeyDidIsShownByItsName(t *testing.T) {
	s := openSite(t)
	const ann = "ann@example.com"
	u := s.signed[ann].User
	_, k, err := s.config.Keys.CreateKey(t.Context(),
		wire.NewKey{Account: u.AccountName, Name: "CI", Scope: wire.ScopeFull})
	if err != nil {
		t.Fatal(err)
	}
	id := s.as(ann)
	id.KeyID = k.ID
	p := wire.Publish{
		PublishedName:    wire.PublishedName{Name: "greet"},
		PublishedVersion: wire.PublishedVersion{Blueprint: json.RawMessage(`{"content":"Hi."}`)},
		PublishedPlace:   wire.PublishedPlace{Labels: []string{"prod"}},
	}
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
	if r := s.call(vic, "GET", "/requests/export?format=csv&filter=user:user-1", nil); r.Code != 200 {
		t.Fatalf("%d %s", r.Code, r.Body)
	}
	log := s.call(ann, "GET", "/audit", nil).Body.String()
	want := "<td>" + vic + `</td><td>export requests</td><td class="wrap name">csv</td>` +
		`<td class="wrap">user:user-1</td>`
	if !strings.Contains(log, want) {
		t.Errorf("the export is not in the audit log: %s", log)
	}
}

// An entry says where it came from. The log is filtered by words and days, and saved as it is shown.
func TestTheAuditLogIsFilteredAndSaved(t *testing.T) {
	s := openSite(t)
	const ann = "ann@example.com"
	for i, action := range []string{"create key", "move label", "delete requests"} {
		e := wire.AuditEntry{
			ID:     wire.NewIDAt(time.Date(2026, 3, 10+i, 12, 0, 0, 0, time.UTC)),
			At:     time.Date(2026, 3, 10+i, 12, 0, 0, 0, time.UTC),
			Actor:  "kim@example.com",
			Action: action,
		}
		from := context.WithValue(t.Context(), wire.FromKey, fmt.Sprintf("203.0.113.%d", i))
		if err := s.store.Audit(from, s.signed[ann].User.AccountID, e); err != nil {
			t.Fatal(err)
		}
	}

	for query, want := range map[string]string{
		"q=KIM":                             "delete requests, move label, create key",
		"q=kim&since=2026-03-11":            "delete requests, move label",
		"q=kim&until=2026-03-11":            "move label, create key",
		"since=2026-03-11&until=2026-03-11": "move label",
		"q=203.0.113.2":                     "delete requests",
		"q=nothing+such":                    "",
	} {
		var shown, saved []string
		page := s.call(ann, "GET", "/audit?"+query, nil).Body.String()
		rows := regexp.MustCompile(`<td>kim@example.com</td><td>([a-z ]+)</td>`)
		for _, m := range rows.FindAllStringSubmatch(page, -1) {
			shown = append(shown, m[1])
		}
		link := html.UnescapeString(regexp.MustCompile(`href="(/audit/export[^"]*)"`).FindStringSubmatch(page)[1])
		for line := range strings.Lines(s.call(ann, "GET", link, nil).Body.String()) {
			var e wire.AuditEntry
			if err := json.Unmarshal([]byte(line), &e); err != nil {
				t.Fatal(err)
			}
			if e.Actor == "kim@example.com" {
				saved = append(saved, e.Action)
			}
		}
		if got := strings.Join(shown, ", "); got != want || !slices.Equal(shown, saved) {
			t.Errorf("%s: shown are %q, saved %q; want %s", query, shown, saved, want)
		}
	}

	bad := s.call(ann, "GET", "/audit?since=yesterday", nil)
	if bad.Code != 422 || !says(bad, "must be a date such as") {
		t.Errorf("a wrong day answers %d: %s", bad.Code, bad.Body)
	}
}
