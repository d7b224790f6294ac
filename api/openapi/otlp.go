package openapi

import "promptspool/api/wire"

const exampleTrace = "5b8efff798038103d269b633813fc60c"

// ExportTraces is an ExportTraceServiceRequest of OTLP 1.
type ExportTraces struct {
	open
	// Spans, by the resource that they come from.
	ResourceSpans []any `json:"resourceSpans,omitempty"`
}

// CloseQuery is the query of requests that bring spans.
type CloseQuery struct {
	// Close the traces of the spans after them.
	CloseAfter bool `json:"close_after,omitempty"`
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

const exporterErrors = "Errors come in the encoding of the request: in protobuf as a google.rpc.Status."

// Trace is a wire.Trace or a wire.TraceTree.
type Trace struct {
	Success   bool        `json:"success"`
	TraceID   string      `json:"trace_id"`
	Spans     []TraceSpan `json:"spans"`               // by start; of a tree its roots
	Closed    bool        `json:"closed,omitempty"`    // set once the trace was closed
	Truncated bool        `json:"truncated,omitempty"` // whether the trace has more spans than the 40,000 of an answer
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

// TraceQuery chooses the form of a trace.
type TraceQuery struct {
	// As one list, or as a tree.
	Form string `json:"form,omitempty" jsonschema:"enum=flat,enum=tree,default=flat"`
}

var otlpOperations = []operation{
	{
		id: "exportTraces", tag: tagOTLP, name: "otlp-traces",
		route:   "POST /v1/traces",
		older:   "/v1/traces/v1/traces /",
		summary: "Record spans",
		detail: "The answer comes when all spans are durable. A span that comes again is recorded once. " +
			"Spans that cannot be kept are refused one by one. " +
			"Spans of an app's HTTP and database instrumentation are dropped, as `errorMessage` then says; " +
			"see `--otlp-keep`. Log records that are sent here are taken as by `POST /v1/logs`. " +
			"A server answers 409 if all spans are of closed traces. " + exporterErrors,
		query:   CloseQuery{},
		body:    ExportTraces{},
		errors:  []wire.Code{wire.CodeConflict},
		answers: success("The spans are durable, except those that are refused.", Exported{}),
	},
	{
		id: "exportLogs", tag: tagOTLP, name: "otlp-logs",
		route:   "POST /v1/logs",
		older:   "/v1/logs/v1/logs /v1/traces/v1/logs",
		summary: "Record log records about model calls",
		detail: "The answer comes when they are durable. Those whose event name begins with `gen_ai.` are kept, " +
			"and join their span; one of these without a span is refused. All others are dropped, as `errorMessage` " +
			"then says. Spans that are sent here are taken as by `POST /v1/traces`. " + exporterErrors,
		body:    ExportLogs{},
		answers: success("The log records about model calls are durable, except those that are refused.", Exported{}),
	},
	{
		id: "exportMetrics", tag: tagOTLP, name: "otlp-metrics",
		route:   "POST /v1/metrics",
		older:   "/v1/metrics/v1/metrics /v1/traces/v1/metrics",
		summary: "Discard metrics",
		detail: "Metrics are discarded, as `errorMessage` says. Spans and log records that are sent here " +
			"are kept.",
		body:    ExportMetrics{},
		answers: success("The metrics are discarded.", Exported{}),
	},
	{
		id: "spansBulk", tag: tagOTLP, name: "spans-bulk",
		route:   "POST /spans-bulk",
		summary: "Record spans of an SDK",
		detail: "JSON, but not OTLP. Times are nanoseconds since 1970, numbers or strings. A span with a " +
			"`log_request`, the body of `POST /log-request`, logs that request, too, with the span's times where it " +
			"has none. The answer comes when all of it is durable. An export that is sent again is recorded once. " +
			"Otherwise as `POST /v1/traces`.",
		query: CloseQuery{},
		body: SpansBulk{Spans: []BulkSpan{object{
			"name":       "chat gpt-4o",
			"context":    object{"trace_id": exampleTrace, "span_id": "eee19b7ec3c1b174"},
			"kind":       "SpanKind.CLIENT",
			"start_time": "1795224000100000000",
			"end_time":   "1795224000850000000",
			"status":     object{"status_code": "StatusCode.OK"},
			"attributes": object{"gen_ai.request.model": "gpt-4o"},
		}}},
		answers: []answer{{
			status: 201,
			text:   "The spans are durable, except those that are rejected.",
			example: wire.SpansTaken{
				Success: true,
				Spans: []wire.SpanTaken{{
					ID: exampleRequest, Name: "chat gpt-4o", SpanID: "eee19b7ec3c1b174",
				}},
				RequestLogs:     []wire.RequestLogged{},
				RejectedSpanIDs: []string{},
			},
		}},
		errors: []wire.Code{wire.CodeConflict},
	},
	{
		id: "closeTrace", tag: tagOTLP, name: "close-trace",
		route:   "POST /api/public/v2/traces/{trace_id}/close",
		summary: "Close a trace",
		detail: "A server then answers 409 to further spans of the trace, and to another close. A sidecar takes " +
			"both, since it need not reach its server to do so, and nothing that it takes is lost.",
		body:     Empty{},
		optional: true,
		answers: []answer{{status: 201, text: "The trace is closed.", example: wire.TraceClosed{
			Success: true, Message: "Trace closed.", TraceID: exampleTrace,
		}}},
		errors: []wire.Code{wire.CodeNotFound, wire.CodeConflict},
	},
	{
		id: "getTrace", tag: tagOTLP, name: "get-trace",
		route:   "GET /api/public/v2/traces/{trace_id}",
		summary: "List the spans of a trace",
		query:   TraceQuery{},
		detail: "By their start or, with `form=tree`, each below its parent, with what it and all below it add up " +
			"to. `GET /api/public/v2/requests/{id}` has the whole span under its `id`. " +
			"A sidecar asks its server.",
		answers: success("The spans.", Trace{
			Success:   true,
			TraceID:   exampleTrace,
			Spans:     []TraceSpan{{TraceSpan: exampleSpan}},
			OwnScores: []wire.Score{wire.IntegerScore("helpful", 100)},
		}),
	},
}
