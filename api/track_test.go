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
