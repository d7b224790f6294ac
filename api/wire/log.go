package wire

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"promptspool/api/wire/jsonscan"
)

// LogWrite is the body of a log-request: a model call, with its input and output as
// blueprints.
type LogWrite struct {
	// The provider's name, such as openai.
	Provider string `json:"provider" jsonschema:"minLength=1,maxLength=512"`
	// The model's name.
	Model string `json:"model" jsonschema:"minLength=1,maxLength=512"`
	// The prompt that was sent to the model.
	Input json.RawMessage `json:"input" read:"blueprint"`
	// The model's response.
	Output json.RawMessage `json:"output" read:"blueprint"`
	// The function that was called.
	FunctionName string `json:"function_name,omitempty" jsonschema:"maxLength=1024"`
	// Which of the provider's APIs was called.
	APIType string `json:"api_type,omitempty" jsonschema:"maxLength=512"`
	// The parameters of the call, such as temperature.
	Parameters json.RawMessage `json:"parameters,omitempty" jsonschema:"type=object"`
	// Tokens that were sent.
	InputTokens *int64 `json:"input_tokens,omitempty" jsonschema:"minimum=0,maximum=1000000000000"`
	// Tokens that came back.
	OutputTokens *int64 `json:"output_tokens,omitempty" jsonschema:"minimum=0,maximum=1000000000000"`
	// The cost of the call in US dollars; computed if it is left out.
	Price json.RawMessage `json:"price,omitempty" jsonschema:"type=number,minimum=0,maximum=1000000"`
	// A score.
	Score *int64 `json:"score,omitempty" jsonschema:"minimum=0,maximum=100"`
	// The score's name; "default" if it is left out.
	ScoreName string `json:"score_name,omitempty" jsonschema:"maxLength=512"`
	CallWrite
	// The name of the template that the call was made with.
	PromptName string `json:"prompt_name,omitempty" jsonschema:"maxLength=512"`
	// The template's id, if its name is left out.
	PromptID string `json:"prompt_id,omitempty" jsonschema:"anyof_type=string;integer,maxLength=512"`
	// The template's version; without it and a label, the latest.
	PromptVersion int `json:"prompt_version_number,omitempty" jsonschema:"anyof_type=integer;string"`
	// The label that the template was fetched by.
	PromptLabel string `json:"prompt_label,omitempty" jsonschema:"maxLength=512"`
	// The values of the template's variables.
	PromptInputVariables json.RawMessage `json:"prompt_input_variables,omitempty" jsonschema:"type=object"`
	// The kind of error, such as PROVIDER_TIMEOUT.
	ErrorType string `json:"error_type,omitempty" jsonschema:"maxLength=512"`
	// The error's message.
	ErrorMessage string `json:"error_message,omitempty" jsonschema:"maxLength=1024"`
}

// Link returns the template that the call was made with.
func (w *LogWrite) Link() PromptLink {
	return PromptLink{
		Name:           cmp.Or(w.PromptName, w.PromptID),
		Version:        w.PromptVersion,
		Label:          w.PromptLabel,
		InputVariables: w.PromptInputVariables,
	}
}

// statusesOfError maps each value of error_type to the statuses that it may be combined
// with.
var statusesOfError = map[string]string{
	"PROVIDER_RATE_LIMIT":       "WARNING ERROR",
	"PROVIDER_QUOTA_LIMIT":      "WARNING ERROR",
	"PROVIDER_PARTIAL_RESPONSE": "WARNING",
	"VARIABLE_MISSING_OR_EMPTY": "WARNING",
	"PROVIDER_TIMEOUT":          "ERROR",
	"PROVIDER_AUTH_ERROR":       "ERROR",
	"PROVIDER_ERROR":            "ERROR",
	"TEMPLATE_RENDER_ERROR":     "ERROR",
	"UNKNOWN_ERROR":             "WARNING ERROR",
}

// IsLog reports whether the body of a request event is a log-request, not a
// track-request.
func IsLog(object Object) bool {
	return object.Has("input") && object.Has("output") &&
		!object.Has("kwargs") && !object.Has("request_response")
}

// DecodeLog reads a log-request; see DecodeRequest for now and the error.
func DecodeLog(object Object, now time.Time) (LogWrite, error) {
	f := fields{object: object, isCall: true, now: now}
	var w LogWrite
	f.read(&w)
	f.outcome(w.Status, w.ErrorType)
	w.finish(&f)
	w.ScoreName = cmp.Or(w.ScoreName, DefaultScoreName)

	return w, f.err()
}

// outcome checks that an error_type is known, and may be combined with the status.
func (f *fields) outcome(status, errorType string) {
	allowed, known := statusesOfError[errorType]
	switch {
	case errorType == "":
	case !known:
		f.fault("error_type", "is not a known error type; use UNKNOWN_ERROR for anything else")
	case !slices.Contains(strings.Fields(allowed), status):
		statuses := strings.ReplaceAll(allowed, " ", " or ")
		f.fault("error_type", "%s requires the status %s", errorType, statuses)
	}
}

// logRoles are the roles that a message may have.
var logRoles = []string{"system", "user", "assistant", "function", "tool", "developer", "placeholder"}

// blueprint reads a chat or a completion. It ignores other members of messages and
// blocks, which are the caller's.
func (f *fields) blueprint(name string) json.RawMessage {
	v := f.json(name, true)
	if v == nil {
		return nil
	}

	// The type may be left out if the members tell it.
	kind, _ := jsonscan.Lookup(v, "type")
	messages, isChat := jsonscan.Lookup(v, "messages")
	content, isCompletion := jsonscan.Lookup(v, "content")
	switch {
	case string(kind) == `"chat"`, kind == nil && isChat:
		if !isChat || messages[0] != '[' {
			f.fault(name+".messages", "must be an array of messages")
			return v
		}
		for i, m := range jsonscan.Elements(messages) {
			f.logMessage(name+".messages["+strconv.Itoa(i)+"]", m)
		}
	case string(kind) == `"completion"`, kind == nil && isCompletion:
		f.blocks(name+".content", content, isCompletion)
	default:
		f.fault(name+".type", "must be chat or completion")
	}

	return v
}

// logMessage checks one message of a chat.
func (f *fields) logMessage(path string, m json.RawMessage) {
	if m[0] != '{' {
		f.fault(path, "must be an object")
		return
	}

	role, _ := jsonscan.Lookup(m, "role")
	if role == nil || role[0] != '"' || !slices.Contains(logRoles, jsonscan.Unquote(role)) {
		f.fault(path+".role", "must be one of %s", strings.Join(logRoles, ", "))
	}

	// A message that only calls tools has none.
	if content, ok := jsonscan.Lookup(m, "content"); ok {
		f.blocks(path+".content", content, true)
	}
}

// blocks checks the content blocks of a message or completion.
func (f *fields) blocks(path string, content json.RawMessage, exists bool) {
	if !exists || content[0] != '[' {
		f.fault(path, `must be an array of content blocks, such as [{"type": "text", "text": "..."}]`)
		return
	}

	for i, b := range jsonscan.Elements(content) {
		if b[0] != '{' {
			f.fault(path+"["+strconv.Itoa(i)+"]", "must be an object")
		}
	}
}
