package openapi

import "promptspool/api/wire"

const exampleTrace = "5b8efff798038103d269b633813fc60c"

// ExportTraces is an ExportTraceServiceRequest of OTLP 1.
type ExportTraces struct {
	open
	// Spans, by the resource that they come from.
	ResourceSpans []any `json:"resourceSpans,omitempty"`
}

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
	// What was refused; absent if nothing was.
	PartialSuccess *PartialSuccess `json:"partialSuccess,omitempty"`
}

// PartialSuccess says what was refused of a request. It must not be sent again.
type PartialSuccess struct {
	// How many spans were refused: a number in a string.
	RejectedSpans string `json:"rejectedSpans,omitempty"`
	// How many log records were refused: a number in a string.
	RejectedLogRecords string `json:"rejectedLogRecords,omitempty"`
	// Why the first of them was refused.
	ErrorMessage string `json:"errorMessage,omitempty"`
}

const exporterErrors = "Errors come in the encoding of the request: in protobuf as a google.rpc.Status."

var otlpOperations = []operation{
	{
		id: "exportTraces", tag: tagOTLP, scope: wire.ScopeApp,
		call: "POST /v1/traces",
		older: "/v1/traces/v1/traces /api/public/otel/v1/traces /api/public/otel/v1/traces/v1/traces " +
			"/otel/v1/traces /otel/v1/traces/v1/traces /",
		summary: "Record spans",
		detail: "The answer comes when all spans are durable. A span that comes again is recorded once. " +
			"Spans that cannot be kept are refused one by one. " + exporterErrors,
		body:    ExportTraces{},
		answers: success("The spans are durable, except those that are refused.", Exported{}),
	},
	{
		id: "exportLogs", tag: tagOTLP, scope: wire.ScopeApp,
		call:    "POST /v1/logs",
		older:   "/v1/logs/v1/logs /api/public/otel/v1/logs /otel/v1/logs",
		summary: "Refuse log records",
		detail:  "Log records are not kept: all of them are refused. " + exporterErrors,
		body:    ExportLogs{},
		answers: success("The log records are refused.", Exported{&PartialSuccess{
			RejectedLogRecords: "1", ErrorMessage: "promptspool keeps spans; it does not keep log records.",
		}}),
	},
	{
		id: "exportMetrics", tag: tagOTLP, scope: wire.ScopeApp,
		call:    "POST /v1/metrics",
		older:   "/v1/metrics/v1/metrics /api/public/otel/v1/metrics /otel/v1/metrics",
		summary: "Discard metrics",
		detail:  "Metrics are discarded, so that exporters log no errors.",
		body:    ExportMetrics{},
		answers: success("The metrics are discarded.", Exported{}),
	},
	{
		id: "getTrace", tag: tagOTLP, scope: wire.ScopeFull,
		call:    "GET /api/public/v2/traces/{trace_id}",
		summary: "List the spans of a trace",
		detail: "By their start. `GET /api/public/v2/requests/{id}` has the whole span under its `id`. " +
			"A sidecar asks its server.",
		answers: success("The spans.", wire.Trace{
			Success: true,
			TraceID: exampleTrace,
			Spans: []wire.TraceSpan{{
				ID:        exampleRequest,
				Name:      "chat gpt-4o",
				SpanID:    "eee19b7ec3c1b174",
				StartTime: &exampleTime,
				EndTime:   &exampleTime,
			}},
		}),
	},
}
