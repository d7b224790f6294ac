package calls_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"promptspool/api/calls"
	"promptspool/spool/archive/query"
)

// failure is a call with an error of one provider's API, as its documentation shows it.
// Raw is true if the response is shown beside type and message.
type failure struct {
	Name string
	Call json.RawMessage
	Want calls.Failure
	Raw  bool
}

func TestEveryProvidersErrorsAreRead(t *testing.T) {
	for _, c := range cases[failure](t, "failures.json") {
		t.Run(c.Name, func(t *testing.T) {
			call := calls.Read(c.Call)
			if diff := cmp.Diff(&c.Want, call.Failure); diff != "" {
				t.Errorf("failure (-want +got):\n%s", diff)
			}

			if (call.Raw != nil) != c.Raw || !call.Readable {
				t.Errorf("raw %q, readable %t; want raw: %t, readable: true", call.Raw, call.Readable, c.Raw)
			}

			rec := recordOf(t, string(c.Call))
			if rec.ErrorMessage != c.Want.Message || rec.ErrorType != c.Want.Type || !rec.Readable {
				t.Errorf("the record says %q, %q, readable %t", rec.ErrorType, rec.ErrorMessage, rec.Readable)
			}
			if rec.Status != "ERROR" && c.Name != "half an answer" {
				t.Errorf("its status is %s", rec.Status)
			}
		})
	}
}

func TestAnswersAreNoErrors(t *testing.T) {
	for _, c := range cases[family](t, "calls.json") {
		if call := calls.Read(c.Call); call.Failure != nil && c.Name != "gemini, blocked" {
			t.Errorf("%s is read as a failure: %+v", c.Name, call.Failure)
		}
	}

	for _, response := range []string{
		`"There was an error."`,
		`{"message":"There was an error."}`,
		`{"error":null,"output":[]}`,
		`{"error":{},"choices":[]}`,
		`{"error":"","text":"x"}`,
		`"{\"error\":{\"message\":\"as JSON, as it was asked to\"}}"`,
		`[{"role":"assistant","content":"an error"}]`,
		`{"object":"response","status":"incomplete","output":[]}`,
		`[{"type":"tool-error","error":"of a tool"},{"type":"text-delta","text":"x"}]`,
		`{"code":"Success","message":"as it should","output":{"text":"x"}}`, `{"code":0,"message":"ok","result":{}}`,
		`{"promptFeedback":{"blockReason":"BLOCK_REASON_UNSPECIFIED"},"candidates":[]}`,
		`{}`, `null`, `7`,
	} {
		if call := calls.Read([]byte(`{"request_response":` + response + `}`)); call.Failure != nil {
			t.Errorf("%s is read as a failure: %+v", response, call.Failure)
		}
	}
}

func TestTheTextOfAnExceptionIsNoAnswerAndIsFound(t *testing.T) {
	body := json.RawMessage(`{"status":"ERROR","kwargs":{},"request_response":"openai.RateLimitError: slow down"}`)
	call, content := calls.Read(body), query.ReadContent(context.Background(), body)
	if len(call.Output) > 0 || call.Shape() != "" {
		t.Errorf("it is read as an answer: %+v, shape %q", call.Output, call.Shape())
	}
	if !strings.Contains(content.Output, "RateLimitError: slow") {
		t.Errorf("its words are not in the text to search, %q", content.Output)
	}
}

func TestAStatusIsTheCallersOrElseThatOfTheResponse(t *testing.T) {
	const answered, failed = `{"choices":[{"message":{"content":"x"}}]}`, `{"error":{"message":"x"}}`
	for _, c := range []struct{ members, response, want string }{
		{``, answered, "SUCCESS"},
		{``, failed, "ERROR"},
		{`"status":"success",`, failed, "SUCCESS"},
		{`"status":"Warning",`, answered, "WARNING"},
		{`"status":"WEIRD",`, answered, "SUCCESS"},
		{`"status":"WEIRD",`, failed, "ERROR"},
		{`"status":7,`, failed, "ERROR"},
		{`"error_type":"Timeout",`, answered, "ERROR"},
		{`"error_message":"too slow",`, `null`, "ERROR"},
		{`"status":"SUCCESS","error_message":"retried",`, answered, "SUCCESS"},
	} {
		body := `{"function_name":"f",` + c.members + `"kwargs":{},"request_response":` + c.response + `}`
		if rec := recordOf(t, body); rec.Status != c.want {
			t.Errorf("%s is %s, want %s", body, rec.Status, c.want)
		}
	}
}

func TestAnAnswerBeforeAnErrorIsFoundBesideIt(t *testing.T) {
	body := json.RawMessage(`{"kwargs":{},"request_response":[{"choices":[{"delta":{"content":"Sunny"}}]},` +
		`{"error":{"message":"Overloaded"}}]}`)
	call, content := calls.Read(body), query.ReadContent(context.Background(), body)
	if _, excerpt := call.Excerpts(); excerpt != "Overloaded Sunny" || content.Output != "Sunny\nOverloaded" {
		t.Errorf("the excerpt is %q, and the text to search %q", excerpt, content.Output)
	}
}

// A response that cannot be parsed is returned as it came.
func TestWhatCannotBeParsedIsKeptRaw(t *testing.T) {
	for _, response := range []string{`{"weird":[1]}`, `{"weird": "` + strings.Repeat("x", 1<<16) + `"}`, `7`} {
		call := calls.Read([]byte(`{"request_response":` + response + `}`))
		if call.Readable || call.RawText() != response {
			t.Errorf("%.40s: readable %t, raw %.40q", response, call.Readable, call.Raw)
		}
	}
}
