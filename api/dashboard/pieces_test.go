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

// An agent that ran for days has thousands of messages.
func TestAPageHasTheBeginningOfALongConversation(t *testing.T) {
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

	// One piece is the answer, and each message is one besides its parts.
	const place = "view=sent"
	path := "/requests/" + e.RequestID
	page := s.call(ann, "GET", path+"?"+place, nil).Body.String()
	got := regexp.MustCompile(`piece \d+\.`).FindAllString(page, -1)
	if len(got) < 600 || !slices.Equal(got, want[:len(got)]) || strings.Count(page, "The answer.") != 1 ||
		!strings.Contains(page, "more messages or parts of messages") {
		t.Errorf("the page has %d of %d pieces", len(got), len(want))
	}

	// A score leads back to the same page, and so does the question before a deletion.
	if !strings.Contains(page, `name="view" value="`+place+`"`) {
		t.Error("the form of a score does not know how the page is shown")
	}
	scored := s.call(ann, "POST", path+"/score", s.form(ann, "name", "n", "score", "1", "view", place))
	if to := scored.Header().Get("Location"); !strings.Contains(to, place) {
		t.Errorf("a score leads to %q", to)
	}
	erase := "/requests/delete?id=" + e.RequestID + "&" + place
	if !strings.Contains(page, html.EscapeString(erase)) {
		t.Error("the link to the deletion does not know how the page is shown")
	}
	page = s.call(ann, "GET", erase, nil).Body.String()
	if !strings.Contains(page, `href="`+html.EscapeString(path+"?"+place)+`">Cancel`) {
		t.Error("Cancel does not lead back to the page as it was shown")
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
