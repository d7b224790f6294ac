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

// LogWrite is a decoded log-request: a model call, with its input and output as
// blueprints. Raw members alias the body that it was decoded from.
type LogWrite struct {
	RequestID     string // "" if the caller chose none
	FunctionName  string
	Provider      string
	Model         string
	APIType       string
	Input, Output json.RawMessage // blueprints: objects of type chat or completion
	Parameters    json.RawMessage // an object; nil if absent
	Start, End    time.Time       // zero if they are not a moment
	InputTokens   *int64          // nil if absent
	OutputTokens  *int64
	Price         json.RawMessage // a number of US dollars, as sent; nil if absent
	Score         *int            // nil if absent
	ScoreName     string          // DefaultScoreName if it has none
	Tags          []string
	Metadata      map[string]string // with the fields in CallNames
	Prompt        PromptLink        // Name is prompt_name, else prompt_id
	GroupID       string
	Status        string
	ErrorType     string
	ErrorMessage  string
	Dropped       []Dropped
	Note          string // see RequestWrite
}

// ErrorMessageRunesMax bounds the error_message of a log-request.
const ErrorMessageRunesMax = 1024

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
	w := LogWrite{
		FunctionName: f.text("function_name", false, FunctionNameRunesMax),
		Provider:     f.text("provider", true, NameRunesMax),
		Model:        f.text("model", true, NameRunesMax),
		APIType:      f.text("api_type", false, NameRunesMax),
		Input:        f.blueprint("input"),
		Output:       f.blueprint("output"),
		Parameters:   f.json("parameters", false),
		Start:        f.time("request_start_time", true),
		End:          f.time("request_end_time", true),
		InputTokens:  f.countOf("input_tokens", TokensMax),
		OutputTokens: f.countOf("output_tokens", TokensMax),
		Price:        f.price("price"),
		Tags:         f.tags("tags"),
		Metadata:     f.callMetadata(),
		GroupID:      f.textOrInteger("group_id", false, NameRunesMax),
		Status:       f.status(),
		ErrorType:    f.text("error_type", false, NameRunesMax),
		ErrorMessage: f.text("error_message", false, ErrorMessageRunesMax),
		ScoreName:    cmp.Or(f.text("score_name", false, NameRunesMax), DefaultScoreName),
		Prompt: PromptLink{
			Name:           f.text("prompt_name", false, NameRunesMax),
			Version:        f.version("prompt_version_number"),
			Label:          f.text("prompt_label", false, NameRunesMax),
			InputVariables: f.json("prompt_input_variables", false),
		},
	}

	// prompt_id is checked even where prompt_name wins.
	id := f.textOrInteger("prompt_id", false, NameRunesMax)
	if w.Prompt.Name == "" {
		w.Prompt.Name = id
	}

	if n := f.countOf("score", 100); n != nil {
		score := int(*n)
		w.Score = &score
	}
	f.outcome(w.Status, w.ErrorType)
	f.tracePlace() // only checked
	if _, ok := object.Get("request_id"); ok {
		w.RequestID = f.requestID()
	}
	w.Dropped, w.Note = f.dropped, f.note

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

// countOf reads an integer from 0 to most, where 0 differs from absent (nil).
func (f *fields) countOf(name string, most int64) *int64 {
	v, ok := f.raw(name, false)
	if !ok {
		return nil
	}

	n, ok := integer(v)
	if !ok || n < 0 || n > most {
		f.fault(name, "must be an integer from 0 to %d", most)
		return nil
	}
	return &n
}

// price reads an amount from 0 to PriceMax, as it was sent; nil if it is absent.
func (f *fields) price(name string) json.RawMessage {
	v, ok := f.raw(name, false)
	if !ok {
		return nil
	}

	x, err := strconv.ParseFloat(string(v), 64)
	if !isNumber(v) || err != nil || x < 0 || x > PriceMax {
		f.fault(name, "must be a number from 0 to %d", PriceMax)
		return nil
	}
	return v
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
