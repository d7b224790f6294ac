package dashboard

import (
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"promptspool/api/dashboard/number"
	"promptspool/api/wire"
)

// line is a message of a call.
type line struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// talkCall returns a call of a session that sends messages and gets an answer, which costs $0.01.
func talkCall(session, user string, at time.Time, answer any, messages ...line) wire.Event {
	body, err := json.Marshal(map[string]any{
		"function_name": "f",
		"kwargs":        map[string]any{"model": "gpt-4o", "messages": messages},
		"request_response": map[string]any{
			"choices": []any{map[string]any{"message": answer}},
			"usage":   map[string]int{"prompt_tokens": 4000, "completion_tokens": 0},
		},
		"request_start_time": at.Unix(), "request_end_time": at.Unix() + 1,
		"metadata": map[string]string{"session_id": session, "user_id": user},
	})
	if err != nil {
		panic(err)
	}

	return newEvent(wire.KindRequest, string(body))
}

// read returns a page as its reader sees it: its texts in their order.
func (s *site) read(email, path string) string {
	s.t.Helper()
	return textOf(s.call(email, "GET", path, nil).Body.String())
}

func textOf(page string) string {
	return strings.Join(strings.Fields(regexp.MustCompile(`<[^>]*>`).ReplaceAllString(page, " ")), " ")
}

func TestASessionReadsAsOneConversation(t *testing.T) {
	s := openSite(t)
	const ann, mallory = "ann@example.com", "mallory@example.com" // of another account
	const talk, later = "chat/17?ü <b>%2F", "chat-18"
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	calls := map[string]any{"role": "assistant", "tool_calls": []any{map[string]any{"id": "c1",
		"function": map[string]string{"name": "track", "arguments": `{"order": "A-1"}`}}}}
	system, asked := line{"system", strings.Repeat("Be kind. ", 20)}, line{"user", "Where is it?"}
	found := []any{system, asked, calls, line{"tool", "It is in Oslo"}}

	first := talkCall(talk, "ann-1", at, calls, system, asked)
	second := talkCall(talk, "ann-1", at.Add(time.Minute), line{"assistant", "It is near you."})
	second.Body = json.RawMessage(strings.Replace(string(second.Body), `"messages":null`,
		`"messages":`+marshalled(t, found), 1))
	failed := talkCall(talk, "ann-1", at.Add(2*time.Minute), nil, asked)
	failed.Body = json.RawMessage(strings.Replace(string(failed.Body), `"function_name"`,
		`"status":"ERROR","error_message":"It is overloaded","function_name"`, 1))
	s.record(ann, second, failed, first,
		talkCall("somebody-else", "bob", at.Add(time.Hour), line{"assistant", "No."}, line{"user", "Bob?"}),
		talkCall(later, "ann-1", at.Add(2*time.Hour), line{"assistant", "Yes."}, line{"user", "Again?"}))

	page := "/sessions/" + url.PathEscape(talk)
	text, from := s.read(ann, page), 0
	for _, want := range []string{
		"chat/17?ü &lt;b&gt;%2F", "user ann-1", "3 turns", "$0.030", "1 error",
		"system", "Be kind.", "Where is it?", "Calls track", "A-1", "$0.010 so far",
		"tool", "It is in Oslo", "It is near you.", "$0.020 so far",
		"Sent the same messages again.", "It is overloaded", "$0.030 so far",
	} {
		place := strings.Index(text[from:], want)
		if place < 0 {
			t.Fatalf("the page has no %q after %d:\n%s", want, from, text)
		}
		from += place + len(want)
	}
	if n := strings.Count(text, "Where is it?"); n != 1 {
		t.Errorf("the question stands there %d times:\n%s", n, text)
	}

	// From a call to its session, and back.
	if to := s.links(ann, "/requests/"+second.RequestID, `href="([^"]*)" data-key="t"`); len(to) != 1 || to[0] != page {
		t.Errorf("the request leads to %q, not to %s", to, page)
	}
	if to := s.links(ann, page, `href="/requests/(`+second.RequestID+`)"`); len(to) == 0 {
		t.Error("the session does not lead to its request")
	}

	// Opened from a list, it leads back to that list and to the sessions beside it there.
	list := "/sessions?filter=user%3Aann-1&sort=first_seen"
	rows := s.links(ann, list, `href="(/sessions/[^"]*)" title`)
	if len(rows) != 2 || !strings.HasPrefix(rows[1], page+"?list=") {
		t.Fatalf("the list leads to %q", rows)
	}
	if text := s.read(ann, list); !strings.Contains(text, "Where is it? It is overloaded") {
		t.Errorf("the list does not have the first input and the last output:\n%s", text)
	}
	if back := s.links(ann, rows[1], `href="([^"]*)" data-key="u"`); back[0] != list {
		t.Errorf("it leads back to %s", back)
	}
	if to := s.beside(ann, rows[1], "prev"); to != rows[0] || s.beside(ann, to, "next") != rows[1] {
		t.Errorf("the session before it is %s, and the one after that %s", to, s.beside(ann, to, "next"))
	}
	for at, relation := range map[string]string{rows[0]: "prev", rows[1]: "next", page: "next"} {
		if to := s.beside(ann, at, relation); to != "" {
			t.Errorf("%s of %s is %s", relation, at, to)
		}
	}
	for path, want := range map[string]string{
		"/sessions?id=ann&row=7&step=next":                       "/sessions/ann?list=row%3D7&done=at-end",
		"/sessions?filter=user:ann-1&id=ann&row=7&step=previous": rows[1][:len(page)],
	} {
		if to := s.call(ann, "GET", path, nil).Header().Get("Location"); !strings.HasPrefix(to, want) {
			t.Errorf("%s leads to %s", path, to)
		}
	}
	for who, path := range map[string]string{mallory: page, ann: "/sessions/chat"} {
		if got := s.call(who, "GET", path, nil); got.Code != http.StatusNotFound {
			t.Errorf("%s for %s: %d", path, who, got.Code)
		}
	}

	// It is scored as a whole.
	scored := s.done(ann, page+"/score", s.form(ann, "name", "solved", "score", "90"))
	if text := textOf(scored); !strings.Contains(text, "The score is set.") || !strings.Contains(text, "solved 90") {
		t.Errorf("scored, the session reads %s", text)
	}

	// Deleting asks first, and says how many.
	ask := s.links(ann, page, `href="(/requests/delete[^"]*)"`)[0]
	if got := s.read(ann, ask); !strings.Contains(got, "deletes 3 requests of the session chat/17") {
		t.Errorf("%s asks %s", ask, got)
	}
	done := s.done(ann, "/requests/delete", s.form(ann, "session_id", talk))
	if !strings.Contains(done, "The requests were deleted.") {
		t.Errorf("the deletion is reported by %s", done)
	}
	if got := s.call(ann, "GET", page, nil); got.Code != http.StatusNotFound {
		t.Errorf("the deleted session answers %d", got.Code)
	}
}

func marshalled(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}

	return string(raw)
}

// Agents send everything again with each call: a page shows each message once, and knows at its
// beginning what was said before.
func TestALongSessionIsReadPageByPage(t *testing.T) {
	s := openSite(t)
	const ann, turns = "ann@example.com", 300
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	var said []line
	var events []wire.Event
	for i := range turns {
		said = append(said, line{"user", fmt.Sprintf("question %d.", i)})
		answer := line{"assistant", fmt.Sprintf("answer %d.", i)}
		events = append(events, talkCall("long", "", at.Add(time.Duration(i)*time.Minute), answer, said...))
		said = append(said, answer)
	}
	s.record(ann, events...)

	seen, pages := 0, 0
	for page := "/sessions/long"; page != ""; pages++ {
		body := s.call(ann, "GET", page, nil).Body.String()
		text := textOf(body)
		for strings.Contains(text, fmt.Sprintf("answer %d.", seen)) {
			if n := strings.Count(text, fmt.Sprintf("question %d.", seen)); n != 1 {
				t.Errorf("%s shows question %d %d times", page, seen, n)
			}
			seen++
			if cost := number.Dollars(float64(seen)/100) + " so far"; !strings.Contains(text, cost) {
				t.Errorf("%s has no %s", page, cost)
			}
		}
		if n := strings.Count(text, "question "); n > 25 {
			t.Fatalf("%s shows %d questions", page, n)
		}

		page = ""
		if next := regexp.MustCompile(`href="([^"]*)" rel="next" data-key="n"`).FindStringSubmatch(body); next != nil {
			page = html.UnescapeString(next[1])
		}
	}
	if seen != turns || pages != turns/25 {
		t.Errorf("%d pages show %d of %d turns", pages, seen, turns)
	}
}
