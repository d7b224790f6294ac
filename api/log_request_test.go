package api_test

import (
	"strings"
	"testing"

	"promptspool/api/wire"
)

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
	a := s.call("POST", "/log-request", logged)
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

	if body := string(e[0].Body); strings.Contains(body, "sk-secret") || !strings.Contains(body, `"temperature": 0.5`) {
		t.Errorf("body %s", body)
	}
}

func TestTheScoreOfALoggedBlueprintHasItsName(t *testing.T) {
	s := start(t, nil)
	for name, want := range map[string]string{
		`"score_name": "tone <1>", `: `"name":"tone <1>"`,
		`"score_name": null, `:       `"name":"default"`,
		``:                           `"name":"default"`,
	} {
		s.recorder.events = nil
		if a := s.call("POST", "/log-request", strings.Replace(logged, `"score"`, name+`"score"`, 1)); a.Status != 201 {
			t.Fatalf("%+v", a)
		}

		object, err := wire.ParseObject(s.recorder.events[1].Body)
		if err != nil {
			t.Fatal(err)
		}
		if w, err := wire.DecodeScore(object); err != nil || w.Score != 90 || !strings.Contains(want, `"`+w.Name+`"`) {
			t.Errorf("%s: %s, error %v", name, s.recorder.events[1].Body, err)
		}
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
