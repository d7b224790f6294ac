package wire

import (
	"encoding/json"
	"slices"
	"time"
)

// Record is everything that a server has about one request. It answers
// GET /api/public/v2/requests/{id}.
type Record struct {
	Success         bool              `json:"success"`
	ID              string            `json:"id"` // the same as request_id, for clients that read id
	RequestID       string            `json:"request_id"`
	FunctionName    string            `json:"function_name"`
	Provider        string            `json:"provider"`
	Model           string            `json:"model"`
	InputTokens     *int64            `json:"input_tokens"`
	OutputTokens    *int64            `json:"output_tokens"`
	Tokens          *int64            `json:"tokens"`             // input and output together; null if unknown
	CachedTokens    *int64            `json:"cached_tokens"`      // input read from the provider's cache
	CacheWrites     *int64            `json:"cache_write_tokens"` // input written to the provider's cache
	ReasoningTokens *int64            `json:"reasoning_tokens"`   // of the output tokens
	Price           *float64          `json:"price"`              // US dollars; null if unknown
	StartTime       *time.Time        `json:"request_start_time"` // as sent; null if that was not a time
	EndTime         *time.Time        `json:"request_end_time"`
	LatencyMS       *float64          `json:"latency_ms"` // null if unknown or negative
	Status          string            `json:"status"`     // SUCCESS, or as sent
	ErrorType       string            `json:"error_type,omitempty"`
	ErrorMessage    string            `json:"error_message,omitempty"`  // the caller's, else the provider's
	FinishReason    string            `json:"finish_reason"`            // the provider's word; "" if unknown
	ToolNames       []string          `json:"tool_names"`               // the called tools, one for each call
	Readable        bool              `json:"readable"`                 // false if the response was not parseable
	InputExcerpt    string            `json:"input_excerpt,omitempty"`  // beginning of the last user message
	OutputExcerpt   string            `json:"output_excerpt,omitempty"` // beginning of the answer or the error
	Tags            []string          `json:"tags"`
	Metadata        map[string]string `json:"metadata"` // metadata, by key
	Scores          []Score           `json:"scores"`   // sorted by name and author
	Prompt          *RecordPrompt     `json:"prompt"`
	GroupIDs        []string          `json:"group_ids"` // sorted
	ListTime        time.Time         `json:"list_time"` // its time in lists and charts: mostly the start
	AcceptedAt      time.Time         `json:"accepted_at"`
	Request         json.RawMessage   `json:"request"`                    // as sent, without secrets
	Events          []RecordEvent     `json:"events"`                     // its history, oldest first
	EventsTruncated bool              `json:"events_truncated,omitempty"` // only the latest 10,000 scores and the like
	Conflicts       []Conflict        `json:"conflicts,omitempty"`        // other contents with the same id
	Blueprint       json.RawMessage   `json:"prompt_blueprint,omitempty"` // the input, as a blueprint
	Output          json.RawMessage   `json:"output_messages,omitempty"`  // the answer, as messages of a blueprint
	Span            json.RawMessage   `json:"span,omitempty"`             // of a span, and of a traced call
	SpanName        string            `json:"span_name,omitempty"`        // of its span
	SpanKind        string            `json:"span_kind,omitempty"`        // llm, agent, tool ...
	RequestLogID    string            `json:"request_log_id,omitempty"`   // of a span: the request that logs its call
	SpanRecordID    string            `json:"span_record_id,omitempty"`   // of such a request: the record of its span
	TablePrice      *float64          `json:"table_price,omitempty"`      // by the tables, beside a reported price
	SameCall        string            `json:"same_call,omitempty"`        // the request that lists show for its call
	OtherReports    []string          `json:"other_reports,omitempty"`    // the steps that report its call as well

	// Where the call or the span is in a trace.
	TraceID      string `json:"trace_id,omitempty"`
	SpanID       string `json:"span_id,omitempty"`
	ParentSpanID string `json:"parent_span_id,omitempty"`

	// Those of its metadata.
	SessionID    string   `json:"session_id,omitempty"`
	UserID       string   `json:"user_id,omitempty"`
	Environment  string   `json:"environment,omitempty"`
	FirstTokenMS *float64 `json:"time_to_first_token_ms,omitempty"` // absent if unknown
}

// IsSpan reports whether the record is a span that is not a model call.
func (r Record) IsSpan() bool {
	// As a client reads it.
	hasRequest := len(r.Request) > 0 && string(r.Request) != "null"
	return !hasRequest && len(r.Span) > 0
}

// Content returns what the record shows: its request or, without one, its span.
func (r Record) Content() json.RawMessage {
	if r.IsSpan() {
		return r.Span
	}

	return r.Request
}

// Conflict is a request with the record's request_id and other content. The record has
// the request that was accepted first.
type Conflict struct {
	EventID string          `json:"event_id"` // the event that brought it
	Request json.RawMessage `json:"request"`  // as sent; null if they are too large for one answer
}

// RecordPrompt is the link of a record to a template.
type RecordPrompt struct {
	Name           string          `json:"name"`            // the template's name
	Version        *int            `json:"version"`         // null while unknown
	Label          *string         `json:"label"`           // the label that it was fetched by; null if unknown
	InputVariables json.RawMessage `json:"input_variables"` // an object, or null
}

// RecordEvent is one event of a record's history.
type RecordEvent struct {
	ID         string    `json:"id"`          // the event's id
	Kind       Kind      `json:"kind"`        // the kind of the event
	AcceptedAt time.Time `json:"accepted_at"` // by the clock of the process that accepted it
	ArrivedAt  time.Time `json:"arrived_at"`  // by the server's clock
	Sidecar    string    `json:"sidecar"`
	Conflict   bool      `json:"conflict,omitempty"` // a request with other content came first

	// The score that it set, null if it took one back; absent if a later one has replaced it.
	Score *Score `json:"score,omitempty"`
}

// TraceQuery chooses the form of a trace.
type TraceQuery struct {
	// As one list, or as a tree.
	Form string `json:"form,omitempty" jsonschema:"enum=flat,enum=tree,default=flat"`
}

// CloseQuery is the query of requests that bring spans.
type CloseQuery struct {
	// Close the traces of the spans after them.
	CloseAfter bool `json:"close_after,omitempty"`
}

// Paging describes a page of a list, in the peer's form. Pages count from 1.
type Paging struct {
	Page    int  `json:"page"`
	PerPage int  `json:"per_page"`
	Pages   int  `json:"pages"`
	Total   int  `json:"total"`
	HasNext bool `json:"has_next"`
	HasPrev bool `json:"has_prev"`
	NextNum *int `json:"next_num"`
	PrevNum *int `json:"prev_num"`
}

// NewPaging returns the Paging of a page (from 1) with at least 1 item per page.
func NewPaging(page, perPage, total int) Paging {
	pages := (total + perPage - 1) / perPage
	p := Paging{
		Page:    page,
		PerPage: perPage,
		Pages:   pages,
		Total:   total,
		HasNext: page < pages,
		HasPrev: page > 1,
	}

	// Null and not 0 at the ends, as the peer's clients look for.
	if p.HasPrev {
		p.PrevNum = new(page - 1)
	}
	if p.HasNext {
		p.NextNum = new(page + 1)
	}

	return p
}

// Row is one line of a list of records.
type Row struct {
	ID              string        `json:"id"` // the same as request_id
	RequestID       string        `json:"request_id"`
	ListTime        time.Time     `json:"list_time"`   // by which lists and charts go: mostly the start
	AcceptedAt      time.Time     `json:"accepted_at"` // corrected if a sidecar's clock was ahead
	FunctionName    string        `json:"function_name"`
	Engine          string        `json:"engine"`
	Provider        string        `json:"provider_type"`
	InputTokens     *int64        `json:"input_tokens"`
	OutputTokens    *int64        `json:"output_tokens"`
	CachedTokens    *int64        `json:"cached_tokens"`      // input tokens from the provider's cache
	CacheWrites     *int64        `json:"cache_write_tokens"` // input tokens written to it
	ReasoningTokens *int64        `json:"reasoning_tokens"`   // of the output tokens
	Price           *float64      `json:"price"`              // US dollars, to a billionth; null if unknown
	StartTime       *time.Time    `json:"request_start_time"`
	EndTime         *time.Time    `json:"request_end_time"`
	Latency         *float64      `json:"latency"` // seconds
	Status          string        `json:"status"`
	Tags            []string      `json:"tags_array"`
	Metadata        []MetadataRow `json:"metadata"` // sorted by key
	Scores          []Score       `json:"scores"`   // sorted by name
	PromptName      *string       `json:"prompt_name"`
	PromptVersion   *int64        `json:"prompt_version_number"`
	PromptLabel     *string       `json:"prompt_label,omitempty"`
	GroupIDs        []string      `json:"group_ids,omitempty"`
	Sidecar         string        `json:"sidecar,omitempty"`
	FinishReason    string        `json:"finish_reason,omitempty"`
	ErrorType       string        `json:"error_type,omitempty"`
	ToolNames       []string      `json:"tool_names,omitempty"`   // the called tools, one for each call
	Turns           int           `json:"turns,omitempty"`        // messages in the request
	OutputShape     string        `json:"output_shape,omitempty"` // one of json, tool_call and plain_text
	TraceID         string        `json:"trace_id,omitempty"`
	Readable        bool          `json:"readable"`                 // false if the response could not be parsed
	InputExcerpt    string        `json:"input_excerpt,omitempty"`  // beginning of the last user message
	OutputExcerpt   string        `json:"output_excerpt,omitempty"` // beginning of the answer or the error

	FirstTokenMS *float64 `json:"time_to_first_token_ms,omitempty"` // absent if unknown

	Snippet *Snippet `json:"snippet,omitempty"` // where a search for words or parts of texts found it

	// TextHash differs where the texts of two rows of a record differ; 0 if unknown.
	TextHash int `json:"-"`

	// Those of its metadata.
	SessionID   string `json:"session_id,omitempty"`
	UserID      string `json:"user_id,omitempty"`
	Environment string `json:"environment,omitempty"`
}

// Snippet is a place in the texts of a record, with about 60 characters on each side.
type Snippet struct {
	In     string `json:"in"`     // one of input and output
	Before string `json:"before"` // begins with … where it is cut
	Match  string `json:"match"`  // what was found
	After  string `json:"after"`  // ends with … where it is cut
}

// MetadataRow is one key of a record's metadata.
type MetadataRow struct {
	Key       string `json:"key"` // the key of the metadata
	Value     string `json:"value"`
	Truncated bool   `json:"truncated,omitempty"` // the value is cut; the record has it in full
}

// String returns the key and its value, such as user_id=ann.
func (m MetadataRow) String() string { return m.Key + "=" + m.Value }

// NameFrom sets the fields that repeat metadata. A truncated value is not a name.
func (r *Row) NameFrom(metadata []MetadataRow) {
	for _, m := range metadata {
		switch {
		case m.Truncated:
		case m.Key == "session_id":
			r.SessionID = m.Value
		case m.Key == "user_id":
			r.UserID = m.Value
		case m.Key == "environment":
			r.Environment = m.Value
		}
	}
}

// Truncated reports whether any metadata value of the row is cut short.
func (r *Row) Truncated() bool {
	return slices.ContainsFunc(r.Metadata, func(m MetadataRow) bool { return m.Truncated })
}

// WithMetadata returns the row with the full metadata values of its record.
func (r *Row) WithMetadata(whole map[string]string) *Row {
	row := *r
	row.Metadata = slices.Clone(r.Metadata)
	for i, m := range row.Metadata {
		if value, ok := whole[m.Key]; ok {
			row.Metadata[i] = MetadataRow{Key: m.Key, Value: value}
		}
	}

	return &row
}

// Trace answers GET /api/public/v2/traces/{id}.
type Trace struct {
	Success bool        `json:"success"`
	TraceID string      `json:"trace_id"`
	Spans   []TraceSpan `json:"spans"` // by start
	TraceFacts
}

// TraceFacts is what is known of a trace besides its spans.
type TraceFacts struct {
	// Closed is set once the trace was closed.
	Closed bool `json:"closed,omitempty"`

	// Whether the trace has more spans than the 40,000 of an answer.
	Truncated bool `json:"truncated,omitempty"`

	// False while calls of a long trace of the project still take the user, session and environment of
	// its first span.
	Complete bool `json:"complete"`

	SessionID string `json:"session_id,omitempty"` // that of one of its spans
	UserID    string `json:"user_id,omitempty"`    // that of one of its spans

	OwnScores []Score `json:"own_scores"` // of the trace itself, by name
}

// TraceSpan is one span of a trace.
type TraceSpan struct {
	ID           string     `json:"id"`   // of its record
	Name         string     `json:"name"` // the span's name
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
	SameCall     string   `json:"same_call,omitempty"`     // the request that has the call, with tokens and price
	Scores       []Score  `json:"scores,omitempty"`        // by name; absent without any
}

// TraceSpansMax bounds the spans that a trace is answered with.
const TraceSpansMax = 40_000

// TraceTree answers GET /api/public/v2/traces/{id}?form=tree: the spans of a Trace, each below its parent.
type TraceTree struct {
	Success bool         `json:"success"`
	TraceID string       `json:"trace_id"`
	Spans   []*TraceNode `json:"spans"` // the roots, by start
	Total   TraceTotal   `json:"total"`
	Running bool         `json:"running,omitempty"` // the root has not ended
	TraceFacts
}

// TraceNode is a span of a TraceTree with the spans below it.
type TraceNode struct {
	TraceSpan

	Total         TraceTotal   `json:"total"`
	ParentMissing bool         `json:"parent_missing,omitempty"` // its parent is not among the spans
	Children      []*TraceNode `json:"children,omitempty"`       // by start
}

// TraceTotal is what spans add up to. Unknown numbers count nothing, and a call counts once, however
// many spans report it.
type TraceTotal struct {
	Spans        int        `json:"spans"`      // how many spans
	Calls        int        `json:"calls"`      // how many model calls
	Errors       int        `json:"errors"`     // spans that failed
	StartTime    *time.Time `json:"start_time"` // the earliest; null if none is known
	EndTime      *time.Time `json:"end_time"`   // the latest; null if none is known
	InputTokens  *int64     `json:"input_tokens"`
	OutputTokens *int64     `json:"output_tokens"`
	Price        *float64   `json:"price"` // US dollars
}

// TraceDepthMax bounds how deep a TraceTree is: deeper spans are beside those at this depth.
const TraceDepthMax = 50
