package dashboard

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"promptspool/api/access"
	"promptspool/api/wire"
)

// offering finds what a page offers: where its forms are sent, and where its links lead.
var offering = regexp.MustCompile(
	`<form method="(post)" action="([^"]+)"|<a [^>]*?href="(/[^"]*)"|formaction="([^"]+)"`)

// offers returns the patterns of the forms and links that somebody sees on some pages.
func (s *site) offers(mux *http.ServeMux, email string, pages []string) map[string]bool {
	s.t.Helper()
	seen := map[string]bool{}
	for _, page := range pages {
		body := s.call(email, "GET", page, nil).Body.String()
		for _, m := range offering.FindAllStringSubmatch(body, -1) {
			method, target := http.MethodGet, m[3]
			if m[1]+m[4] != "" {
				method, target = http.MethodPost, m[2]+m[4]
			}
			path, _, _ := strings.Cut(target, "?")
			if _, pattern := mux.Handler(httptest.NewRequest(method, path, nil)); pattern != "" {
				seen[pattern] = true
			}
		}
	}

	return seen
}

// Everybody sees the buttons and links of what the table lets them do, and of nothing else.
func TestPagesOfferWhatARoleMayDo(t *testing.T) {
	s := openSite(t)
	const ann = "ann@example.com"
	pages, _ := s.furnished(ann)
	mux := http.NewServeMux()
	for _, r := range Routes() {
		mux.HandleFunc(r.Pattern, func(http.ResponseWriter, *http.Request) {})
	}

	owners := s.offers(mux, ann, pages)
	for _, button := range []string{"POST /keys/{id}/revoke", "POST /people/{id}/role", "POST /template/label",
		"POST /requests/{id}/score", "GET /requests/delete", "GET /audit/export"} {
		if !owners[button] {
			t.Errorf("an owner is not offered %s", button)
		}
	}
	for email, signed := range s.signed {
		role := signed.User.Role
		if signed.User.AccountID != s.signed[ann].User.AccountID {
			continue
		}

		want := map[string]bool{}
		for pattern := range owners {
			if role.Includes(access.Role(pattern)) || access.Role(pattern) == "" {
				want[pattern] = true
			}
		}
		got := s.offers(mux, email, pages)
		if !maps.Equal(got, want) {
			t.Errorf("a %s is offered %q, want %q", role,
				slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
		}
	}
}

// What has an id in its address does not exist for the owner of another project.
func TestAnotherProjectsThingsDoNotExist(t *testing.T) {
	s := openSite(t)
	const ann, mallory = "ann@example.com", "mallory@example.com"
	_, ids := s.furnished(ann)
	tried := 0
	for _, r := range Routes() {
		method, path, _ := strings.Cut(r.Pattern, " ")
		id := ids[strings.Split(path, "/")[1]]
		if !strings.Contains(path, "{id}") || id == "" {
			continue
		}

		tried++
		address := strings.Replace(path, "{id}", id, 1) + "?of=curl"
		form := s.form(mallory, "score", "1", "role", "viewer", "disabled", "true", "overlap", "1h")
		got := s.call(mallory, method, address, form)
		if got.Code != http.StatusNotFound {
			t.Errorf("%s of another project answers %d: %s", r.Pattern, got.Code, got.Body)
		}
		if got := s.call(ann, method, address, s.form(ann)); got.Code == http.StatusNotFound {
			t.Errorf("%s does not exist for its owner", r.Pattern)
		}
	}
	if tried < 9 {
		t.Errorf("only %d pages were tried", tried)
	}
}

func TestTenTabsHaveTenNames(t *testing.T) {
	s := openSite(t)
	const ann = "ann@example.com"
	pages, _ := s.furnished(ann)
	pages = append(pages, "/requests?filter=status:error", "/templates?q=plan", "/audit?q=publish")
	titled := map[string]string{}
	for _, page := range pages {
		for _, title := range s.links(ann, page, `<title>([^<]*)</title>`) {
			if other := titled[title]; other != "" {
				t.Errorf("%s and %s are both %q", other, page, title)
			}
			titled[title] = page
		}
	}
	if len(titled) < 20 {
		t.Errorf("only %d pages have a title: %q", len(titled), titled)
	}
}

// furnished fills a project with one thing of each kind. It returns all pages that show them, and
// their ids by the first part of their addresses.
func (s *site) furnished(email string) (pages []string, ids map[string]string) {
	s.t.Helper()
	must := func(err error) {
		s.t.Helper()
		if err != nil {
			s.t.Fatal(err)
		}
	}

	owner := s.signed[email].User
	_, err := s.drafts.Publish(s.t.Context(), s.as(email), wire.Publish{
		PublishedName:    wire.PublishedName{Name: "plan"},
		PublishedVersion: wire.PublishedVersion{Blueprint: json.RawMessage(`{"content":"hush"}`)},
		PublishedPlace:   wire.PublishedPlace{Labels: []string{"prod"}},
	})
	must(err)
	_, key, err := s.config.Keys.CreateKey(s.t.Context(),
		wire.NewKey{Account: owner.AccountName, Name: "CI", Scope: wire.ScopeApp})
	must(err)
	_, invite, err := s.people.Invite(s.t.Context(), owner, wire.RoleViewer)
	must(err)
	e := newEvent(wire.KindRequest, `{"function_name":"f","kwargs":{"model":"hush-1"},"request_response":{},
		"request_start_time":1,"request_end_time":2,"metadata":{"session_id":"talk"}}`)
	s.record(email, e)
	s.logs(email, "u", 2) // a call to review for each of three people

	must(s.store.DefineScore(s.t.Context(), s.as(email), wire.ScoreDefinition{Name: "tone", Kind: "category"}))
	must(s.store.PutReviewQueue(s.t.Context(), s.as(email), wire.ReviewQueue{Name: "rude", Scores: []string{"tone"}}))

	must(s.store.PutView(s.t.Context(), s.as(email), wire.View{Name: "wide", Address: "/users"}))
	for _, signed := range s.signed {
		if signed.User.AccountID != owner.AccountID {
			continue
		}
		by := wire.Identity{Account: signed.User.AccountID, KeyID: "user:" + signed.User.ID}
		must(s.store.PutView(s.t.Context(), by, wire.View{Name: "own", Address: "/users", Own: true}))
	}

	_, err = s.config.Targets.PutTarget(s.t.Context(), s.as(email), wire.TargetSettings{
		Name: "on-call", Kind: wire.TargetSlack, URL: "https://127.0.0.1:1/hush",
	})
	must(err)
	rule := wire.AlertRule{
		Name: "hushed", Measure: "cost", When: "above", Threshold: new(1.0), Window: 5, Windows: 1, NoData: "ok",
	}
	must(s.config.Alerts.PutAlert(s.t.Context(), s.as(email), rule))
	ids = map[string]string{
		"alerts":  "hushed",
		"targets": "on-call",
		"views":   "own",

		"project-views": "wide",

		"scores":   "tone",
		"queues":   "rude",
		"requests": e.RequestID,
		"sessions": "talk",
		"keys":     key.ID,
		"invites":  invite.ID,
		"people":   s.signed["eve@example.com"].User.ID,
	}
	for _, r := range Routes() {
		method, path, _ := strings.Cut(r.Pattern, " ")
		first := strings.Split(path, "/")[1]
		if method != http.MethodGet || r.Role() == "" || strings.HasSuffix(path, "/export") {
			continue
		}
		path = strings.NewReplacer("{$}", "", "{id}", ids[first]).Replace(path)
		pages = append(pages, path+"?"+url.Values{"name": {"plan"}, "key": {"user_id"}, "value": {"u"}}.Encode())
	}

	return pages, ids
}
