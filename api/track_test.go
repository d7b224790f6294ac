package api_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"promptspool/api"
	"promptspool/api/wire"
)

// answered returns the members of an answer.
func (s *scene) answered(path, body string) map[string]json.RawMessage {
	s.t.Helper()

	res, err := s.http.Post("http://localhost"+path, "application/json", strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()

	var o map[string]json.RawMessage
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK || json.Unmarshal(text, &o) != nil {
		s.t.Fatalf("%s: %d %s %v", path, res.StatusCode, text, err)
	}

	return o
}

func TestALoggedCallIsAnsweredWithItsBlueprintIfThatIsAskedFor(t *testing.T) {
	s := start(t, func(c *api.Config) {
		c.Blueprint = func(body json.RawMessage) json.RawMessage {
			if !bytes.Contains(body, []byte(`"hey"`)) {
				t.Errorf("made of %.200s", body)
			}
			return json.RawMessage(`{"made":1}`)
		}
	})
	call := func(more string) string {
		return `{"api_key":"app","function_name":"f","kwargs":{},"request_response":{"a":"hey"},` +
			`"request_start_time":1,"request_end_time":2` + more + `}`
	}

	// The blueprint is made in memory, so a large body gets none.
	large := `,"return_prompt_blueprint":true,"x":"` + strings.Repeat("x", 2<<20) + `"`
	for _, path := range []string{"/track-request", "/rest/track-request"} {
		for more, want := range map[string]string{
			``:                                  `null`,
			`,"return_prompt_blueprint":false`:  `null`,
			`,"return_prompt_blueprint":null`:   `null`,
			`,"return_prompt_blueprint":"true"`: `null`,
			`,"return_prompt_blueprint":true`:   `{"made":1}`,
			large:                               `null`,
		} {
			if got := string(s.answered(path, call(more))["prompt_blueprint"]); got != want {
				t.Errorf("%s with %.60s: %s, want %s", path, more, got, want)
			}
		}
	}

	if _, ok := s.answered("/rest/track-score", score)["prompt_blueprint"]; ok {
		t.Error("a score has a blueprint")
	}
}

func TestOnlyARecorderThatKeepsNothingGetsTheSameMemoryAgain(t *testing.T) {
	const writes = 30
	memory := func(keepsNothing bool, err error) (places int) {
		s := start(t, func(c *api.Config) { c.RecorderKeepsNothing = keepsNothing })
		seen := map[*byte][]byte{} // what is kept here, the garbage collector does not give away
		s.recorder.do = func(events []wire.Event) ([]wire.Result, error) {
			seen[&events[0].Body[0]] = events[0].Body
			return []wire.Result{{ID: events[0].ID, Code: wire.ResultAccepted}}, err
		}
		for range writes {
			s.call("POST", "/rest/track-score", score)
		}
		return len(seen)
	}

	if n := memory(true, nil); n > writes/2 {
		t.Errorf("%d writes were in %d places", writes, n)
	}
	if n := memory(false, nil); n != writes {
		t.Errorf("what a recorder keeps was used again: %d writes in %d places", writes, n)
	}
	if n := memory(true, errors.New("disk on fire")); n != writes {
		t.Errorf("what was refused was used again, though it may still be written: %d in %d places", writes, n)
	}
}

func TestAScoreNamesWhatItIsOf(t *testing.T) {
	s := start(t, nil)
	const trace, span = `"trace_id":"52adf2cf8206e15bbdd5b2da7b55fa89"`, `"span_id":"00f067aa0ba902b7"`
	records := map[string]bool{}
	for _, target := range []string{`"session_id":"s-1"`, `"session_id":"s-2"`, trace, trace + "," + span} {
		body := `{"api_key":"app","score":1,` + target + `}`
		first, again := s.answered("/rest/track-score", body), s.answered("/rest/track-score", body)
		if first["request_id"] != nil || again["request_id"] != nil {
			t.Errorf("the score of %s has the id of a call, %s, %s", target, first["request_id"], again["request_id"])
		}
	}
	for i, event := range s.recorder.events {
		records[event.RequestID] = true
		if i%2 == 1 && event.RequestID != s.recorder.events[i-1].RequestID {
			t.Errorf("the scores of one thing are kept in %s and %s", event.RequestID, s.recorder.events[i-1].RequestID)
		}
	}
	if len(records) != 4 || len(s.recorder.events) != 8 {
		t.Errorf("%d events are of %d records", len(s.recorder.events), len(records))
	}

	call := `"request_id":"` + wire.NewID() + `"`
	for _, targets := range []string{span, trace + `,"session_id":"s-1"`, call + "," + trace} {
		a := s.call("POST", "/rest/track-score", `{"api_key":"app","score":1,`+targets+`}`)
		if a.Status != 422 || len(a.Fields) != 1 || a.Fields[0].Field != "request_id" {
			t.Errorf("%s: %+v", targets, a)
		}
	}
}

const logged = `{
	"provider": "openai", "model": "gpt-4o", "api_key": "app",
	"request_start_time": "2026-01-02T03:04:05Z", "request_end_time": "2026-01-02T03:04:06Z",
	"input": {"type": "chat", "messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}]},
	"output": {"type": "chat", "messages": [{"role": "assistant", "content": [{"type": "text", "text": "hello"}]}]},
	"parameters": {"temperature": 0.5, "api_key": "sk-secret"},
	"input_tokens": 3, "output_tokens": 1, "price": 0.01, "tags": ["a"], "metadata": {"user": "ann"},
	"prompt_name": "greet", "prompt_version_number": 2, "score": 90}`

func TestALoggedBlueprintIsARequestAndItsScoreAnEventBehindIt(t *testing.T) {
	s := start(t, nil)
	named := strings.Replace(logged, `"score"`, `"score_name": "tone <1>", "score"`, 1)
	a := s.call("POST", "/log-request", named)
	if a.Status != 201 || a.RequestID == "" {
		t.Fatalf("%+v", a)
	}

	e := s.recorder.events
	if len(e) != 2 || e[0].Kind != wire.KindRequest || e[1].Kind != wire.KindScore {
		t.Fatalf("events %+v", e)
	}
	if e[0].RequestID != a.RequestID || e[1].RequestID != a.RequestID {
		t.Fatalf("events %+v", e)
	}
	if e[1].ID <= e[0].ID || !e[1].AcceptedAt.After(e[0].AcceptedAt) {
		t.Error("the score does not come behind its request")
	}
	if body := string(e[1].Body); !strings.Contains(body, `"tone <1>"`) || !strings.Contains(body, `"score":90`) {
		t.Errorf("the score is %s", body)
	}

	if body := string(e[0].Body); strings.Contains(body, "sk-secret") || !strings.Contains(body, `"temperature": 0.5`) {
		t.Errorf("body %s", body)
	}
}

func TestALoggedBlueprintIsChecked(t *testing.T) {
	s := start(t, nil)
	for _, c := range []struct{ from, to, field string }{
		{`"provider": "openai", `, ``, "provider"},
		{`"model": "gpt-4o", `, ``, "model"},
		{`"type": "chat", "messages": [{"role": "user"`, `"type": "poem", "messages": [{"role": "user"`, "input.type"},
		{`"role": "user"`, `"role": "cat"`, "input.messages[0].role"},
		{`[{"type": "text", "text": "hello"}]`, `"hello"`, "output.messages[0].content"},
		{`"score": 90`, `"score": 101`, "score"},
		{`"input_tokens": 3`, `"input_tokens": -1`, "input_tokens"},
		{`"price": 0.01`, `"price": "free"`, "price"},
		{`"parameters": {"temperature": 0.5, "api_key": "sk-secret"}`, `"parameters": []`, "parameters"},
		{`"score": 90`, `"status": "FINE"`, "status"},
		{`"score": 90`, `"status": "SUCCESS", "error_type": "PROVIDER_TIMEOUT"`, "error_type"},
		{`"score": 90`, `"status": "ERROR", "error_type": "BAD_LUCK"`, "error_type"},
	} {
		if !strings.Contains(logged, c.from) {
			t.Fatalf("%q is not in the body", c.from)
		}

		a := s.call("POST", "/log-request", strings.Replace(logged, c.from, c.to, 1))
		if a.Status != 422 || len(a.Fields) == 0 || a.Fields[0].Field != c.field {
			t.Errorf("%s: %+v, want a 422 for %s", c.to, a, c.field)
		}
	}

	if len(s.recorder.events) != 0 {
		t.Errorf("%d events were recorded", len(s.recorder.events))
	}
}

func TestACallIsKeptWithoutTheTagsAndMetadataThatExceedALimit(t *testing.T) {
	s := start(t, nil)
	tags := `"tags":["` + strings.Repeat(`t","`, 299) + `t"],` +
		`"metadata":{"k":"` + strings.Repeat("x", 70_000) + `","a":"b"}`
	call := `{"api_key":"app","function_name":"f","kwargs":{},"request_response":{},` +
		`"request_start_time":1,"request_end_time":2`

	const want = `[{"field":"tags","reason":"has more than 256 entries","count":44},` +
		`{"field":"metadata.k","reason":"is longer than 65536 bytes","count":1}]`
	if got := string(s.answered("/rest/track-request", call+","+tags+"}")["dropped"]); got != want {
		t.Errorf("what was dropped is %s, want %s", got, want)
	}
	if got, said := s.answered("/rest/track-request", call+"}")["dropped"]; said {
		t.Errorf("of a call that fits, %s was dropped", got)
	}
}
