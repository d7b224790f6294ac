package openapi

import (
	"cmp"
	"regexp"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize/english"
	"github.com/invopop/jsonschema"

	"promptspool/api/access"
	"promptspool/api/wire"
)

// operation is an entry of the tables: what a route does, takes and answers.
type operation struct {
	ID      string
	Name    string // that of the route, in package access
	Route   string // method and path, in its usual spelling
	Older   string // other paths, of the same method
	Summary string
	Detail  string

	Query    *value
	Body     *value
	Optional bool // the body may be absent
	Retries  bool // the request takes an Idempotency-Key

	Answers []answer
	Errors  []wire.Code // beyond those that every route may answer with

	part *part
}

// scope returns the rights of which a key needs one.
func (o *operation) scope() wire.Scope { return access.Scope(o.Name) }

// Rights returns the scope in words.
func (o *operation) Rights() string {
	if o.scope() == wire.ScopeFull {
		return "any"
	}
	return english.WordSeries(o.scope().Names(), "or")
}

// answer is a successful answer of an operation.
type answer struct {
	Status int
	Text   string
	Cached bool // a sidecar answers from its cache, and says so in headers
	value
}

// The media types of bodies.
const (
	MediaJSON  = "application/json"
	MediaLines = "application/x-ndjson"
	MediaCSV   = "text/csv"
	MediaOTLP  = "application/x-protobuf"
)

var pathParameter = regexp.MustCompile(`\{([a-z_]+)\}`)

// parameters returns those of the path, the headers and the query.
func (o *operation) parameters(s *schemas) (all []Parameter) {
	for _, m := range pathParameter.FindAllStringSubmatch(o.Route, -1) {
		p := shared.Parameters[m[1]]
		p.Name, p.In, p.Required = m[1], "path", true
		all = append(all, p)
	}

	if o.Retries {
		all = append(all, Parameter{
			Name: "Idempotency-Key",
			In:   "header",
			Description: "Any text. The same key again means the same request, " +
				"so that a request can be repeated.",
			Schema: &jsonschema.Schema{Type: "string"},
		})
	}

	return append(all, s.query(o.Query)...)
}

// requestBody returns the body that the operation takes, or nil.
func (o *operation) requestBody(s *schemas) *Body {
	if o.Body == nil {
		return nil
	}

	content := map[string]Media{cmp.Or(o.Body.Media, MediaJSON): s.body(o.Body, !o.takesProtobuf())}
	if o.takesProtobuf() {
		content[MediaOTLP] = binary
	}

	return &Body{Required: !o.Optional, Content: content}
}

// takesProtobuf reports whether the operation takes OTLP, in either encoding.
func (o *operation) takesProtobuf() bool {
	return o.Body != nil && o.part.Page == exporters && strings.Contains(o.Route, " /v1/")
}

// binary is a body in protobuf.
var binary = Media{Schema: &jsonschema.Schema{Type: "string", Format: "binary"}}

// responses returns the answers by their status.
func (o *operation) responses(s *schemas) map[string]*Response {
	all := make(map[string]*Response)

	// Answers of several media types may share a status, and then the text of the first.
	for _, a := range o.Answers {
		status := strconv.Itoa(a.Status)
		if all[status] == nil {
			all[status] = &Response{Description: a.Text}
		}
		all[status].add(s, &a)
		if o.takesProtobuf() {
			all[status].Content[MediaOTLP] = binary
		}
	}

	for _, code := range o.errorCodes() {
		status := strconv.Itoa(wire.Errorf(code, "").Status())
		if all[status] == nil {
			all[status] = &Response{Ref: "#/components/responses/" + string(code)}
		}
	}

	return all
}

// add adds an answer to those with its status.
func (r *Response) add(s *schemas, a *answer) {
	if a.Cached {
		r.Headers = map[string]headerRef{
			"X-Cache": {Ref: "#/components/headers/X-Cache"},
			"Age":     {Ref: "#/components/headers/Age"},
		}
	}
	if a.Type == "" && a.Media == "" {
		return
	}

	if r.Content == nil {
		r.Content = make(map[string]Media)
	}
	r.Content[cmp.Or(a.Media, MediaJSON)] = s.media(&a.value)
}

// errorCodes returns the errors that the operation may answer with.
func (o *operation) errorCodes() []wire.Code {
	// A malformed request is CodeBadJSON, even without a body.
	all := []wire.Code{
		wire.CodeBadJSON, wire.CodeUnauthorized, wire.CodeForbidden, wire.CodeTooMany, wire.CodeInternal,
		wire.CodeNotImplemented, wire.CodeUnavailable,
	}
	if o.Body != nil {
		all = append(all, wire.CodeTimeout, wire.CodeTooLarge, wire.CodeEncoding)
	}
	if o.Body != nil || o.Query != nil || strings.Contains(o.Route, "{request_id}") {
		all = append(all, wire.CodeInvalid)
	}
	if strings.Contains(o.Route, "{") {
		all = append(all, wire.CodeNotFound)
	}

	return append(all, o.Errors...)
}

// errorResponses returns the error answers by their codes.
func errorResponses(s *schemas) map[string]*Response {
	all := make(map[string]*Response)
	for _, e := range shared.Errors {
		body := wire.Errorf(e.Code, "%s", e.Message).Body()

		// The only code that tells which fields are wrong.
		if e.Code == wire.CodeInvalid {
			body.Fields = []wire.FieldError{{Field: "score", Reason: "must be an integer from 0 to 100"}}
		}

		r := &Response{
			Description: e.Text,
			Content:     map[string]Media{MediaJSON: {Schema: s.schemaOf(body), Example: s.example(body)}},
		}
		if e.Code == wire.CodeTooMany || e.Code == wire.CodeUnavailable {
			r.Headers = map[string]headerRef{"Retry-After": {Ref: "#/components/headers/Retry-After"}}
		}
		all[string(e.Code)] = r
	}

	return all
}

// ExportTraces is an ExportTraceServiceRequest of OTLP 1.
type ExportTraces struct {
	// Spans, by the resource that they come from.
	ResourceSpans []any `json:"resourceSpans,omitempty"`
}

// SpansBulk brings the spans of an SDK.
type SpansBulk struct {
	// The spans.
	Spans []BulkSpan `json:"spans"`
	// Close the traces of the spans after them.
	CloseAfter bool `json:"close_after,omitempty"`
}

// BulkSpan is a span, named as OpenTelemetry's SDK for Python prints it.
type BulkSpan any

// ExportLogs is an ExportLogsServiceRequest of OTLP 1.
type ExportLogs struct {
	// Log records, by the resource that they come from.
	ResourceLogs []any `json:"resourceLogs,omitempty"`
}

// ExportMetrics is an ExportMetricsServiceRequest of OTLP 1.
type ExportMetrics struct {
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
	Success bool        `json:"success"`
	TraceID string      `json:"trace_id"`
	Spans   []TraceSpan `json:"spans"` // by start; of a tree its roots
	wire.TraceFacts
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
