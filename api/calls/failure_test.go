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

// failures has an error of each provider's API, as its documentation shows it. It is the
// request_response of a call, beside the fields that the caller said. Raw is true if the
// response is shown beside type and message.
var failures = []struct {
	name, said, response string
	want                 calls.Failure
	raw                  bool
}{
	// https://platform.openai.com/docs/guides/error-codes
	{
		"openai",
		``,
		`{"error":{"message":"Rate limit reached for gpt-4o","type":"tokens","param":null,` +
			`"code":"rate_limit_exceeded"}}`,
		calls.Failure{Type: "tokens", Message: "Rate limit reached for gpt-4o"},
		true,
	},
	{"azure", ``, `{"error":{"code":"DeploymentNotFound","message":"The API deployment does not exist."}}`,
		calls.Failure{Type: "DeploymentNotFound", Message: "The API deployment does not exist."}, true},
	{
		"azure's gateway",
		`"status":"ERROR",`,
		`{"statusCode":401,"message":"Access denied due to invalid subscription key."}`,
		calls.Failure{Message: "Access denied due to invalid subscription key."},
		true,
	},
	{
		"openai responses",
		``,
		`{"object":"response","status":"failed","error":{"code":"server_error","message":"Try again."},"output":[]}`,
		calls.Failure{Type: "server_error", Message: "Try again."},
		true,
	},
	// https://docs.anthropic.com/en/api/errors
	{
		"anthropic",
		``,
		`{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"},"request_id":"req_1"}`,
		calls.Failure{Type: "overloaded_error", Message: "Overloaded"},
		true,
	},
	{
		"anthropic, in a stream",
		``,
		`[{"type":"message_start","message":{"content":[]}},{"type":"content_block_delta",` +
			`"delta":{"type":"text_delta","text":"He"}},
		{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}]`,
		calls.Failure{Type: "overloaded_error", Message: "Overloaded"},
		true,
	},
	// https://cloud.google.com/apis/design/errors
	{
		"google",
		``,
		`{"error":{"code":429,"message":"Quota exceeded.","status":"RESOURCE_EXHAUSTED","details":[{"@type":"x"}]}}`,
		calls.Failure{Type: "RESOURCE_EXHAUSTED", Message: "Quota exceeded."},
		true,
	},
	{
		"google, of a stream",
		``,
		`[{"error":{"code":503,"message":"Overloaded.","status":"UNAVAILABLE"}}]`,
		calls.Failure{Type: "UNAVAILABLE", Message: "Overloaded."},
		true,
	},
	// https://docs.aws.amazon.com/bedrock/latest/APIReference/CommonErrors.html
	{
		"bedrock, boto3",
		``,
		`{"Error":{"Message":"Too many requests.","Code":"ThrottlingException"},` +
			`"ResponseMetadata":{"HTTPStatusCode":429}}`,
		calls.Failure{Type: "ThrottlingException", Message: "Too many requests."},
		true,
	},
	{
		"bedrock, javascript",
		``,
		`{"name":"ThrottlingException","$fault":"client","$metadata":{"httpStatusCode":429},` +
			`"message":"Too many requests."}`,
		calls.Failure{Type: "ThrottlingException", Message: "Too many requests."},
		true,
	},
	{
		"bedrock, http",
		``,
		`{"__type":"ValidationException","message":"The model is unknown."}`,
		calls.Failure{Type: "ValidationException", Message: "The model is unknown."},
		true,
	},
	// https://docs.mistral.ai/api/
	{"mistral", ``, `{"object":"error","message":"Invalid model","type":"invalid_model","param":null,"code":"1500"}`,
		calls.Failure{Type: "invalid_model", Message: "Invalid model"}, true},
	{
		"openrouter",
		``,
		`{"error":{"code":402,"message":"Insufficient credits"}}`,
		calls.Failure{Type: "402", Message: "Insufficient credits"},
		true,
	},
	{
		"cohere",
		`"error_type":"PROVIDER_ERROR",`,
		`{"message":"invalid api token"}`,
		calls.Failure{Type: "PROVIDER_ERROR", Message: "invalid api token"},
		true,
	},
	{"a gateway", `"status":"ERROR",`, `{"detail":"Not Found"}`, calls.Failure{Message: "Not Found"}, true},
	{
		"workers",
		`"status":"ERROR",`,
		`{"success":false,"errors":[{"code":10000,"message":"Authentication error"}]}`,
		calls.Failure{Type: "10000", Message: "Authentication error"},
		true,
	},
	{"ollama", ``, `{"error":"model 'llama' not found"}`, calls.Failure{Message: "model 'llama' not found"}, true},
	{
		"python's exception",
		`"status":"ERROR","error_type":"PROVIDER_RATE_LIMIT",`,
		`"Error code: 429 - {'error': {'message': 'Slow down.'}}"`,
		calls.Failure{Type: "PROVIDER_RATE_LIMIT", Message: "Error code: 429 - {'error': {'message': 'Slow down.'}}"},
		false,
	},
	{
		"json in a text",
		`"status":"error",`,
		`"{\"error\":{\"type\":\"tokens\",\"message\":\"Slow down.\"}}"`,
		calls.Failure{Type: "tokens", Message: "Slow down."},
		true,
	},

	{
		"the caller's word counts",
		`"status":"ERROR","error_type":"PROVIDER_TIMEOUT","error_message":"30 s are over",`,
		`{"error":{"type":"timeout","message":"Timed out"}}`,
		calls.Failure{Type: "PROVIDER_TIMEOUT", Message: "30 s are over"},
		true,
	},
	{
		"no response",
		`"status":"ERROR","error_type":"PROVIDER_TIMEOUT","error_message":"30 s are over",`,
		`{}`,
		calls.Failure{Type: "PROVIDER_TIMEOUT", Message: "30 s are over"},
		false,
	},
	{"nothing is known", `"status":"ERROR",`, `null`, calls.Failure{}, false},
	{
		"half an answer",
		`"status":"WARNING","error_type":"PROVIDER_PARTIAL_RESPONSE",`,
		`{"choices":[{"message":{"role":"assistant","content":"Hel"}}],"type":"x"}`,
		calls.Failure{Type: "PROVIDER_PARTIAL_RESPONSE"},
		false,
	},
}

func TestEveryProvidersErrorsAreRead(t *testing.T) {
	for _, c := range failures {
		t.Run(c.name, func(t *testing.T) {
			body := `{"function_name":"f","kwargs":{},` + c.said + `"request_response":` + c.response + `}`
			call := calls.Read([]byte(body))
			if diff := cmp.Diff(&c.want, call.Failure); diff != "" {
				t.Errorf("failure (-want +got):\n%s", diff)
			}

			if (call.Raw != nil) != c.raw || !call.Readable {
				t.Errorf("raw %q, readable %t; want raw: %t, readable: true", call.Raw, call.Readable, c.raw)
			}

			if rec := recordOf(t, body); rec.ErrorMessage != c.want.Message || !rec.Readable {
				t.Errorf("the record says %q, readable %t", rec.ErrorMessage, rec.Readable)
			}
		})
	}
}

func TestAnswersAreNoErrors(t *testing.T) {
	for _, c := range families {
		body := `{"kwargs":` + c.kwargs + `,"request_response":` + c.response + `}`
		if call := calls.Read([]byte(body)); call.Failure != nil {
			t.Errorf("%s is read as a failure: %+v", c.name, call.Failure)
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
	if !content.Holds([]string{"ratelimiterror", "slow"}) {
		t.Errorf("its words are not in the text to search, %q", content.Output)
	}
}

func TestALogRequestThatFailed(t *testing.T) {
	body := `{"provider":"openai","model":"gpt-4","input":{"type":"chat","messages":[]},` +
		`"output":{"type":"chat","messages":[]},
		"request_start_time":"2024-01-15T10:30:00Z","request_end_time":"2024-01-15T10:30:30Z",` +
		`"status":"ERROR","error_type":"PROVIDER_TIMEOUT","error_message":"Request timed out after 30 seconds"}`
	want := &calls.Failure{Type: "PROVIDER_TIMEOUT", Message: "Request timed out after 30 seconds"}
	if diff := cmp.Diff(want, calls.Read([]byte(body)).Failure); diff != "" {
		t.Errorf("failure (-want +got):\n%s", diff)
	}
	if rec := recordOf(t, body); rec.ErrorMessage != want.Message || rec.ErrorType != want.Type || !rec.Readable {
		t.Errorf("the record is %+v", rec)
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
