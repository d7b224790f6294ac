package wire

import "encoding/json"

// Done answers what has nothing to show.
type Done struct {
	Success bool   `json:"success"`
	Message string `json:"message"`
}

// Tracked answers a write.
type Tracked struct {
	Success bool   `json:"success"`
	Message string `json:"message"`
	// The call's id: scores, metadata and links name it.
	RequestID string `json:"request_id" jsonschema:"format=uuid"`
}

// Dropped is what a call is kept without, because it exceeds a limit.
type Dropped struct {
	// The path of the field in the body, such as metadata.
	Field string `json:"field"`
	// The limit, such as "has more than 256 keys".
	Reason string `json:"reason"`
	// How many tags or values were dropped for it.
	Count int `json:"count"`
}

// Scored answers a score.
type Scored struct {
	Success bool   `json:"success"`
	Message string `json:"message"`
	// The call's id. The score of a span, a trace or a session has none.
	RequestID string `json:"request_id,omitempty" jsonschema:"format=uuid"`
}

// TrackedRequest answers the logging of a call.
type TrackedRequest struct {
	Tracked
	// The tags and metadata that exceed a limit: only the raw record has them.
	Dropped []Dropped `json:"dropped,omitempty"`
	// The call as a blueprint, if it was asked for.
	Blueprint json.RawMessage `json:"prompt_blueprint"`
}

// Logged answers the logging of a call as blueprints.
type Logged struct {
	Tracked
	// The tags and metadata that exceed a limit: only the raw record has them.
	Dropped []Dropped `json:"dropped,omitempty"`
	// The same as request_id.
	ID string `json:"id" jsonschema:"format=uuid"`
	// Always null, where the hosted service has the linked version: a write does not wait
	// for a template. The record has the link.
	PromptVersion *map[string]any `json:"prompt_version"`
	// The logged status.
	Status string `json:"status"`
	// The logged type of error.
	ErrorType *string `json:"error_type"`
	// The logged error message.
	ErrorMessage *string `json:"error_message"`
}

// GroupCreated answers with the id of a new group.
type GroupCreated struct {
	Success bool   `json:"success"`
	Message string `json:"message"`
	// The group's id.
	ID string `json:"id" jsonschema:"format=uuid"`
}

// SpansTaken answers POST /spans-bulk: what became of the spans.
type SpansTaken struct {
	Success bool `json:"success"`
	// The spans that are durable.
	Spans []SpanTaken `json:"spans"`
	// The requests that were logged with a span.
	RequestLogs []RequestLogged `json:"request_logs"`
	// The ids of spans that cannot be kept.
	RejectedSpanIDs []string `json:"rejected_span_ids"`
	// The values of log_request that are not valid. Their spans are kept.
	RejectedRequestLogs []RequestRejected `json:"rejected_request_logs,omitempty"`
	// Why the first of them cannot be kept, or which of their times are not in nanoseconds.
	Message string `json:"message,omitempty"`
}

// SpanTaken is a span that is durable.
type SpanTaken struct {
	// Of its record.
	ID     string `json:"id" jsonschema:"format=uuid"`
	Name   string `json:"name"` // the span's name
	SpanID string `json:"span_id"`

	EventID string `json:"-"` // of its event
}

// RequestLogged is a request that was logged with a span.
type RequestLogged struct {
	// Of its record: the span's, unless it has a separate one.
	ID     string `json:"id" jsonschema:"format=uuid"`
	SpanID string `json:"span_id"`

	EventID string `json:"-"` // of its event
}

// RequestRejected is a log_request that is not valid.
type RequestRejected struct {
	SpanID string       `json:"span_id"`
	Fields []FieldError `json:"fields"` // the wrong fields, each with its fault
}

// TraceClosed is the answer to the close of a trace.
type TraceClosed struct {
	Success bool   `json:"success"`
	Message string `json:"message"`
	TraceID string `json:"trace_id"`
}

// Warned is the part of an answer that says what of the request had no effect.
type Warned struct {
	// Warning is what of the request had no effect; absent if there is nothing of that kind.
	Warning string `json:"warning,omitempty"`
}

// Warn sets the warning.
func (w *Warned) Warn(text string) { w.Warning = text }

// Warn adds a warning to that of the template itself.
func (t *RenderedTemplate) Warn(text string) { t.Warning = joined(t.Warning, text) }

// Warn adds a warning to that of the publication itself.
func (p *Published) Warn(text string) { p.Warning = joined(p.Warning, text) }

// joined returns both sentences; the first may be absent.
func joined(first *string, second string) *string {
	if first != nil {
		second = *first + " " + second
	}
	return &second
}
