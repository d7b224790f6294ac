package records_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"promptspool/api/wire"
	"promptspool/spool/database/databasetest"
)

// TestARecordHasItsBlueprint compares the blueprints of calls with those that the peer
// shows for such calls.
func TestARecordHasItsBlueprint(t *testing.T) {
	// What is not known is there, and empty.
	const rest = `"functions":[],"function_call":null,"tool_choice":null,"input_variables":[]},` +
		`"commit_message":null,"provider_base_url_name":null,"report_id":null,`

	s := newServer(t)
	for n, c := range []struct{ call, want, output string }{
		{
			`{"function_name":"openai.chat.completions.create","kwargs":{"model":"gpt-4","temperature":0.2,` +
				`"stream":false,"user":"sk-secret","messages":[{"role":"user","content":"Hello, <world>!"}]}}`,
			`{"prompt_template":{"type":"chat","messages":[{"role":"user","content":[{"type":"text",` +
				`"text":"Hello, <world>!"}]}],"tools":[],` + rest +
				`"metadata":{"model":{"provider":"openai","name":"gpt-4",` +
				`"parameters":{"temperature":0.2,"stream":false}}},"inference_client_name":null}`, "",
		},
		{
			`{"function_name":"anthropic.messages.create","kwargs":{"model":"claude-sonnet-4-5",` +
				`"max_tokens":9,"system":"Be kind.","tools":[{"name":"find"}],"messages":[
			{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"find","input":{"a":1}}]},` +
				`{"role":"user","content":[{"type":"image","source":{"type":"url","url":"https://a.test/x.png"}}]}]}}`,
			`{"prompt_template":{"type":"chat","messages":[{"role":"system","content":[{"type":"text",` +
				`"text":"Be kind."}]},
			{"role":"assistant","content":[],"tool_calls":[{"id":"t1","type":"function",` +
				`"function":{"name":"find","arguments":"{\"a\":1}"}}]},
			{"role":"user","content":[{"type":"image_url","image_url":{"url":"https://a.test/x.png"}}]}],` +
				`"tools":[{"type":"function","function":{"name":"find"}}],` + rest + `
			"metadata":{"model":{"provider":"anthropic","name":"claude-sonnet-4-5",` +
				`"parameters":{"max_tokens":9}}},"inference_client_name":null}`, "",
		},
		{
			`{"provider":"mistral","model":"m","parameters":{"top_p":1},"input":{"type":"completion",` +
				`"content":[{"type":"text","text":"Once"}]},"output":{"type":"completion",` +
				`"content":[{"type":"text","text":"upon a time"}]}}`,
			`{"prompt_template":{"type":"chat","messages":[{"role":"user","content":[{"type":"text",` +
				`"text":"Once"}]}],"tools":[],` + rest + `"metadata":{"model":{"provider":"mistral","name":"m",` +
				`"parameters":{"top_p":1}}},"inference_client_name":null}`,
			`[{"role":"assistant","content":[{"type":"text","text":"upon a time"}]}]`,
		},
		{
			`{"function_name":"f","kwargs":{}}`,
			`{"prompt_template":{"type":"chat","messages":[],"tools":[],` + rest +
				`"metadata":{"model":{"provider":"f","name":"",` +
				`"parameters":{}}},"inference_client_name":null}`, "",
		},
	} {
		e := write(n, wire.KindRequest, c.call)
		e.RequestID = databasetest.ID(1000 + n)
		s.record(t, e)

		r, err := s.Request(t.Context(), s.id, e.RequestID)
		if err != nil {
			t.Fatal(err)
		}

		var got, want any
		if err := json.Unmarshal(r.Blueprint, &got); err != nil {
			t.Fatalf("%s: %v", r.Blueprint, err)
		}
		_ = json.Unmarshal([]byte(c.want), &want)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("call %d (-want +got):\n%s", n, diff)
		}
		if string(r.Output) != c.output {
			t.Errorf("call %d has the output %s, want %s", n, r.Output, c.output)
		}
		if bytes.Contains(r.Blueprint, []byte("sk-secret")) {
			t.Errorf("the blueprint of call %d has a secret: %s", n, r.Blueprint)
		}
	}
}

func TestSuggestionsOfOneTemplate(t *testing.T) {
	s := newServer(t, with(registry{}))
	for n, name := range []string{"greeting", "other", "7"} {
		e := write(n, wire.KindRequest, `{"function_name":"f","prompt_id":"`+name+`","prompt_version":1}`)
		e.RequestID = databasetest.ID(1000 + n)
		s.record(t, e)
	}

	for id, want := range map[string][]string{"": {"greeting", "other"}, "7": {"greeting"}, "8": {}} {
		got, err := s.Suggest(t.Context(), s.id, wire.SuggestQuery{Field: "prompt", TemplateID: id})
		if diff := cmp.Diff(want, got.Values); err != nil || diff != "" {
			t.Errorf("of template %q (%v) (-want +got):\n%s", id, err, diff)
		}
	}
}

// A body may take long to read: the budget is checked after each.
func TestSuggestionsFromBodiesEndInTime(t *testing.T) {
	s := newServer(t)
	for n := range 20 {
		e := write(n, wire.KindRequest, fmt.Sprintf(`{"function_name":"f","request_response":"answer %d"}`, n))
		e.RequestID = databasetest.ID(1000 + n)
		s.record(t, e)
	}

	got, err := s.Suggest(t.Context(), s.id, wire.SuggestQuery{Field: "output_text", Budget: time.Nanosecond})
	if err != nil || got.Complete || len(got.Values) != 1 {
		t.Errorf("%d values, complete %v, %v; want one and no more", len(got.Values), got.Complete, err)
	}
}
