package wire

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
	// Why the first of them cannot be kept.
	Message string `json:"message,omitempty"`
}

// SpanTaken is a span that is durable.
type SpanTaken struct {
	// Of its record.
	ID     string `json:"id" jsonschema:"format=uuid"`
	Name   string `json:"name"`
	SpanID string `json:"span_id"`

	EventID string `json:"-"` // of its event
}

// RequestLogged is a request that was logged with a span.
type RequestLogged struct {
	// Of its record: the span's, unless it has one of its own.
	ID     string `json:"id" jsonschema:"format=uuid"`
	SpanID string `json:"span_id"`

	EventID string `json:"-"` // of its event
}

// RequestRejected is a log_request that is not valid.
type RequestRejected struct {
	SpanID string       `json:"span_id"`
	Fields []FieldError `json:"fields"`
}

// TraceClosed is the answer to the close of a trace.
type TraceClosed struct {
	Success bool   `json:"success"`
	Message string `json:"message"`
	TraceID string `json:"trace_id"`
}
