package dashboard

import (
	"encoding/json"
	"fmt"
	"html"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"promptspool/api/wire"
)

var later = regexp.MustCompile(`<a href="([^"]*)" rel="nofollow">Show more messages</a>`)

// An agent that ran for days has thousands of messages, and all of them can be read.
func TestEveryMessageOfALongConversationIsOnOneOfItsPages(t *testing.T) {
	s := openSite(t)
	const ann = "ann@example.com"

	// One of the messages has more parts than a page.
	type part struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	type message struct {
		Role    string `json:"role"`
		Content []part `json:"content"`
	}
	var messages []message
	var want []string
	for n := range 700 {
		parts := 1
		if n == 300 {
			parts = 1500
		}
		m := message{Role: "user"}
		for range parts {
			want = append(want, fmt.Sprintf("piece %d.", len(want)))
			m.Content = append(m.Content, part{"text", want[len(want)-1]})
		}
		messages = append(messages, m)
	}
	sent, err := json.Marshal(messages)
	if err != nil {
		t.Fatal(err)
	}

	e := newEvent(wire.KindRequest, `{"function_name":"f","kwargs":{"messages":`+string(sent)+`},
		"request_response":{"choices":[{"message":{"role":"assistant","content":"The answer."}}]}}`)
	s.record(ann, e)

	var got []string
	answers, pages := 0, 0
	for next := "/requests/" + e.RequestID; next != "" && pages < 10; pages++ {
		page := s.call(ann, "GET", next, nil).Body.String()
		got = append(got, regexp.MustCompile(`piece \d+\.`).FindAllString(page, -1)...)
		answers += strings.Count(page, "The answer.")
		next = ""
		if m := later.FindStringSubmatch(page); m != nil {
			next = html.UnescapeString(m[1])
		}
	}
	if !slices.Equal(got, want) || answers != 1 || pages != 3 {
		t.Errorf("%d pages have %d of %d pieces, and %d answers", pages, len(got), len(want), answers)
	}

	// A score leads back to the same page, and so does the question before a deletion.
	const place = "piece=1000&view=sent"
	path := "/requests/" + e.RequestID
	page := s.call(ann, "GET", path+"?"+place, nil).Body.String()
	if !strings.Contains(page, `name="view" value="`+html.EscapeString(place)+`"`) {
		t.Error("the form of a score does not know the page's place")
	}
	scored := s.call(ann, "POST", path+"/score", s.form(ann, "name", "n", "score", "1", "view", place))
	to := scored.Header().Get("Location")
	if !strings.Contains(to, "piece=1000") || !strings.Contains(to, "view=sent") {
		t.Errorf("a score leads to %q", to)
	}
	erase := "/requests/delete?id=" + e.RequestID + "&" + place
	if !strings.Contains(page, html.EscapeString(erase)) {
		t.Error("the link to the deletion does not know the page's place")
	}
	page = s.call(ann, "GET", erase, nil).Body.String()
	if !strings.Contains(page, `href="`+html.EscapeString(path+"?"+place)+`">Cancel`) {
		t.Error("Cancel does not lead back to the page's place")
	}
}

func TestAPageSaysHowManyParametersAndToolsItLeavesOut(t *testing.T) {
	s := openSite(t)
	const ann = "ann@example.com"
	for _, c := range []struct {
		parameters, tools int
		notice            string
	}{
		{999, 1, ""},
		{1000, 3, "leaves out 3 of the parameters and tools"},
		{2200, 1, "leaves out 1,201 of the parameters and tools"},
	} {
		kwargs := map[string]any{}
		for n := range c.parameters {
			kwargs["p"+strconv.Itoa(n)] = "on"
		}
		kwargs["tools"] = slices.Repeat([]map[string]string{{"name": "look"}}, c.tools)
		body, err := json.Marshal(map[string]any{"function_name": "f", "kwargs": kwargs})
		if err != nil {
			t.Fatal(err)
		}
		e := newEvent(wire.KindRequest, string(body))
		s.record(ann, e)
		page := s.call(ann, "GET", "/requests/"+e.RequestID, nil).Body.String()
		says := strings.Contains(page, "of the parameters and tools")
		if says != (c.notice != "") || !strings.Contains(page, c.notice) {
			t.Errorf("the page of %d parameters and %d tools does not say %q", c.parameters, c.tools, c.notice)
		}
	}
}
