package dashboard

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"promptspool/api/wire"
)

// A page is saved as it is, opened from the menu, changed, saved again under its name, deleted, and undeleted.
func TestAViewIsKeptInTheMenu(t *testing.T) {
	s := openSite(t)
	const eve, vic, mallory = "eve@example.com", "vic@example.com", "mallory@example.com"
	s.logs(eve, "ann", 2)
	page := s.call(eve, "GET", "/requests?filter=user:ann&sort=cost&n=1", nil)
	if !says(page, `name="address" value="/requests?col=template&amp;col=call`) || says(page, ">Views</p>") {
		t.Fatalf("the form does not have what is shown:\n%s", page.Body)
	}

	// It leads to the page, whose form replaces it; it is not called what another one is.
	send := func(who, path string, pairs ...string) string {
		t.Helper()
		got := s.call(who, "POST", path, s.form(who, pairs...))
		if got.Code != http.StatusSeeOther {
			t.Fatalf("%s answers %d: %s", path, got.Code, got.Body)
		}
		return got.Header().Get("Location")
	}
	opened := send(eve, "/project-views", "name", " ann's/calls ", "address", "/requests?filter=user:ann&n=1")
	if opened != "/requests?filter=user%3Aann&named=ann%27s%2Fcalls&done=view-saved" {
		t.Errorf("it leads to %s", opened)
	}
	page = s.call(eve, "GET", opened+"&sort=cost", nil)
	for _, want := range []string{
		`&amp;named=ann%27s%2Fcalls" aria-current="true">`,
		`name="name" required maxlength="100" value="ann&#39;s/calls"`, `name="named" value="ann&#39;s/calls"`,
		`The view is saved.`,
	} {
		if !says(page, want) {
			t.Errorf("the page does not say %s", want)
		}
	}
	send(vic, "/views", "name", "mine", "address", "/users")
	send(vic, "/views", "name", "mine", "address", "/sessions")

	// Everybody sees the project's, and only their own beside them.
	for who, want := range map[string]string{eve: "ann's/calls", vic: "ann's/calls mine", mallory: ""} {
		menu := s.links(who, "/views", `icons.svg#bookmark"/></svg><span[^>]*>([^<]*)<`)
		if got := strings.Join(menu, " "); got != want {
			t.Errorf("%s sees %q, want %q", who, got, want)
		}
	}

	const remove = "/project-views/ann%27s%2Fcalls/remove"
	if got := s.call(vic, "POST", remove, s.form(vic)); got.Code != http.StatusForbidden {
		t.Errorf("a viewer deletes one of the project: %d", got.Code)
	}
	if got := s.call(mallory, "POST", remove, s.form(mallory)); got.Code != http.StatusNotFound {
		t.Errorf("another project deletes it: %d", got.Code)
	}
	send(vic, "/views/mine/remove")
	views, err := s.store.Views(t.Context(), s.as(eve))
	want := wire.View{Name: "ann's/calls", Address: "/requests?filter=user%3Aann"}
	if err != nil || len(views) != 1 || views[0] != want {
		t.Errorf("%+v, %v", views, err)
	}
	if to := send(eve, remove); to != "/views?done=view-deleted" {
		t.Errorf("deleting leads to %s", to)
	}
	if views, err := s.store.Views(t.Context(), s.as(eve)); err != nil || len(views) != 0 {
		t.Errorf("after it was deleted: %+v, %v", views, err)
	}
}

// What is wrong with a name is said at its field, with what was typed. A view leads to no other site.
func TestAViewHasAGoodNameAndAddress(t *testing.T) {
	s := openSite(t)
	const eve = "eve@example.com"
	for _, sent := range []struct {
		path, name, address string
		want                []string
	}{
		{"/views", " ", "/users?n=1", []string{`name="address" value="/users"`, `name="name" aria-invalid="true"`}},
		{"/views", strings.Repeat("é", 101), "/", []string{"é", `name="name" aria-invalid="true"`}},
		{"/views", "x", "//evil.example", []string{"address must be the path"}},
		{"/views", "x", "/keys", []string{"address must be the path"}},
	} {
		got := s.call(eve, "POST", sent.path, s.form(eve, "name", sent.name, "address", sent.address))
		if got.Code != 422 && got.Code != 409 {
			t.Errorf("%s %q answers %d", sent.path, sent.name, got.Code)
		}
		for _, want := range sent.want {
			if !says(got, want) {
				t.Errorf("%s %q does not say %s:\n%s", sent.path, sent.name, want, got.Body)
			}
		}
	}
}

// A metadata key becomes a column, which the browser, the address, a saved view and a CSV keep, as they keep
// that rows are compact.
func TestAMetadataKeyIsShownAsAColumn(t *testing.T) {
	s := openSite(t)
	const vic = "vic@example.com"
	s.record(vic, newEvent(wire.KindRequest, `{"function_name":"f","kwargs":{"model":"m"},"request_response":{},
		"request_start_time":1,"request_end_time":2,"metadata":{"the.plan %":"gold"}}`))
	if page := s.call(vic, "GET", "/requests", nil); !says(page, `<option value="the.plan %">`) {
		t.Error("the key is not offered")
	}

	form := s.form(vic, "col", "model", "key", "the.plan %", "density", "compact")
	chosen := s.call(vic, "POST", "/requests/view", form)
	address, _ := url.Parse(chosen.Header().Get("Location"))
	if got := address.Query(); address.Path != "/requests" || got.Get("density") != "compact" ||
		strings.Join(got["col"], " ") != "model metadata.the.plan %" {
		t.Fatalf("it leads to %s", address)
	}
	other := s.request(vic, "GET", "/requests", nil)
	other.AddCookie(chosen.Result().Cookies()[0])
	for name, r := range map[string]*http.Request{
		"the browser": other, "the address": s.request(vic, "GET", address.String(), nil),
	} {
		w := httptest.NewRecorder()
		s.d.ServeHTTP(w, r)
		for _, want := range []string{
			`<th>the.plan %</th>`, `data-label="the.plan %" title="gold">gold</td>`, "list compact",
			`value="/requests?col=model&amp;col=metadata.the.plan&#43;%25&amp;density=compact"`,
			`name="col" value="metadata.the.plan %" checked`,
		} {
			if !says(w, want) {
				t.Errorf("%s does not keep %s:\n%s", name, want, w.Body)
			}
		}
	}
	csv := s.call(vic, "GET", "/requests/export?format=csv&"+address.RawQuery, nil).Body.String()
	if !strings.Contains(csv, "model,metadata.the.plan %\n") || !strings.Contains(csv, ",m,gold\n") {
		t.Errorf("the CSV is %s", csv)
	}
}

// What is typed leads to what has this id or name, or to a list of what has it in its name.
func TestAnythingIsFoundByItsId(t *testing.T) {
	s := openSite(t)
	const ann, vic, mallory = "ann@example.com", "vic@example.com", "mallory@example.com"
	_, ids := s.furnished(ann)
	const trace = "5b8efff798038103d269b633813fc60c"
	call := newEvent(wire.KindRequest, `{"function_name":"f","kwargs":{"model":"m"},"request_response":{},
		"request_start_time":1,"request_end_time":2,"session_id":"talk/1 é","user_id":"ann \"q\"",
		"trace_id":"`+trace+`","span_id":"00f067aa0ba902b7"}`)
	grouped := newEvent(wire.KindGroup, `{"group_id":"team"}`)
	scored := newEvent(wire.KindScore, `{"name":"wit","value":1}`)
	grouped.RequestID, scored.RequestID = call.RequestID, call.RequestID
	s.record(ann, call, grouped, scored)
	head, err := s.drafts.Head(t.Context(), s.as(ann), "plan")
	if err != nil {
		t.Fatal(err)
	}
	finds := func(who, typed string) string {
		t.Helper()
		got := s.call(who, "GET", "/find?"+url.Values{"q": {typed}}.Encode(), nil)
		if got.Code != http.StatusSeeOther && got.Code != http.StatusOK {
			t.Fatalf("%q answers %d: %s", typed, got.Code, got.Body)
		}
		return got.Header().Get("Location")
	}
	for typed, want := range map[string]string{
		" " + strings.ToUpper(ids["requests"]): "/requests/" + ids["requests"],
		strings.ToUpper(trace):                 "/traces/" + trace,
		"talk/1 é":                             "/sessions/talk%2F1%20%C3%A9",
		`ann "q"`:                              "/sessions?filter=user%3A%22ann+%5C%22q%5C%22%22",
		"plan":                                 "/template?name=plan",
		fmt.Sprint(head.ID):                    "/template?name=plan",
		ids["keys"]:                            "/keys#" + ids["keys"],
		wire.NewID():                           "",
		"pla":                                  "",
		"team":                                 "/requests?filter=group%3Ateam",
		"wit":                                  "/scores/wit",
		"00F067AA0BA902B7":                     "/traces/" + trace + "?span=00f067aa0ba902b7",
		strings.Repeat("é", 5000):              "",
	} {
		if got := finds(ann, typed); got != want {
			t.Errorf("%.40q leads to %q, want %q", typed, got, want)
		}
		if got := finds(mallory, typed); got != "" {
			t.Errorf("%.40q of another project leads to %q", typed, got)
		}
	}
	if got := finds(vic, ids["keys"]); got != "" {
		t.Errorf("a viewer is led to %q", got)
	}

	page := s.call(vic, "GET", "/find?q=PLA+template", nil)
	if !says(page, `<a href="/template?name=plan">plan</a>`) || says(page, `">wide</a> <span`) {
		t.Errorf("the list has not what is typed:\n%s", page.Body)
	}
	var got struct {
		Offers []struct{ Text, Note, Href string }
	}
	offers := s.call(vic, "GET", "/find/offers", nil)
	if err := json.Unmarshal(offers.Body.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	named := map[string]string{}
	for _, o := range got.Offers {
		named[o.Note+" "+o.Text] = o.Href
	}
	if named["view of Users wide"] != "/users?named=wide" || named["template plan"] == "" {
		t.Errorf("a viewer is offered %v", named)
	}
}
