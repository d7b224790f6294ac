package api_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// errorBody has what clients of other services read of an error.
type errorBody struct {
	Success *bool
	Type    string
	Message string
	Detail  string
	Error   struct {
		Message, Type, Status string
		Code                  int
	}
}

func TestClientsOfOtherServicesGetAnErrorThatTheyUnderstand(t *testing.T) {
	s := start(t, nil)
	for path, says := range map[string]string{
		"/v1/chat/completions":   "does not relay",
		"/chat/completions":      "does not relay",
		"/v1/responses":          "/docs/log-python",
		"/v1/embeddings":         "track-request",
		"/v1/completions/":       "base URL",
		"/v1/messages":           "does not relay",
		"/api/public/ingestion":  "Send OpenTelemetry",
		"/runs/batch":            "LANGSMITH_OTEL_ENABLED=true",
		"/api/v1/runs/multipart": "/docs/log-opentelemetry",
		"/v1beta/models/gemini-2.5-flash:generateContent": "does not relay",
	} {
		status, text, _ := s.text("POST", path, `{"model":"gpt-4o","messages":[]}`)
		var body errorBody
		if err := json.Unmarshal([]byte(text), &body); err != nil || status != 404 {
			t.Fatalf("%s: %d %s", path, status, text)
		}
		want := errorBody{Success: new(bool), Type: "error", Message: body.Message, Detail: body.Message}
		want.Error.Message, want.Error.Type = body.Message, "not_found_error"
		want.Error.Code, want.Error.Status = 404, "NOT_FOUND"
		if diff := cmp.Diff(want, body); diff != "" || !strings.Contains(body.Message, says) {
			t.Errorf("%s: %s", path, text)
		}
	}

	_, text, _ := s.text("POST", "/rest/track-requests", `{}`)
	if !strings.Contains(text, `"error":"not_found","message":"There is no route /rest/track-requests`) {
		t.Error(text)
	}
}
