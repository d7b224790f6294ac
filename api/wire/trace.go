package wire

import "time"

// Trace answers GET /api/public/v2/traces/{id}.
type Trace struct {
	Success bool        `json:"success"`
	TraceID string      `json:"trace_id"`
	Spans   []TraceSpan `json:"spans"` // by start

	// Closed is set once the trace was closed.
	Closed bool `json:"closed,omitempty"`

	// Truncated is set if the trace has more than TraceSpansMax spans.
	Truncated bool `json:"truncated,omitempty"`
}

// TraceSpan is one span of a trace.
type TraceSpan struct {
	ID           string     `json:"id"` // of its record
	Name         string     `json:"name"`
	SpanID       string     `json:"span_id"`
	ParentID     *string    `json:"parent_id"`
	RequestLogID *string    `json:"request_log_id"` // of the request that it is or that logs its call; null without one
	StartTime    *time.Time `json:"start_time"`
	EndTime      *time.Time `json:"end_time"`

	Kind         string   `json:"kind,omitempty"`          // llm, agent, tool and the like
	Status       string   `json:"status,omitempty"`        // SUCCESS, WARNING or ERROR; absent if it is unknown
	InputTokens  *int64   `json:"input_tokens,omitempty"`  // tokens in of a model call; absent if unknown
	OutputTokens *int64   `json:"output_tokens,omitempty"` // tokens out of a model call; absent if unknown
	Price        *float64 `json:"price,omitempty"`         // cost of a model call in US dollars; absent if unknown
}

// TraceSpansMax bounds the spans that a trace is answered with.
const TraceSpansMax = 10_000
