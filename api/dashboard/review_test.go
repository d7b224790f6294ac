package dashboard

import (
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"promptspool/api/wire"
)

// reviewer is a person who scores calls one after another, without a script.
type reviewer struct {
	*site
	email string
	page  *httptest.ResponseRecorder
}

// reviews opens a queue.
func (s *site) reviews(email, path string) *reviewer {
	s.t.Helper()
	r := &reviewer{site: s, email: email}
	r.follow(s.call(email, "GET", path, nil))

	return r
}

// follow opens the page to which an answer leads.
func (r *reviewer) follow(answer *httptest.ResponseRecorder) {
	r.t.Helper()
	for answer.Code == http.StatusSeeOther {
		answer = r.call(r.email, "GET", answer.Header().Get("Location"), nil)
	}
	r.page = answer
}

// hidden are the hidden fields of a page.
var hidden = regexp.MustCompile(`<input type="hidden" name="([^"]*)" value="([^"]*)">`)

// filled returns the form of the page with more fields.
func (r *reviewer) filled(pairs ...string) url.Values {
	_, main, _ := strings.Cut(r.page.Body.String(), `id="review"`)
	form := url.Values{}
	for _, field := range hidden.FindAllStringSubmatch(main, -1) {
		form.Set(field[1], html.UnescapeString(field[2]))
	}
	for i := 0; i < len(pairs); i += 2 {
		form.Set(pairs[i], pairs[i+1])
	}

	return form
}

// sends sends it.
func (r *reviewer) sends(pairs ...string) {
	r.t.Helper()
	r.follow(r.call(r.email, "POST", "/review", r.filled(pairs...)))
}

// sees returns the call on the page, and fails the test unless the page has some texts.
func (r *reviewer) sees(texts ...string) (call string) {
	r.t.Helper()
	isPage(r.t, r.email+"'s screen", r.page, http.StatusOK)
	shown := strings.Join(strings.Fields(textOf(r.page.Body.String())), " ")
	for _, text := range texts {
		if !strings.Contains(shown, text) {
			r.t.Errorf("%s does not see %q in: %s", r.email, text, shown)
		}
	}

	return r.filled().Get("call")
}

// scores returns the scores of a call.
func (s *site) scores(email, call string) string {
	s.t.Helper()
	r, err := s.records.Request(s.t.Context(), s.as(email), call)
	if err != nil {
		s.t.Fatal(err)
	}
	var all []string
	for _, score := range r.Scores {
		text := score.String() + " by " + score.Author
		if score.Details != nil {
			text += " " + score.Details.Source + " " + score.Details.Reason
		}
		all = append(all, strings.TrimSpace(text))
	}

	return strings.Join(all, ", ")
}

func TestCallsAreReviewedOneAfterAnother(t *testing.T) {
	s := openSite(t)
	const ann = "ann@example.com"
	calls := s.logs(ann, "u", 3)
	slices.Reverse(calls)

	r := s.reviews(ann, "/review?filter=user_id:u&sort=cost&scores=default")
	first := r.sees("0 of 3 done", "default", "Save", "Skip")
	for key, value := range map[string]string{"0": "0", "7": "70", "t": "100"} {
		if !says(r.page, `value="`+value+`" required data-key="`+key+`"`) {
			t.Errorf("key %s does not give %s", key, value)
		}
	}
	r.sends("score:default", "70", "reason", " as it should be ")
	second := r.sees("1 of 3 done", "Undo")
	if got := s.scores(ann, first); got != "default=70 by ann@example.com human as it should be" {
		t.Errorf("the first call has %s", got)
	}
	r.sends("do", "skip")
	third := r.sees("1 of 3 done")
	if got := []string{first, second, third}; !slices.Equal(slices.Sorted(slices.Values(got)),
		slices.Sorted(slices.Values(calls))) {
		t.Errorf("the calls are %q, want %q", got, calls)
	}

	// Back over the skipped one to the saved one, whose score is there again, but given no more.
	r.sends("do", "undo")
	if got := r.sees("1 of 3 done"); got != second {
		t.Errorf("the call before %s is %s, want %s", third, got, second)
	}
	r.sends("do", "undo")
	if got := r.sees("0 of 3 done"); got != first || s.scores(ann, first) != "" {
		t.Errorf("the call before is %s with %s, want %s", got, s.scores(ann, first), first)
	}
	if !says(r.page, `value="70" required data-key="7" checked`) || !says(r.page, `value="as it should be"`) {
		t.Errorf("what was taken back is not in the form: %s", r.page.Body)
	}
	r.sends("score:default", "80")
	if got := r.sees("1 of 3 done"); got != second {
		t.Errorf("the next call is %s, want %s", got, second)
	}

	// The end leads back to what was skipped.
	r.sends("do", "skip")
	r.sends("score:default", "10")
	r.sees("2 of 3 done", "1 call left", "From the beginning")
	r.follow(s.call(ann, "GET", "/review?filter=user_id:u", nil))
	if got := r.sees("2 of 3 done"); got != second {
		t.Errorf("what is left is %s, want %s", got, second)
	}
	r.sends("score:default", "20")
	r.sees("3 of 3 done", "All calls are scored.")

	// What no scale has is refused, and so is a call of another project.
	for what, form := range map[string]url.Values{
		"more than 100": r.filled("call", first, "score:default", "101"),
		"no number":     r.filled("call", first, "score:default", "a"),
	} {
		if got := s.call(ann, "POST", "/review", form); got.Code != http.StatusUnprocessableEntity {
			t.Errorf("%s is answered %d", what, got.Code)
		}
	}
	form := s.form("mallory@example.com", "call", first, "score:default", "1")
	if got := s.call("mallory@example.com", "POST", "/review", form); got.Code != http.StatusNotFound {
		t.Errorf("a call of another project is answered %d", got.Code)
	}
}

// A queue may want two opinions of each call. Its reviewers see neither each other's screens nor scores.
func TestTwoPeopleReviewOneQueue(t *testing.T) {
	s := openSite(t)
	const eve, rev, ann = "eve@example.com", "rev@example.com", "ann@example.com"
	s.logs(ann, "u", 2)
	for _, d := range []wire.ScoreDefinition{
		{Name: "ok", Kind: "boolean", Description: "Would you send it?"},
		{Name: "tone", Kind: "category", Categories: []string{"rude", "raw", "kind"}},
		{Name: "edits", Kind: "number", Min: new(0.0)},
	} {
		if err := s.store.DefineScore(t.Context(), s.as(ann), d); err != nil {
			t.Fatal(err)
		}
	}
	err := s.store.PutReviewQueue(t.Context(), s.as(ann), wire.ReviewQueue{
		Name: "Late/ answers", Filter: "user_id:u", Scores: []string{"ok", "tone", "edits"}, Reviewers: 2,
	})
	if err != nil {
		t.Fatal(err)
	}

	const queue = "/review/Late%2F%20answers"
	one := s.reviews(eve, queue)
	other := s.reviews(rev, queue)
	first := one.sees("Late/ answers", "user:u", "0 of 2 done",
		"ok Would you send it? yes y no n", "rude u raw a kind k")
	second := other.sees("0 of 2 done")
	if first == second {
		t.Errorf("both look at %s", first)
	}
	third := s.reviews(ann, queue)
	third.sees("2 calls left: skipped, or on another reviewer's screen.")

	said := []string{"score:ok", "true", "score:tone", "kind", "score:edits", "3"}
	one.sends(said...)
	one.sees("1 of 2 done", "1 call left")
	if got := s.scores(ann, first); got != "edits=3 by eve@example.com human, ok=true by eve@example.com human, "+
		"tone=kind by eve@example.com human" {
		t.Errorf("the call has %s", got)
	}
	other.sends(said...)
	if got := other.sees("1 of 2 done"); got != first || says(other.page, "checked") {
		t.Errorf("the other reviewer sees %s with an answer: %s", got, other.page.Body)
	}
	other.sends("score:ok", "false", "score:tone", "raw", "score:edits", "0")
	other.sees("2 of 2 done", "All calls are scored.")
	third.follow(s.call(ann, "GET", queue, nil))
	if got := third.sees("1 of 2 done"); got != second {
		t.Errorf("the call that one has scored is %s for the third, want %s", got, second)
	}
	for _, wrong := range [][]string{{"score:tone", "loud"}, {"score:edits", "-1"}, {"score:edits", ""}} {
		form := third.filled(append(slices.Clone(said), wrong...)...)
		if got := s.call(ann, "POST", "/review", form); got.Code != http.StatusUnprocessableEntity {
			t.Errorf("%q is answered %d", wrong, got.Code)
		}
	}
	isPage(t, "no queue", s.call(ann, "GET", "/review?queue=x", nil), http.StatusNotFound, "There is no queue")

	// A session that ended loses nothing.
	form := third.filled(said...)
	form.Set("session", s.signed[ann].FormSession())
	s.end(ann)
	pending := pendingIn(s.call("", "POST", "/review", form))
	if again := s.signInWith(ann, pending); !says(again, `value="kind" required data-key="k" checked`) {
		t.Errorf("the form is not shown again: %s", again.Body)
	}
}
