package description

import (
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"promptspool/api/openapitest"
)

const request = "0198c5a0-7a3c-7b62-9d0e-5f8a4c2b1e90"

// current is what the binary serves.
func current(t *testing.T) *Checker {
	t.Helper()
	text, err := os.ReadFile("../../../../api/dashboard/docs/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	c, err := NewChecker(text)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// examplesOf calls fn with each example of a document, and the place of the schema beside it.
func examplesOf(v any, place string, fn func(place string, example any)) {
	object, _ := v.(map[string]any)
	for name, inner := range object {
		at := place + "/" + escaped(name)
		if example := member(inner, "example"); example != nil && member(inner, "schema") != nil {
			fn(at+"/schema", example)
		}
		if name != "example" {
			examplesOf(inner, at, fn)
		}
	}
}

func TestEveryExampleFitsItsSchema(t *testing.T) {
	c := current(t)
	seen := 0
	examplesOf(c.document, "", func(place string, example any) {
		seen++
		if err := c.validate(place, example); err != nil {
			t.Errorf("%s: %v", place, err)
		}
	})
	if seen < 85 {
		t.Errorf("only %d examples were seen", seen)
	}
}

func TestTheCheckerSeesWhatDiffers(t *testing.T) {
	c := current(t)
	const kind = "application/json"
	good := `{"success": true, "message": "Score recorded.", "request_id": "` + request + `"}`
	for _, tt := range []struct {
		path   string
		status int
		kind   string
		body   string
		says   string
	}{
		{"/rest/track-score", 200, kind, good, ""},
		{"/library-track-score", 200, kind, good, ""},
		{"/rest/track-score", 200, kind, strings.Replace(good, "true", `"yes"`, 1), "success"},
		{"/rest/track-score", 200, kind, strings.Replace(good, "{", `{"more": 1, `, 1), "more"},
		{"/rest/track-score", 200, kind, `{"success": true}`, "missing"},
		{"/rest/track-score", 200, kind, `[`, "not JSON"},
		{"/rest/track-score", 202, kind, good, "202 is not described"},
		{"/rest/track-score", 200, "text/html", good, "text/html"},
		{"/rest/track-score", 401, kind, good, "missing"},
		{"/rest/backtest", 200, "application/x-ndjson", "{}\n", "missing"},
	} {
		err := c.CheckAnswer("POST", tt.path, tt.status, tt.kind, []byte(tt.body))
		if (err == nil) != (tt.says == "") || err != nil && !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s %d %s: %v, want %q", tt.path, tt.status, tt.body, err, tt.says)
		}
	}

	for body, ok := range map[string]bool{
		`{"request_id": "` + request + `", "score": 1, "name": null, "more": 1}`: true,
		`{"request_id": "` + request + `", "score": 101}`:                        false,
		`{"session_id": "s-1", "score": 1}`:                                      true,
		`{"request_id": "` + request + `", "value": "rude", "author": "ann"}`:    true,
		`{"request_id": "` + request + `", "score": 1, "source": "dog"}`:         false,
	} {
		if err := c.CheckRequest("POST", "/rest/track-score", []byte(body)); (err == nil) != ok {
			t.Errorf("%s: %v", body, err)
		}
	}
}

func TestTheTypesOfTheBlueprintAreDescribed(t *testing.T) {
	c := current(t)
	chat := func(message string) string {
		return `{"provider":"p","model":"m","request_start_time":1,"request_end_time":2,` +
			`"output":{"type":"chat","messages":[]},"input":{"type":"chat","messages":[` + message + `],` +
			`"tools":null,"tool_choice":"auto","function_call":null}}`
	}
	for message, ok := range map[string]bool{
		`{"role":"user","content":"Hi","template_format":"jinja2","name":null}`:                              true,
		`{"role":"user","content":[{"type":"text","text":"Hi","more":1}],"input_variables":[]}`:              true,
		`{"role":"assistant","tool_calls":[{"id":"1","function":{"name":"f","arguments":"{}"}}]}`:            true,
		`{"role":"tool","tool_call_id":"1","content":[{"type":"image_url","image_url":{"url":"http://a"}}]}`: true,
		`{"role":"user","content":7}`:                        false,
		`{"role":"user","template_format":"mustache"}`:       false,
		`{"role":"assistant","tool_calls":[{"function":1}]}`: false,
	} {
		if err := c.CheckRequest("POST", "/log-request", []byte(chat(message))); (err == nil) != ok {
			t.Errorf("%s: %v", message, err)
		}
	}
}

func TestTheTransportReportsWhatDiffers(t *testing.T) {
	var reported []error
	c := current(t)
	transport := &openapitest.Transport{Note: func(e openapitest.Exchange) {
		if err := c.Check(e); err != nil {
			reported = append(reported, err)
		}
	}}
	good := `{"success": true, "message": "Group created.", "id": "` + request + `"}`
	for _, tt := range []struct {
		path, version, answer string
		reports               bool
	}{
		{"/rest/create-group", "1", good, false},
		{"/rest/create-group", "1", `{"success": true}`, true},
		{"/rest/create-group", "", `{"success": true}`, false}, // from a proxy in between
		{"/docs", "1", `{}`, false},
	} {
		reported = nil
		transport.RoundTripper = answering(func(*http.Request) *http.Response {
			header := http.Header{"Content-Type": {"application/json"}, "Promptspool-Version": {tt.version}}
			return &http.Response{StatusCode: 200, Header: header, Body: io.NopCloser(strings.NewReader(tt.answer))}
		})

		client := &http.Client{Transport: transport}
		res, err := client.Post("http://x"+tt.path, "application/json", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		if err != nil || string(body) != tt.answer || (len(reported) > 0) != tt.reports {
			t.Errorf("%s %s: %v, reported %v", tt.path, tt.answer, err, reported)
		}
	}
}

// answering is a RoundTripper that needs no server.
type answering func(*http.Request) *http.Response

func (a answering) RoundTrip(r *http.Request) (*http.Response, error) { return a(r), nil }
