package dashboard

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"promptspool/api/wire"
)

// answered is a call of an experiment with the template greet.
func answered(row string, version int, text string) wire.Event {
	return newEvent(wire.KindRequest, fmt.Sprintf(`{"function_name":"f","kwargs":{"model":"m"},"request_response":{
		"choices":[{"message":{"role":"assistant","content":%q}}]},"request_start_time":1,"request_end_time":2,
		"prompt_id":"greet","prompt_version":%d,"metadata":{"experiment":"words","row":%q}}`, text, version, row))
}

func TestAnExperimentIsOfItsProjectAndUpToDate(t *testing.T) {
	s := openSite(t)
	const ann, mallory = "ann@example.com", "mallory@example.com"
	for _, who := range []string{ann, mallory} {
		for _, text := range []string{"Hello", "Good day"} {
			publish := wire.Publish{Name: "greet", Blueprint: json.RawMessage(`{"content":"` + text + `"}`)}
			if _, err := s.drafts.Publish(t.Context(), s.as(who), publish); err != nil {
				t.Fatal(err)
			}
		}
	}
	s.record(ann, answered("one", 1, "secret before"), answered("one", 2, "secret after"))
	s.record(mallory, answered("one", 1, "of mallory"))
	page := func(who, params string) string {
		t.Helper()
		got := s.call(who, "GET", "/template/experiment?name=greet"+params, nil)
		if got.Code != http.StatusOK {
			t.Fatalf("%d %s", got.Code, got.Body)
		}
		return got.Body.String()
	}

	// Twice, since the second answer is kept from the first.
	for range 2 {
		if text := page(ann, ""); !strings.Contains(text, "<mark>before</mark>") || strings.Contains(text, "mallory") {
			t.Errorf("ann sees %s", text)
		}
		if text := page(mallory, "&experiment=words"); !strings.Contains(text, "of mallory") ||
			strings.Contains(text, "secret") {
			t.Errorf("mallory sees %s", text)
		}
	}
	s.record(ann, answered("two", 1, "same"), answered("two", 2, "same"))
	if text := page(ann, ""); !strings.Contains(text, "Row two") || !strings.Contains(text, "The same answer") {
		t.Errorf("with another row ann sees %s", text)
	}
	if text := page(ann, "&a=2&b=1&from=1"); !strings.Contains(text, `rel="prev"`) || strings.Contains(text, "Row one") {
		t.Errorf("the second row of version 1: %s", text)
	}
	if text := page(ann, "&experiment=none"); !strings.Contains(text, "has no calls of this template") {
		t.Errorf("an experiment that is none: %s", text)
	}
	if got := s.call(ann, "GET", "/template/experiment?name=greet&a=x", nil); got.Code != http.StatusNotFound {
		t.Errorf("a version that is none: %d", got.Code)
	}
}
