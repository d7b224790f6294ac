package openapi

import "promptspool/api/wire"

// ExportTraces is an ExportTraceServiceRequest of OTLP 1.
type ExportTraces struct {
	open
	// Spans, by the resource that they come from.
	ResourceSpans []any `json:"resourceSpans,omitempty"`
}

// SpansBulk brings the spans of an SDK.
type SpansBulk struct {
	open
	WithKey
	// The spans.
	Spans []BulkSpan `json:"spans"`
	// Close the traces of the spans after them.
	CloseAfter bool `json:"close_after,omitempty"`
}

// BulkSpan is a span, named as OpenTelemetry's SDK for Python prints it.
type BulkSpan any

// ExportLogs is an ExportLogsServiceRequest of OTLP 1.
type ExportLogs struct {
	open
	// Log records, by the resource that they come from.
	ResourceLogs []any `json:"resourceLogs,omitempty"`
}

// ExportMetrics is an ExportMetricsServiceRequest of OTLP 1.
type ExportMetrics struct {
	open
	// Metrics, by the resource that they come from.
	ResourceMetrics []any `json:"resourceMetrics,omitempty"`
}

// Exported is the answer to an exporter.
type Exported struct {
	// The items that were not kept; absent if all were.
	PartialSuccess *PartialSuccess `json:"partialSuccess,omitempty"`
}

// PartialSuccess says what was not kept of a request. It must not be sent again. If nothing was refused,
// its message is a warning.
type PartialSuccess struct {
	// How many spans were refused: a number in a string.
	RejectedSpans string `json:"rejectedSpans,omitempty"`
	// How many log records were refused: a number in a string.
	RejectedLogRecords string `json:"rejectedLogRecords,omitempty"`
	// How many data points of metrics were refused: 0 in a string, because all are dropped.
	RejectedDataPoints string `json:"rejectedDataPoints,omitempty"`
	// Why the first of them was refused, and what else was dropped.
	ErrorMessage string `json:"errorMessage,omitempty"`
}

// Trace is a wire.Trace or a wire.TraceTree.
type Trace struct {
	Success   bool        `json:"success"`
	TraceID   string      `json:"trace_id"`
	Spans     []TraceSpan `json:"spans"`               // by start; of a tree its roots
	Closed    bool        `json:"closed,omitempty"`    // set once the trace was closed
	Truncated bool        `json:"truncated,omitempty"` // whether the trace has more spans than the 40,000 of an answer
	Complete  bool        `json:"complete"`            // false while calls of a long trace take its user and session
	SessionID string      `json:"session_id,omitempty"`
	UserID    string      `json:"user_id,omitempty"`

	OwnScores []wire.Score `json:"own_scores"` // of the trace itself, by name
	// The sums of all spans of a tree.
	Total *wire.TraceTotal `json:"total,omitempty"`
	// Of a tree: the root has not ended.
	Running bool `json:"running,omitempty"`
}

// TraceSpan is a wire.TraceSpan or a wire.TraceNode.
type TraceSpan struct {
	wire.TraceSpan
	// The sums of it and of all spans of a tree below it.
	Total *wire.TraceTotal `json:"total,omitempty"`
	// In a tree: its parent is not among the spans.
	ParentMissing bool `json:"parent_missing,omitempty"`
	// The spans of a tree right below it, by their start.
	Children []TraceSpan `json:"children,omitempty"`
}
