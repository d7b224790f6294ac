package wire

import (
	"cmp"
	"encoding/json"
	"strings"
	"time"

	"promptspool/api/wire/jsonscan"
)

// CallWrite is what a track-request and a log-request have in common. Raw members alias the body that
// they were decoded from.
type CallWrite struct {
	// When the call began: seconds since 1970, or an ISO 8601 time, in UTC if it names no zone. A number
	// that makes sense only as milliseconds, microseconds or nanoseconds is read as such.
	Start time.Time `json:"request_start_time" jsonschema:"anyof_type=number;string"`
	// When the call ended.
	End time.Time `json:"request_end_time" jsonschema:"anyof_type=number;string"`
	// Words to find the call by. More than 256 are dropped.
	Tags []string `json:"tags,omitempty"`
	// Values to find the call by, such as user_id and session_id. A value that is not a string
	// is kept as its JSON.
	Metadata map[string]string `json:"metadata,omitempty" jsonschema:"type=object"`
	Placed
	// The group that the call belongs to.
	GroupID string `json:"group_id,omitempty" jsonschema:"anyof_type=string;integer,maxLength=512"`
	// If it is left out, ERROR if an error is named or a logged response holds one, otherwise SUCCESS.
	Status string `json:"status,omitempty" jsonschema:"enum=SUCCESS,enum=WARNING,enum=ERROR" read:"any case"`
	// An id of your own, a UUIDv7: the same id again is the same call.
	RequestID string `json:"request_id,omitempty" jsonschema:"format=uuid" read:"id"`

	Dropped []Dropped `json:"-"`
	Note    string    `json:"-"` // sentences for its caller, each with a space before it
}

// RequestWrite is the body of a track-request.
type RequestWrite struct {
	// The function that was called, such as openai.ChatCompletion.create; it tells how to
	// read the response.
	FunctionName string `json:"function_name" jsonschema:"minLength=1,maxLength=1024"`
	// The provider, if function_name does not begin with it.
	ProviderType string `json:"provider_type,omitempty" jsonschema:"maxLength=512"`
	// The arguments of the call: model, messages or prompt, and so on.
	Kwargs json.RawMessage `json:"kwargs" jsonschema:"type=object"`
	// Positional arguments of the call.
	Args json.RawMessage `json:"args,omitempty"`
	// The provider's response, as it came. The chunks of a stream go to /track-request.
	Response json.RawMessage `json:"request_response" jsonschema:"type=object" read:"-"`
	CallWrite
	PromptLink
	// The kind of error.
	ErrorType string `json:"error_type,omitempty"`
	// The error's message.
	ErrorMessage string `json:"error_message,omitempty"`
	// If true, the answer has the call as a blueprint, which can be published as a
	// template.
	ReturnBlueprint json.RawMessage `json:"return_prompt_blueprint,omitempty"`
}

// PromptLink ties a request to a template version, as a track-request has it. Without Version it means the version
// that was labelled or latest when the link was accepted. A label takes precedence over a version.
type PromptLink struct {
	// The template that the call was made with: its name or its id.
	Name string `json:"prompt_id,omitempty" jsonschema:"anyof_type=string;integer,maxLength=512"`
	// The template's version; without it and a label, the latest.
	Version int `json:"prompt_version,omitempty" jsonschema:"anyof_type=integer;string"`
	// The label that the template was fetched by; it wins over the version.
	Label string `json:"prompt_label,omitempty" jsonschema:"maxLength=512"`
	// The values of the template's variables.
	InputVariables json.RawMessage `json:"prompt_input_variables,omitempty" jsonschema:"type=object"`
}

// ScoreWrite is a decoded track-score.
type ScoreWrite struct {
	RequestID string       // the record that keeps the score
	Target    *ScoreTarget // nil for the score of a request
	Score     Score        // without a value, if that is at fault
	Note      string       // see CallWrite
}

// ScoreTarget is what a score is of that names no request: a span with its trace, a trace, a session.
type ScoreTarget struct {
	// The trace, or that of the span: 32 hexadecimal digits.
	TraceID string `json:"trace_id,omitempty" jsonschema:"minLength=32,maxLength=32" read:"hex"`
	// The span, with its trace: 16 hexadecimal digits.
	SpanID string `json:"span_id,omitempty" jsonschema:"minLength=16,maxLength=16" read:"hex"`
	// The session, as its calls name it.
	SessionID string `json:"session_id,omitempty" jsonschema:"anyof_type=string;integer,maxLength=256"`
}

// ScoreBody is the body of a track-score: a score of a call, a span, a trace or a session.
type ScoreBody struct {
	// The call: the id that its logging was answered with. It, a trace or a session is required, and
	// one alone.
	RequestID string `json:"request_id,omitempty" jsonschema:"format=uuid" read:"-"`
	ScoreTarget
	// The score, from 0 to 100; it or a value, which counts, is required.
	Score int `json:"score,omitempty" jsonschema:"minimum=0,maximum=100" read:"-"`
	// The score as any number, true, false or a text of at most 200 characters; null takes it back.
	Value json.RawMessage `json:"value,omitempty" jsonschema:"anyof_type=number;boolean;string;null" read:"-"`
	// The name of the score; "default" if it is left out.
	Name string `json:"name,omitempty" jsonschema:"maxLength=512"`
	// The person, the code or the model that judged. Each author has one score for each name.
	Author string `json:"author,omitempty" jsonschema:"maxLength=512"`
	// The version of the author, such as that of a model.
	AuthorVersion string `json:"author_version,omitempty" jsonschema:"anyof_type=string;integer,maxLength=512"`
	// The kind of author.
	Source string `json:"source,omitempty" jsonschema:"enum=human,enum=code,enum=model"`
	// The reason for the score.
	Reason string `json:"reason,omitempty"`
}

// OfRequest names the call that a write is about.
type OfRequest struct {
	// The id that the logging of the call was answered with.
	RequestID string `json:"request_id" jsonschema:"format=uuid" read:"id"`
}

// MetadataWrite is the body of a track-metadata. A key that is there already gets the new value.
type MetadataWrite struct {
	OfRequest
	// Values by their keys. A value that is not a string is kept as its JSON; null counts as
	// absent.
	Metadata map[string]string `json:"metadata" jsonschema:"type=object"`
}

// PromptWrite is the body of a track-prompt, which links a call to a template.
type PromptWrite struct {
	OfRequest
	// The template's name or id.
	Name string `json:"prompt_name" jsonschema:"anyof_type=string;integer,maxLength=512"`
	// The values of the template's variables.
	InputVariables json.RawMessage `json:"prompt_input_variables" jsonschema:"type=object"`
	// The version; without it and a label, the latest.
	Version int `json:"version,omitempty" jsonschema:"anyof_type=integer;string"`
	// The label that the template was fetched by; it wins over the version.
	Label string `json:"label,omitempty" jsonschema:"maxLength=512"`
}

// Link returns the link that it asks for.
func (w *PromptWrite) Link() PromptLink {
	return PromptLink{Name: w.Name, Version: w.Version, Label: w.Label, InputVariables: w.InputVariables}
}

// check reads the names that a track-request has for the same.
func (w *PromptWrite) check(f *fields) {
	w.Version = cmp.Or(w.Version, f.version("prompt_version", false))
	w.Label = cmp.Or(w.Label, f.text("prompt_label", false, NameRunesMax))
}

// GroupWrite is the body of a track-group.
type GroupWrite struct {
	OfRequest
	// The group's id.
	GroupID string `json:"group_id" jsonschema:"anyof_type=string;integer,maxLength=512"`
}

// Statuses are how a call can have ended.
var Statuses = []string{"SUCCESS", "WARNING", "ERROR"}

// DefaultScoreName is the name of a score that was sent without one.
const DefaultScoreName = "default"

// DecodeRequest reads a track-request. With strictResponse, as on /rest/track-request,
// request_response must be an object; the un-prefixed route takes any JSON, null
// included. now is when it was accepted, by which UnixTime judges its times.
//
// On an error, which is CodeInvalid and lists every field at fault, the write has what
// could be read. The archive relies on that, because it rejects nothing that a sidecar
// has accepted.
func DecodeRequest(object Object, strictResponse bool, now time.Time) (RequestWrite, error) {
	f := fields{object: object, isCall: true, now: now}
	var w RequestWrite
	f.read(&w)
	w.finish(&f)

	// Its name in LangChain. It is never at fault, so that a client that means something else by it
	// loses no call.
	if v, ok := object.Get("provider"); ok && v[0] == '"' && w.ProviderType == "" {
		w.ProviderType = Clip(jsonscan.Unquote(v), NameRunesMax)
	}

	switch {
	case strictResponse:
		w.Response = f.json("request_response", true)
	case object.Has("request_response"):
		w.Response, _ = object.Get("request_response") // also null
	default:
		f.fault("request_response", "is missing")
	}

	return w, f.err()
}

// finish takes what was read with the members, and beside them.
func (w *CallWrite) finish(f *fields) {
	w.Metadata = w.addTo(w.Metadata)
	w.Dropped, w.Note = f.dropped, f.note
}

// DecodeScore reads a track-score; see DecodeRequest for its error.
func DecodeScore(object Object) (ScoreWrite, error) {
	f := fields{object: object}
	var b ScoreBody
	f.read(&b)

	w := ScoreWrite{}
	w.RequestID, w.Target = f.scored(b.ScoreTarget)
	// Named, so that a second score without a name replaces the first.
	w.Score.ScoreSlot = ScoreSlot{Name: cmp.Or(b.Name, DefaultScoreName), Author: b.Author}
	if strings.Contains(b.Author, "\x00") {
		f.fault("author", "must not contain a NUL character")
		w.Score.Author = ""
	}

	w.Score.ScoreValue = f.scoreValue()
	w.Note = f.note
	d := ScoreDetails{AuthorVersion: b.AuthorVersion, Source: b.Source, Reason: b.Reason}
	if d != (ScoreDetails{}) {
		w.Score.Details = &d
	}

	return w, f.err()
}

// scoreValue reads a score, and the value that may be sent instead. A null takes a score back.
func (f *fields) scoreValue() (v ScoreValue) {
	value, typed := f.object.Get("value")
	typed = typed || value != nil && !f.object.Has("score")
	raw, ok := f.raw("score", !typed)
	if ok {
		n, isInteger := integer(raw)
		// The peer's scale. A caller with another one sends a value.
		if !isInteger || n < 0 || n > 100 {
			f.fault("score", "must be an integer from 0 to 100")
		} else {
			v.Number = float64(n)
		}
	}
	if !typed {
		return v
	}
	if ok {
		f.note = " The value counts; the score beside it is not read."
	}

	v, ok = parseScoreValue(value)
	if !ok {
		f.fault("value", "must be a number of at most %d, true, false, or a text of at most %d characters",
			ScoreNumberMax, ScoreCategoryRunesMax)
	}

	return v
}

// scored reads what a score is of, and the id of the record that keeps it.
func (f *fields) scored(t ScoreTarget) (recordID string, target *ScoreTarget) {
	_, request := f.raw("request_id", false)
	switch {
	case t == ScoreTarget{} && len(f.errs) > 0 && !request:
		return "", nil
	case t == ScoreTarget{}:
		return f.requestID(true), nil
	case request || t.SessionID != "" && t.TraceID+t.SpanID != "" || t.TraceID == "" && t.SpanID != "":
		f.fault("request_id", "must be given alone, or in its place trace_id with span_id, trace_id, or session_id")
		return "", nil
	}

	return t.RecordID(), &t
}

// requestID reads request_id, which must be an id that promptspool minted. Some clients
// of other servers send numbers.
func (f *fields) requestID(required bool) string {
	v, ok := f.raw("request_id", required)
	if !ok {
		return ""
	}
	if v[0] != '"' {
		f.fault("request_id", "%v", errID)
		return ""
	}

	id, err := ParseID(jsonscan.Unquote(v))
	if err != nil {
		f.fault("request_id", "%v", err)
	}
	return id
}
