package dashboard

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"html"
	"net/url"
	"slices"
	"strings"
	"testing"

	"promptspool/api/wire"
)

// logSessions logs a chat of two calls, one of which failed, a session with an awkward name, and a call
// without a session.
func (s *site) logSessions(email string) {
	call := func(start int, of, model string, more string) wire.Event {
		return newEvent(wire.KindRequest, fmt.Sprintf(`{"function_name":"openai.ChatCompletion.create",
			"kwargs":{"model":%q},"request_response":{"usage":{"prompt_tokens":1000,"completion_tokens":20}},
			"request_start_time":"2026-11-2%dT10:00:00Z","request_end_time":"2026-11-2%[2]dT10:00:02Z",%s%s}`,
			model, start, of, more))
	}
	failed := call(3, `"session_id":"chat-17","user_id":"ann/b"`, "gpt-4o", `,"status":"ERROR","error_type":"E"`)
	score := wire.Event{
		ID: wire.NewID(), Kind: wire.KindScore, RequestID: failed.RequestID, AcceptedAt: failed.AcceptedAt,
		Body: json.RawMessage(`{"score":40}`),
	}
	s.record(email, call(1, `"session_id":"chat-17","user_id":"ann/b"`, "gpt-4o", ""), failed, score,
		call(2, `"session_id":"=a b/c?","user_id":"ann/b"`, "gpt-4o-mini", ""),
		call(4, `"user_id":"bob"`, "gpt-4o", ""))
}

// rowsOf returns where the rows of a list lead.
func (s *site) rowsOf(email, path string) []string {
	rows := s.links(email, path, `<td class="wrap name" dir="auto"><a href="([^"]*)"`)
	for i, row := range rows {
		rows[i], _, _ = strings.Cut(row, "?list=")
	}

	return rows
}

// Somebody finds a session by what it is and by its calls, sorts, and goes from lists to lists.
func TestSessionsAndUsersAreFoundSortedAndLeadToEachOther(t *testing.T) {
	s := openSite(t)
	const ann, mallory = "ann@example.com", "mallory@example.com"
	s.logSessions(ann)

	const chat, odd = "/sessions/chat-17", "/sessions/=a%20b%2Fc%3F"
	for path, want := range map[string][]string{
		"/sessions":                                      {chat, odd},
		"/sessions?sort=cost&order=asc":                  {odd, chat},
		"/sessions?sort=turns":                           {chat, odd},
		"/sessions?filter=turns:>1":                      {chat},
		"/sessions?filter=cost:<0.001+input_tokens:1..":  {odd},
		"/sessions?filter=mean_score:..50+errors:>0":     {chat},
		"/sessions?filter=status:error":                  {chat},
		"/sessions?filter=model:gpt-4o-mini":             {odd},
		"/sessions?filter=turns:>1+model:gpt-4o-mini":    nil,
		"/sessions?filter=time:2026-11-22":               {chat, odd}, // in the middle of the chat
		"/sessions?filter=since:2026-11-23":              {chat},
		"/sessions?filter=until:2026-11-22+status:error": nil,
		"/sessions?filter=user:ann/b":                    {chat, odd},
		"/sessions?filter=user:bob":                      nil,
		"/users": {"/sessions?filter=user%3Abob",
			"/sessions?filter=user%3Aann%2Fb"},
		"/users?filter=duration:>1d": {"/sessions?filter=user%3Aann%2Fb"},
	} {
		if got := s.rowsOf(ann, path); !slices.Equal(got, want) {
			t.Errorf("%s lists %q, want %q", path, got, want)
		}
	}
	if got := s.rowsOf(mallory, "/sessions"); got != nil {
		t.Errorf("another project sees %q", got)
	}

	page := s.call(ann, "GET", "/sessions?filter=turns:>0+model:*&sort=errors", nil).Body.String()
	for _, want := range []string{
		"2 sessions, most errors first", `data-label="errors"><span class="bad">1</span>`, `>40.0</td>`,
		`>2 days</td>`, `title="Tokens in and out">2`, `aria-sort="descending"><a href="/sessions?filter=`,
		`<a href="/users?filter=turns%3A%3E0&#43;model%3A%2A">Users</a>`,
		`<a href="/requests?filter=model%3A%2A">Requests</a>`, // which have no turns
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the list has no %s:\n%s", want, page)
		}
	}
	requests := s.call(ann, "GET", "/requests?filter=model:*&col=session", nil).Body.String()
	if !strings.Contains(requests, `<a href="`+odd+`">`) ||
		!strings.Contains(requests, `<a href="/sessions?filter=model%3A%2A">`) {
		t.Errorf("the requests do not lead to their sessions:\n%s", requests)
	}

	// Its calls are reviewed with those of the others that the list shows.
	for path, want := range map[string]string{
		"/sessions": "0 of 3 done", "/sessions?filter=turns:>1": "0 of 2 done", "/users": "0 of 4 done",
	} {
		to := s.links(ann, path, `<a class="button" href="([^"]*)" data-key="r"`)
		s.reviews(ann, append(to, "")[0]).sees(want)
	}
	for path, want := range map[string]bool{"/suggestions?rollups&line=tur": true, "/suggestions?line=tur": false} {
		offers := s.call(ann, "GET", path, nil).Body.String()
		if strings.Contains(offers, `"turns:"`) != want {
			t.Errorf("%s offers %s", path, offers)
		}
	}
}

func TestAListOfSessionsThatIsEmptyOrWronglyAskedForHelps(t *testing.T) {
	s := openSite(t)
	const ann = "ann@example.com"
	for path, want := range map[string]string{
		"/sessions":                 `"session_id": "chat-17"`,
		"/users":                    "Send a <code>user_id</code>",
		"/traces":                   `href="/docs/log-opentelemetry"`,
		"/sessions?filter=turns:>1": "No sessions match these filters. <a",
		"/users?filter=mia+cost:>1": `Did you mean <a href="/users?filter=user%3Amia&#43;cost%3A%3E1">` +
			`<code>user:mia cost:&gt;1</code></a>?`,
		"/sessions?filter=a+-turns:>1": "a <mark>-turns:&gt;1</mark>",
		"/requests?filter=turns:>1":    "only sessions, traces and users have turns",
		"/users?filter=turns:>x":       "turns takes a number",
		"/users?format=xml":            "must be csv or jsonl",
	} {
		if page := s.call(ann, "GET", path, nil).Body.String(); !strings.Contains(page, want) {
			t.Errorf("%s has no %s:\n%s", path, want, page)
		}
	}
}

// slowRecords has no time to look at all calls.
type slowRecords struct {
	wire.Archive
	found []wire.Rollup
}

func (r slowRecords) Rollups(_ context.Context, _ wire.Identity, s wire.RollupSearch) (wire.RollupPage, error) {
	if s.Cursor != "" {
		return wire.RollupPage{Items: r.found}, nil // their older calls match as well
	}
	return wire.RollupPage{Items: r.found, NextCursor: new("next one")}, nil
}

func TestAListThatIsAPartSaysSoAndLooksFurther(t *testing.T) {
	s := openSite(t)
	for want, found := range map[string][]wire.Rollup{
		"A part, of the newest calls": {{ID: "chat-17", Turns: 2}},
		"Nothing among the calls":     nil,
	} {
		s.config.Records = slowRecords{s.records, found}
		s.d = New(s.config)
		page := s.call("ann@example.com", "GET", "/users?filter=refund&sort=cost", nil).Body.String()
		next := `href="/users?cursor=next&#43;one&amp;filter=refund&amp;n=`
		if !strings.Contains(page, want) || !strings.Contains(page, next) {
			t.Errorf("the page has no %q or %q:\n%s", want, next, page)
		}

		saved := s.call("ann@example.com", "GET", "/users?filter=refund&format=csv", nil).Body.String()
		if n := strings.Count(saved, "chat-17"); n != len(found) {
			t.Errorf("it is saved %d times, want %d", n, len(found))
		}
	}
}

// A list is walked by pages, and saved as a whole.
func TestAListOfSessionsIsWalkedAndSaved(t *testing.T) {
	s := openSite(t)
	const ann = "ann@example.com"
	s.logSessions(ann)
	var events []wire.Event
	for i := range 98 {
		events = append(events, newEvent(wire.KindRequest, fmt.Sprintf(`{"function_name":"f","kwargs":{},
			"request_response":{},"request_start_time":%d,"request_end_time":%[1]d,"session_id":"s-%03[1]d"}`, i+1)))
	}
	s.record(ann, events...)

	seen := map[string]bool{}
	pages := 0
	for next := []string{"/sessions?sort=turns"}; next != nil && pages < 9; pages++ {
		path := html.UnescapeString(next[0])
		for _, row := range s.rowsOf(ann, path) {
			seen[row] = true
		}
		next = s.links(ann, path, `href="([^"]*)" rel="next"`)
	}
	if len(seen) != 100 || pages != 2 {
		t.Errorf("%d pages have %d sessions", pages, len(seen))
	}

	saved := s.call(ann, "GET", "/sessions?sort=cost&filter=turns:>0&format=csv", nil)
	lines, err := csv.NewReader(saved.Body).ReadAll()
	if err != nil || len(lines) != 101 || lines[1][0] != "chat-17" || lines[2][0] != "'=a b/c?" {
		t.Errorf("the CSV is %q, %v", lines[:min(3, len(lines))], err)
	}
	if name := saved.Header().Get("Content-Disposition"); !strings.Contains(name, `"sessions-turns-0-`) {
		t.Errorf("it is called %s", name)
	}
	saved = s.call(ann, "GET", "/users?format=jsonl&filter="+url.QueryEscape("errors:>0"), nil)
	var user wire.Rollup
	if err := json.Unmarshal(saved.Body.Bytes(), &user); err != nil || user.ID != "ann/b" || user.Turns != 3 {
		t.Errorf("the line is %+v, %v", user, err)
	}
	if !strings.Contains(s.call(ann, "GET", "/audit", nil).Body.String(), "export users") {
		t.Error("the audit log does not have it")
	}
}
