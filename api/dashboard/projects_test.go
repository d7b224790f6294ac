package dashboard

import (
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"promptspool/api/wire"
)

// ownerOfBoth opens a site whose ann has joined mallory's project, other, as its owner. That is open
// in her session, in which a form of her own project, default, was made before.
func ownerOfBoth(t *testing.T) (s *site, before url.Values) {
	t.Helper()
	s = openSite(t)
	const ann, mallory = "ann@example.com", "mallory@example.com"
	before = s.edited(ann)
	invite := s.call(mallory, "POST", "/invites", s.form(mallory, "role", "owner"))
	link := html.UnescapeString(shownLink.FindStringSubmatch(invite.Body.String())[1])

	page := s.call(ann, "GET", link, nil)
	if !says(page, "Join other as "+ann) || says(page, `name="password"`) {
		t.Fatalf("ann cannot join with a click: %d %s", page.Code, page.Body)
	}
	joined := s.call(ann, "POST", "/join", s.form(ann, "code", codeOf(t, link)))
	if to := joined.Header().Get("Location"); joined.Code != http.StatusSeeOther || to != "/?done=joined" {
		t.Fatalf("joining answers %d, %s: %s", joined.Code, to, joined.Body)
	}
	s.know(ann)

	return s, before
}

// know reads anew what a session has open.
func (s *site) know(email string) {
	s.t.Helper()
	now, err := s.people.Session(s.t.Context(), s.signed[email].Token)
	if err != nil {
		s.t.Fatal(err)
	}
	s.signed[email] = now
}

// open opens another project in the menu.
func (s *site) open(email, project string) {
	s.t.Helper()
	got := s.call(email, "POST", "/project", s.form(email, "project", project, "back", "/templates"))
	if to := got.Header().Get("Location"); got.Code != http.StatusSeeOther || to != "/templates" {
		s.t.Fatalf("opening %s answers %d, %s: %s", project, got.Code, to, got.Body)
	}
	s.know(email)
}

// publishes publishes the template greet in the project that a person has open.
func (s *site) publishes(email, text string) {
	s.t.Helper()
	if _, err := s.drafts.Publish(s.t.Context(), s.as(email), wire.Publish{
		PublishedName:    wire.PublishedName{Name: "greet"},
		PublishedVersion: wire.PublishedVersion{Blueprint: json.RawMessage(`{"content":"` + text + `"}`)},
		PublishedPlace:   wire.PublishedPlace{Labels: []string{"prod"}},
	}); err != nil {
		s.t.Fatal(err)
	}
}

func TestEachProjectShowsItsOwnOnly(t *testing.T) {
	s, _ := ownerOfBoth(t)
	const ann = "ann@example.com"
	of := map[string]string{}
	for _, project := range []string{"default", "other"} {
		s.open(ann, project)
		s.publishes(ann, "text-of-"+project)
		e := newEvent(wire.KindRequest, `{"function_name":"f","kwargs":{"model":"model-of-`+project+`"},
			"request_response":{},"request_start_time":1,"request_end_time":2}`)
		s.record(ann, e)
		of[project] = e.RequestID
	}

	overview, theirs := s.call(ann, "GET", "/projects", nil), s.call("mallory@example.com", "GET", "/projects", nil)
	for _, project := range []string{"default", "other"} {
		row := regexp.MustCompile(`<tr data-href><td class="wrap name"><a href="/\?filter=since%3A7d&amp;project=` +
			project + `">` + project + `</a>.*</td><td>owner</td><td class="number" data-label="requests">1</td>`)
		if !row.MatchString(overview.Body.String()) {
			t.Errorf("%s is not in the overview: %s", project, overview.Body)
		}
		if own := project == "other"; own != row.MatchString(theirs.Body.String()) {
			t.Errorf("mallory, who has other only, sees %s: %t", project, !own)
		}
	}

	for project, foreign := range map[string]string{"default": "other", "other": "default"} {
		s.open(ann, project)
		for _, path := range []string{
			"/", "/requests", "/templates", "/template?name=greet", "/template/edit?name=greet", "/sidecars",
			"/keys", "/people", "/audit", "/suggestions?line=model:",
		} {
			page := s.call(ann, "GET", path, nil)
			if page.Code != http.StatusOK || says(page, "-of-"+foreign) || says(page, of[foreign]) {
				t.Errorf("%s of %s answers %d, or shows %s: %s", path, project, page.Code, foreign, page.Body)
			}
		}
		if page := s.call(ann, "GET", "/template?name=greet", nil); !says(page, "text-of-"+project) {
			t.Errorf("the template of %s is not shown: %s", project, page.Body)
		}
		for _, path := range []string{"/requests/" + of[foreign], "/requests/" + of[foreign] + "/raw"} {
			if got := s.call(ann, "GET", path, nil); got.Code != http.StatusNotFound {
				t.Errorf("%s answers %d in %s", path, got.Code, project)
			}
		}
	}
}

// Two tabs show two projects, in which templates may have the same name.
func TestAFormActsInTheProjectOfItsPageOnly(t *testing.T) {
	s, edit := ownerOfBoth(t)
	const ann, refused = "ann@example.com", "This form is of the project default, but meanwhile other was opened"
	s.open(ann, "default")
	s.publishes(ann, "one")
	stale := s.form(ann, "name", "greet", "label", "prod", "version", "1", "role", "viewer")
	label := s.form(ann, "name", "greet", "label", "new", "version", "1", "anyway", "true")
	s.done(ann, "/template/label", label)

	s.open(ann, "other")
	s.publishes(ann, "two")
	for _, r := range routes(t) {
		got := &httptest.ResponseRecorder{}
		switch personal := "/join /project /zone /sign-out /password "; {
		case r.method != http.MethodPost || strings.Contains(personal, r.path+" "):
			continue
		case r.path == "/template/edit":
			got = s.call(ann, "POST", r.path, edit)
		default:
			got = s.call(ann, "POST", r.path, stale)
		}
		if got.Code != http.StatusConflict || !says(got, refused) {
			t.Errorf("%s answers %d to a form of another project: %s", r.path, got.Code, got.Body)
		}
	}

	// Back in its project it is as good as ever, and what acts in none can be sent from any page.
	s.open(ann, "default")
	if got := s.call(ann, "POST", "/template/label/delete", stale); got.Code != http.StatusSeeOther {
		t.Errorf("back in its project the form answers %d: %s", got.Code, got.Body)
	}
	s.open(ann, "other")
	stale.Set("utc", "1")
	for _, path := range []string{"/zone", "/sign-out"} {
		if got := s.call(ann, "POST", path, stale); got.Code != http.StatusSeeOther {
			t.Errorf("%s answers %d to a form of another project's page", path, got.Code)
		}
	}
}

// projectShown matches the open project in the menu.
var projectShown = regexp.MustCompile(`Project:</span> (\w+)<`)

func (s *site) shown(email string) string {
	s.t.Helper()
	m := projectShown.FindStringSubmatch(s.call(email, "GET", "/password", nil).Body.String())
	if m == nil {
		return ""
	}

	return m[1]
}

func TestAWaitingFormComesBackInItsProject(t *testing.T) {
	s, _ := ownerOfBoth(t)
	const ann = "ann@example.com"
	form := s.edited(ann) // of other
	s.open(ann, "default")
	s.end(ann)

	// The browser is known, and would open default again.
	pending := pendingIn(s.call(ann, "POST", "/template/edit", form))
	in := signInForm(ann, password)
	in.Set("pending", pending)
	got := s.call(ann, "POST", "/sign-in", in)
	if !says(got, typedText) || !says(got, "Project:</span> other<") {
		t.Errorf("the form does not come back in other: %d %s", got.Code, got.Body)
	}

	again := s.call(ann, "POST", "/sign-in", signInForm(ann, password))
	s.signed[ann] = wire.SignedIn{Token: wire.Secret(again.Result().Cookies()[0].Value)}
	if got := s.shown(ann); got != "default" {
		t.Errorf("a known browser opens %q", got)
	}
}

func TestALinkOpensItsProject(t *testing.T) {
	s, _ := ownerOfBoth(t)
	const ann, vic = "ann@example.com", "vic@example.com"
	got := s.call(ann, "GET", "/requests?filter=model%3Ax&project=default", nil)
	if to := got.Header().Get("Location"); got.Code != http.StatusSeeOther || to != "/requests?filter=model%3Ax" {
		t.Errorf("a link into another project answers %d, %s", got.Code, to)
	}
	if got := s.shown(ann); got != "default" {
		t.Errorf("the link opens %q", got)
	}

	// Projects of others look as if they did not exist, and one alone is not offered.
	for _, project := range []string{"other", "nothing"} {
		got := s.call(vic, "GET", "/requests?project="+project, nil)
		if got.Code != http.StatusNotFound || !says(got, "You are not a member of a project &#34;"+project) {
			t.Errorf("a link into %s answers %d: %s", project, got.Code, got.Body)
		}
		if got := s.call(vic, "POST", "/project", s.form(vic, "project", project)); got.Code != http.StatusNotFound {
			t.Errorf("the menu opens %s: %d", project, got.Code)
		}
	}
	if got := s.shown(vic); got != "" {
		t.Errorf("vic, who has one project, is offered to leave %s", got)
	}
}

func TestWhoHasAnAccountJoinsAfterSigningIn(t *testing.T) {
	s := openSite(t)
	const mallory = "mallory@example.com"
	link := s.link("/invites", "role", "reviewer")
	page := s.call("", "GET", link, nil)
	next := `<a href="/sign-in?next=` + strings.ToLower(url.QueryEscape(link)) + `">`
	if !says(page, next) {
		t.Fatalf("the link leads to no sign-in that comes back: %s", page.Body)
	}
	taken := signInForm(mallory, password)
	taken.Set("code", codeOf(t, link))
	if got := s.call("", "POST", "/sign-up", taken); got.Code != http.StatusConflict ||
		!says(got, "Sign in to join with it") || !says(got, next) {
		t.Errorf("signing up again answers %d: %s", got.Code, got.Body)
	}

	in := signInForm(mallory, password)
	in.Set("next", link)
	if to := s.call("", "POST", "/sign-in", in).Header().Get("Location"); to != link {
		t.Errorf("signing in leads to %q, want %q", to, link)
	}
	form := s.form(mallory, "code", codeOf(t, link))
	for n, want := range []int{http.StatusSeeOther, http.StatusForbidden} {
		if got := s.call(mallory, "POST", "/join", form); got.Code != want {
			t.Errorf("join %d answers %d, want %d: %s", n+1, got.Code, want, got.Body)
		}
	}
	s.know(mallory)
	if u := s.signed[mallory].User; u.AccountName != "default" || u.Role != wire.RoleReviewer {
		t.Errorf("mallory is %+v", u)
	}

	second := s.link("/invites", "role", "owner")
	got := s.call(mallory, "POST", "/join", s.form(mallory, "code", codeOf(t, second)))
	if got.Code != http.StatusConflict || !says(got, "You already belong to the project default.") {
		t.Errorf("joining twice answers %d: %s", got.Code, got.Body)
	}
	if got := s.call("ann@example.com", "GET", second, nil); got.Code != http.StatusOK {
		t.Errorf("the code is spent: %d", got.Code)
	}
}

// A password opens all projects of a person, so one owner may not choose it for another's.
func TestAnOwnerResetsNoPasswordThatOpensMore(t *testing.T) {
	s, _ := ownerOfBoth(t)
	const ann, mallory = "ann@example.com", "mallory@example.com"
	got := s.call(mallory, "POST", "/people/"+s.signed[ann].User.ID+"/reset", s.form(mallory))
	if got.Code != http.StatusForbidden || shownLink.MatchString(got.Body.String()) || says(got, "default") {
		t.Errorf("mallory resets ann's password: %d %s", got.Code, got.Body)
	}
	got = s.call(ann, "POST", "/people/"+s.signed[mallory].User.ID+"/reset", s.form(ann))
	if got.Code != http.StatusOK {
		t.Errorf("ann, an owner of all that mallory has, answers %d: %s", got.Code, got.Body)
	}
}

// A role by groups is not the one that an owner sets, and stays when that changes.
func TestARoleByGroupsIsShownBesideTheOneByHand(t *testing.T) {
	s := openSite(t)
	const ann, pat = "ann@example.com", "pat@example.com"
	in, err := s.people.EnterByIssuer(t.Context(), wire.Login{
		Subject: "pat", Email: pat, Grants: []wire.Grant{{Project: "default", Role: wire.RoleEditor}},
	}, wire.Browser{})
	if err != nil {
		t.Fatal(err)
	}
	s.signed[pat] = in

	page := s.call(ann, "GET", "/people", nil)
	if !says(page, `<span class="badge">editor by groups</span>`) || !says(page, `disabled>none</option>`) {
		t.Errorf("pat's role by groups is not shown: %s", page.Body)
	}
	done := s.done(ann, "/people/"+in.User.ID+"/role", s.form(ann, "role", "reviewer"))
	if !strings.Contains(done, "editor by groups") || !strings.Contains(done, "<option selected>reviewer</option>") {
		t.Errorf("pat's own role is not shown: %s", done)
	}
}

func TestAFailedCallWithoutTokensIsNotUnpriced(t *testing.T) {
	s := openSite(t)
	const email = "ann@example.com"
	unpriced := func() string {
		page := s.call(email, "GET", "/", nil).Body.String()
		_, tile, _ := strings.Cut(page, ">Cost</a></dt>")
		tile, _, _ = strings.Cut(tile, "</div>")
		return tile
	}

	s.record(email, newEvent(wire.KindRequest, `{"provider":"openai","model":"gpt-4o-mini","status":"ERROR",
		"input":{"type":"chat","messages":[]},"output":{"type":"chat","messages":[]}}`))
	if tile := unpriced(); tile == "" || strings.Contains(tile, "unpriced") {
		t.Errorf("after a failed call without tokens the cost is %q", tile)
	}
	s.record(email, newEvent(wire.KindRequest, `{"provider":"openai","model":"of-nobody",
		"input_tokens":9,"output_tokens":1,
		"input":{"type":"chat","messages":[]},"output":{"type":"chat","messages":[]}}`))
	if tile := unpriced(); !strings.Contains(tile, "1 unpriced") {
		t.Errorf("after a call of an unknown model the cost is %q", tile)
	}
}

func TestOverviewComparesGroupsAndMarksMovesOfLabels(t *testing.T) {
	s := openSite(t)
	const ann = "ann@example.com"
	logs := func(ago time.Duration, customer, status string, tokens int) {
		start := time.Now().UTC().Add(-ago)
		s.record(ann, newEvent(wire.KindRequest, fmt.Sprintf(`{"provider":"openai","model":"gpt-4o-mini","status":%q,
			"input_tokens":%d,"output_tokens":1,"metadata":{%s},"request_start_time":%q,"request_end_time":%q,
			"input":{"type":"chat","messages":[]},"output":{"type":"chat","messages":[]}}`, status, tokens, customer,
			start.Format(time.RFC3339Nano), start.Add(time.Second).Format(time.RFC3339Nano))))
	}
	logs(time.Hour, `"customer":"<Acme>"`, "SUCCESS", 1000)
	logs(time.Hour, `"customer":"Brisa"`, "ERROR", 99)
	logs(time.Hour, ``, "SUCCESS", 9)

	shows := func(page string, want ...string) {
		t.Helper()
		text := html.UnescapeString(textOf(s.call(ann, "GET", page, nil).Body.String()))
		for _, part := range want {
			if !strings.Contains(text, part) {
				t.Errorf("%s does not show %q: %s", page, part, text)
			}
		}
	}
	const tokens = "/?metric=tokens&group=metadata.customer"
	shows(tokens, "no calls in the period before")
	shows(tokens+"&filter=",
		"There is no period before to compare with", "<Acme> 1 0.0%", "Brisa 1 100.0%", "others 1 0.0%")
	shows(tokens+"&filter=since:24h", "no calls in the period before")
	shows("/?group=none", "Requests by model") // an address may be old

	// Another period changes what is said of it, a part of one is named.
	logs(47*time.Hour, `"customer":"Brisa"`, "SUCCESS", 1)
	logs(25*time.Hour, `"customer":"Brisa"`, "SUCCESS", 1)
	shows(tokens+"&filter=since:24h", "Requests 3 +50 % from 2", "Errors 33.3% 1 failed +33.3 pt from 0.0%",
		"Latency p50 1.00 s as before", "Compared with the period before")
	shows(tokens+"&filter=since:30h", "which has calls since")
	shows(tokens+"&filter=since:46h", "There is too little to compare with")

	// The label prod, which every version gets, has moved. A page of another template does not say so.
	s.publishes(ann, "one")
	s.publishes(ann, "two")
	shows("/?filter=since:24h", "Labels: greet prod: 1 → 2")
	request := newEvent(wire.KindRequest, `{"model":"m","request_response":{}}`)
	link := newEvent(wire.KindPrompt, `{"prompt_name":"other"}`)
	link.RequestID = request.RequestID
	s.record(ann, request, link)
	link = newEvent(wire.KindPrompt, `{"prompt_name":"greet","version":2}`)
	request = newEvent(wire.KindRequest, `{"model":"m","request_response":{}}`)
	link.RequestID = request.RequestID
	s.record(ann, request, link)
	shows("/template/statistics?name=greet", "Labels: greet prod: 1 → 2")
	if page := s.call(ann, "GET", "/?filter=template:other", nil).Body.String(); strings.Contains(page, "1 → 2") {
		t.Error("the label of another template is marked")
	}
}

// An owner makes another project on the page, which is open then, and theirs alone.
func TestAProjectIsMadeOnThePage(t *testing.T) {
	s := openSite(t)
	const ann, eve = "ann@example.com", "eve@example.com"
	make := func(who, name string) *httptest.ResponseRecorder {
		return s.call(who, "POST", "/projects", s.form(who, "name", name))
	}
	for name, want := range map[string]string{
		"":                      "must be 1 to 64",
		"The Shop":              "must be 1 to 64",
		"other":                 "There is a project other already.",
		"payroll":               "--oidc-role gives roles in",
		strings.Repeat("s", 65): "must be 1 to 64",
	} {
		got := make(ann, name)
		if got.Code != 422 && got.Code != 409 || !says(got, want) || !says(got, `name="name" aria-invalid="true"`) ||
			!says(got, `value="`+name+`"`) {
			t.Errorf("%q answers %d: %s", name, got.Code, got.Body)
		}
	}
	if got := make(eve, "hers"); got.Code != http.StatusForbidden {
		t.Errorf("an editor makes a project: %d", got.Code)
	}

	if got := make(ann, " shop "); got.Code != http.StatusSeeOther || got.Header().Get("Location") != "/?done=founded" {
		t.Fatalf("it answers %d: %s", got.Code, got.Body)
	}
	s.know(ann)
	if u := s.signed[ann].User; u.AccountName != "shop" || u.Role != wire.RoleOwner || len(u.Projects) != 2 {
		t.Errorf("ann is %+v", u)
	}
	if people := s.call(ann, "GET", "/people", nil); says(people, eve) || !says(people, ann) {
		t.Errorf("the project has other people than ann: %s", people.Body)
	}
	if log := s.call(ann, "GET", "/audit", nil); !says(log, "create project") {
		t.Errorf("the audit log does not have it: %s", log.Body)
	}
	if page := s.call(eve, "GET", "/projects", nil); says(page, "shop") || says(page, "New project") {
		t.Errorf("eve sees %s", page.Body)
	}
}
