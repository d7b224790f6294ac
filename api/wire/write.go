package wire

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"promptspool/api/wire/jsonscan"
)

// RequestWrite is a decoded track-request. Raw members alias the body that it was decoded
// from.
type RequestWrite struct {
	RequestID    string // "" if the caller chose none
	FunctionName string
	ProviderType string
	Kwargs       json.RawMessage // an object
	Args         json.RawMessage // anything; nil if absent
	Response     json.RawMessage // an object; on the un-prefixed route anything
	Start, End   time.Time       // zero if they are not a moment
	Tags         []string
	Metadata     map[string]string // with the fields in CallNames
	Prompt       PromptLink        // its Name is prompt_id: a name or an id; "" if absent
	GroupID      string
	Status       string
	ErrorType    string
	ErrorMessage string
	TracePlace
	Dropped []Dropped
	Note    string // sentences for its caller, each with a space before it

	// ReturnBlueprint asks for the call's blueprint in the reply.
	ReturnBlueprint bool
}

// TracePlace is where a call is in the caller's own trace. The ids are hexadecimal, in lower case;
// "" if there is none.
type TracePlace struct {
	TraceID      string
	SpanID       string // of the call itself
	ParentSpanID string
}

// PromptLink ties a request to a template version. Without Version it means the version
// that was labelled or latest when the link was accepted. A label takes precedence over a
// version.
type PromptLink struct {
	Name           string
	Version        int
	Label          string
	InputVariables json.RawMessage // an object; nil if absent
}

// ScoreWrite is a decoded track-score.
type ScoreWrite struct {
	RequestID string       // the record that keeps the score
	Target    *ScoreTarget // nil for the score of a request
	Score     Score        // without a value, if that is at fault
	Note      string       // see RequestWrite
}

// ScoreTarget is what a score is of that names no request: a span with its trace, a trace, a session.
type ScoreTarget struct {
	TraceID   string `json:"trace_id,omitempty"`
	SpanID    string `json:"span_id,omitempty"`
	SessionID string `json:"session_id,omitempty"`
}

// MetadataWrite is a decoded track-metadata.
type MetadataWrite struct {
	RequestID string
	Metadata  map[string]string
}

// PromptWrite is a decoded track-prompt.
type PromptWrite struct {
	RequestID string
	PromptLink
}

// GroupWrite is a decoded track-group.
type GroupWrite struct {
	RequestID string
	GroupID   string
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
	w := RequestWrite{
		FunctionName: f.text("function_name", true, FunctionNameRunesMax),
		ProviderType: f.text("provider_type", false, NameRunesMax),
		Kwargs:       f.json("kwargs", true),
		Start:        f.time("request_start_time", true),
		End:          f.time("request_end_time", true),
		Tags:         f.tags("tags"),
		Metadata:     f.callMetadata(),
		GroupID:      f.textOrInteger("group_id", false, NameRunesMax),
		Status:       f.status(),
		ErrorType:    f.text("error_type", false, BodyBytesMax),
		ErrorMessage: f.text("error_message", false, BodyBytesMax),
		Prompt: PromptLink{
			Name:           f.textOrInteger("prompt_id", false, NameRunesMax),
			Version:        f.version("prompt_version"),
			Label:          f.text("prompt_label", false, NameRunesMax),
			InputVariables: f.json("prompt_input_variables", false),
		},
		TracePlace: f.tracePlace(),
	}
	if args, ok := f.raw("args", false); ok {
		w.Args = args
	}

	// Optional extras of some clients. They are never at fault, so that a client that
	// means something else by them loses no call.
	wants, _ := object.Get("return_prompt_blueprint")
	w.ReturnBlueprint = string(wants) == "true"
	if w.ProviderType == "" {
		w.ProviderType = f.loose("provider", NameRunesMax) // its name in LangChain
	}

	switch {
	case strictResponse:
		w.Response = f.json("request_response", true)
	case object.Has("request_response"):
		w.Response, _ = object.Get("request_response") // also null
	default:
		f.fault("request_response", "is missing")
	}
	if _, ok := object.Get("request_id"); ok {
		w.RequestID = f.requestID()
	}
	w.Dropped, w.Note = f.dropped, f.note

	return w, f.err()
}

// status reads how a call ended, in any case; "" for a word that is not one of Statuses.
func (f *fields) status() string {
	v, ok := f.raw("status", false)
	if !ok || string(v) == `""` {
		return ""
	}
	for _, status := range Statuses {
		if v[0] == '"' && strings.EqualFold(jsonscan.Unquote(v), status) {
			return status
		}
	}
	f.fault("status", "must be SUCCESS, WARNING or ERROR")

	return ""
}

// loose returns a string of at most runesMax characters, or "" for anything else, which
// is not a fault.
func (f *fields) loose(name string, runesMax int) string {
	v, ok := f.object.Get(name)
	if !ok || v[0] != '"' {
		return ""
	}

	s := jsonscan.Unquote(v)
	if utf8.RuneCountInString(s) > runesMax {
		return ""
	}

	return s
}

// DecodeScore reads a track-score; see DecodeRequest for its error.
func DecodeScore(object Object) (ScoreWrite, error) {
	f := fields{object: object}
	w := ScoreWrite{}
	w.RequestID, w.Target = f.scored()
	w.Score.Name = f.text("name", false, NameRunesMax)
	// Named, so that a second score without a name replaces the first.
	if w.Score.Name == "" {
		w.Score.Name = DefaultScoreName
	}
	w.Score.Author = f.text("author", false, NameRunesMax)
	if strings.Contains(w.Score.Author, "\x00") {
		f.fault("author", "must not contain a NUL character")
		w.Score.Author = ""
	}

	w.Score.ScoreValue = f.scoreValue()
	w.Note = f.note
	d := ScoreDetails{
		AuthorVersion: f.textOrInteger("author_version", false, NameRunesMax),
		Source:        f.text("source", false, NameRunesMax),
		Reason:        f.text("reason", false, BodyBytesMax),
	}
	if d.Source != "" && !slices.Contains(ScoreSources, d.Source) {
		f.fault("source", "must be one of %s", strings.Join(ScoreSources, ", "))
		d.Source = ""
	}
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
func (f *fields) scored() (recordID string, target *ScoreTarget) {
	t := ScoreTarget{
		TraceID:   f.hexID("trace_id", 16),
		SpanID:    f.hexID("span_id", 8),
		SessionID: f.textOrInteger("session_id", false, CallNameRunesMax),
	}
	_, request := f.raw("request_id", false)
	switch {
	case t == ScoreTarget{} && len(f.errs) > 0 && !request:
		return "", nil
	case t == ScoreTarget{}:
		return f.requestID(), nil
	case request || t.SessionID != "" && t.TraceID+t.SpanID != "" || t.TraceID == "" && t.SpanID != "":
		f.fault("request_id", "must be given alone, or in its place trace_id with span_id, trace_id, or session_id")
		return "", nil
	}

	return t.RecordID(), &t
}

// DecodeMetadata reads a track-metadata; see DecodeRequest for its error.
func DecodeMetadata(object Object) (MetadataWrite, error) {
	f := fields{object: object}
	w := MetadataWrite{RequestID: f.requestID(), Metadata: f.metadata("metadata", true)}
	return w, f.err()
}

// DecodePrompt reads a track-prompt; see DecodeRequest for its error.
func DecodePrompt(object Object) (PromptWrite, error) {
	f := fields{object: object}
	w := PromptWrite{
		RequestID: f.requestID(),
		PromptLink: PromptLink{
			Name:           f.textOrInteger("prompt_name", true, NameRunesMax),
			Version:        cmp.Or(f.version("version"), f.version("prompt_version")),
			Label:          cmp.Or(f.text("label", false, NameRunesMax), f.text("prompt_label", false, NameRunesMax)),
			InputVariables: f.json("prompt_input_variables", true),
		},
	}
	return w, f.err()
}

// DecodeGroup reads a track-group; see DecodeRequest for its error.
func DecodeGroup(object Object) (GroupWrite, error) {
	f := fields{object: object}
	w := GroupWrite{RequestID: f.requestID(), GroupID: f.textOrInteger("group_id", true, NameRunesMax)}
	return w, f.err()
}

// requestID reads request_id, which must be an id that promptspool minted. Some clients
// of other servers send numbers.
func (f *fields) requestID() string {
	v, ok := f.raw("request_id", true)
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
