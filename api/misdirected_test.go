package api_test

import (
	"encoding/json"
	"strings"
	"testing"
)

// errorBody has what clients of other services read of an error.
type errorBody struct {
	Success *bool
	Type    string
	Message string
	Detail  string
	Error   json.RawMessage
}

func TestClientsOfOtherServicesGetAnErrorThatTheyUnderstand(t *testing.T) {
	s := start(t, nil)
	for path, want := range map[string]struct{ error, says string }{
		"/v1/chat/completions":   {`"type":"invalid_request_error"`, "does not relay"},
		"/chat/completions":      {`"type":"invalid_request_error"`, "does not relay"},
		"/v1/responses":          {`"param":null`, "/docs/log-python"},
		"/v1/embeddings":         {`"code":"not_found"`, "track-request"},
		"/v1/completions/":       {`"code":"not_found"`, "base URL"},
		"/v1/messages":           {`"type":"not_found_error"`, "does not relay"},
		"/api/public/ingestion":  {`"LangfuseNotFoundError"`, "Send OpenTelemetry"},
		"/runs/batch":            {`"not_found"`, "LANGSMITH_OTEL_ENABLED=true"},
		"/api/v1/runs/multipart": {`"not_found"`, "/docs/log-opentelemetry"},
		"/v1beta/models/gemini-2.5-flash:generateContent": {`"status":"NOT_FOUND"`, "does not relay"},

		"/rest/track-requests": {`"not_found"`, "There is no route /rest/track-requests"},
	} {
		status, text, _ := s.text("POST", path, `{"model":"gpt-4o","messages":[]}`)
		var body errorBody
		if err := json.Unmarshal([]byte(text), &body); err != nil || status != 404 {
			t.Fatalf("%s: %d %s", path, status, text)
		}
		if !strings.Contains(string(body.Error), want.error) || !strings.Contains(body.Message, want.says) ||
			body.Success == nil || *body.Success {
			t.Errorf("%s: %s", path, text)
		}
		if strings.Contains(path, "/runs/") && body.Detail != body.Message {
			t.Errorf("%s: the detail is %q", path, body.Detail)
		}
		if strings.HasSuffix(path, "/messages") && body.Type != "error" {
			t.Errorf("%s: the type is %q", path, body.Type)
		}
	}
}
