package openapi

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize/english"
	"github.com/invopop/jsonschema"

	"promptspool/api/access"
	"promptspool/api/wire"
)

// operation is a line of the table: what a route does, takes and answers.
type operation struct {
	id      string
	tag     string
	route   string // method and path, in its usual spelling
	older   string // other paths, of the same method
	name    string // that of the route, in package access
	summary string
	detail  string

	// query and body are examples, whose types give the schemas; nil if there is none.
	query    any
	body     any
	bodyType string // application/json if it is ""
	optional bool   // the body may be absent
	retries  bool   // the request takes an Idempotency-Key

	answers []answer
	errors  []wire.Code // beyond those that every route may answer with
}

// scope returns the rights of which a key needs one.
func (o *operation) scope() wire.Scope { return access.Scope(o.name) }

// rights returns the scope in words.
func (o *operation) rights() string {
	if o.scope() == wire.ScopeFull {
		return "any"
	}
	return english.WordSeries(o.scope().Names(), "or")
}

// answer is a successful answer of an operation.
type answer struct {
	status  int
	text    string
	media   string // application/json if it is ""
	example any    // its type gives the schema; nil if there is no body
	cached  bool   // a sidecar answers from its cache, and says so in headers
}

// The media types of bodies.
const (
	MediaJSON  = "application/json"
	MediaLines = "application/x-ndjson"
	MediaCSV   = "text/csv"
	MediaOTLP  = "application/x-protobuf"
)

// operations returns the whole table.
func operations() []operation {
	return slices.Concat(writeOperations, scoreOperations, otlpOperations, templateOperations, requestOperations,
		rollupOperations, syncOperations)
}

// OlderRoutes maps older spellings of routes to those in the description. Each is a method and a
// path.
func OlderRoutes() map[string]string {
	all := map[string]string{}
	for _, o := range operations() {
		method, _, _ := strings.Cut(o.route, " ")
		for path := range strings.FieldsSeq(o.older) {
			all[method+" "+path] = o.route
		}
	}

	return all
}

const (
	tagWrites    = "Log calls"
	tagOTLP      = "OpenTelemetry"
	tagTemplates = "Templates"
	tagRequests  = "Find and count"
	tagSync      = "Sidecars"
)

var tags = []tag{
	{tagWrites, "Writes of an app: calls to models, and later scores, metadata and links.", "api-log"},
	{tagOTLP, "Exports of OTLP over HTTP, in protobuf or JSON; gRPC is not served.", "api-opentelemetry"},
	{tagTemplates, "Fetching, publishing and labelling prompt templates.", "api-templates"},
	{tagRequests, "Reading, searching, summing up, exporting and deleting what was logged.", "api-find"},
	{tagSync, "The exchange between sidecars and their server. `GET /sync/fleet` is for people, too.", "api-sidecars"},
}

// pathParameters describe the identifiers in paths.
var pathParameters = map[string]Parameter{
	"template": {
		Description: "A template's name, its slashes written as %2F, or its id.",
		Schema:      &jsonschema.Schema{Type: "string"}, Example: "greet",
	},
	"request_id": {
		Description: "The id that the logging of the request was answered with.",
		Schema:      &jsonschema.Schema{Type: "string", Format: "uuid"}, Example: exampleRequest,
	},
	"trace_id": {
		Description: "The trace's id: 32 hexadecimal digits.",
		Schema:      &jsonschema.Schema{Type: "string"}, Example: exampleTrace,
	},
	"session_id": {
		Description: "The session's id, as calls name it.",
		Schema:      &jsonschema.Schema{Type: "string"}, Example: exampleSession,
	},
	"score": {
		Description: "The scores' name, its slashes written as %2F.",
		Schema:      &jsonschema.Schema{Type: "string"}, Example: "tone",
	},
	"label_id": {
		Description: "The label's id, as the list of a template's labels has it.",
		Schema:      &jsonschema.Schema{Type: "integer"}, Example: 65537,
	},
}

var pathParameter = regexp.MustCompile(`\{([a-z_]+)\}`)

// parameters returns those of the path, the headers and the query.
func (o *operation) parameters(s *schemas) (all []Parameter) {
	for _, m := range pathParameter.FindAllStringSubmatch(o.route, -1) {
		p := pathParameters[m[1]]
		p.Name, p.In, p.Required = m[1], "path", true
		all = append(all, p)
	}

	if o.retries {
		all = append(all, Parameter{
			Name: "Idempotency-Key",
			In:   "header",
			Description: "Any text. The same key again means the same request, " +
				"so that a request can be repeated.",
			Schema: &jsonschema.Schema{Type: "string"},
		})
	}

	return append(all, s.query(o.query)...)
}

// requestBody returns the body that the operation takes, or nil.
func (o *operation) requestBody(s *schemas) *Body {
	if o.body == nil {
		return nil
	}

	media := Media{Schema: s.schemaOf(o.body), Example: s.example(o.body)}
	content := map[string]Media{cmp.Or(o.bodyType, MediaJSON): media}
	if o.tag == tagOTLP {
		content[MediaOTLP] = binary
	}

	return &Body{Required: !o.optional, Content: content}
}

// binary is a body in protobuf.
var binary = Media{Schema: &jsonschema.Schema{Type: "string", Format: "binary"}}

// responses returns the answers by their status.
func (o *operation) responses(s *schemas) map[string]*Response {
	all := make(map[string]*Response)

	// Answers of several media types may share a status, and then the text of the first.
	for _, a := range o.answers {
		status := strconv.Itoa(a.status)
		if all[status] == nil {
			all[status] = &Response{Description: a.text}
		}
		all[status].add(s, a)
		if o.body != nil && o.tag == tagOTLP {
			all[status].Content[MediaOTLP] = binary
		}
	}

	for _, code := range o.errorCodes() {
		status := strconv.Itoa(wire.Errorf(code, "").Status())
		all[status] = &Response{Ref: "#/components/responses/" + string(code)}
	}

	return all
}

// add adds an answer to those with its status.
func (r *Response) add(s *schemas, a answer) {
	if a.cached {
		r.Headers = map[string]*Header{
			"X-Cache": {Ref: "#/components/headers/X-Cache"},
			"Age":     {Ref: "#/components/headers/Age"},
		}
	}
	if a.example == nil {
		return
	}
	if r.Content == nil {
		r.Content = make(map[string]Media)
	}

	// CSV has no schema.
	media := Media{Schema: &jsonschema.Schema{Type: "string"}, Example: a.example}
	if a.media != MediaCSV {
		media = Media{Schema: s.schemaOf(a.example), Example: s.example(a.example)}
	}
	r.Content[cmp.Or(a.media, MediaJSON)] = media
}

// errorCodes returns the errors that the operation may answer with.
func (o *operation) errorCodes() []wire.Code {
	// A malformed request is CodeBadJSON, even without a body.
	all := []wire.Code{
		wire.CodeBadJSON, wire.CodeUnauthorized, wire.CodeForbidden, wire.CodeTooMany, wire.CodeInternal,
		wire.CodeNotImplemented, wire.CodeUnavailable,
	}
	if o.body != nil {
		all = append(all, wire.CodeTimeout, wire.CodeTooLarge, wire.CodeEncoding)
	}
	if o.body != nil || o.query != nil || strings.Contains(o.route, "{request_id}") {
		all = append(all, wire.CodeInvalid)
	}
	if strings.Contains(o.route, "{") {
		all = append(all, wire.CodeNotFound)
	}

	return append(all, o.errors...)
}

// headers are those of answers.
var headers = map[string]*Header{
	"Retry-After": {
		Description: "After how many seconds to send the request again.",
		Schema:      &jsonschema.Schema{Type: "integer"},
	},
	"X-Cache": {
		Description: "How a sidecar came by its answer: hit, stale (the server is away) or miss. " +
			"A server does not send it.",
		Schema: &jsonschema.Schema{Type: "string", Enum: []any{"hit", "stale", "miss"}},
	},
	"Age": {
		Description: "For how many seconds a sidecar's copy has not been compared with the server's.",
		Schema:      &jsonschema.Schema{Type: "integer"},
	},
}

// failures describe the errors, with an example of each message.
var failures = []struct {
	code          wire.Code
	text, message string
}{
	{
		wire.CodeBadJSON, "The body is not a JSON object, or the request itself is malformed.",
		"The body is not JSON. Send one JSON object with Content-Type: application/json.",
	},
	{
		wire.CodeUnauthorized, "The key is missing or unknown.",
		"This key is not known.",
	},
	{
		wire.CodeForbidden, "The key's scope does not allow it, or a browser sent it from another site.",
		"This key's scope is app; the request needs read. " +
			"Make a key with `promptspool keys create --scope read`.",
	},
	{
		wire.CodeNotFound, "No such template, label or request.",
		"There is no template called greet.",
	},
	{
		wire.CodeTimeout, "The body came too slowly.",
		"The request took too long to arrive. Send it again on a new connection.",
	},
	{
		wire.CodeConflict, "Someone else changed the same thing meanwhile.",
		"The template was changed meanwhile. Read it again.",
	},
	{
		wire.CodeTooLarge, "The body is too large.",
		"The body is larger than 33554432 bytes. Send less in one request.",
	},
	{
		wire.CodeEncoding, "A Content-Encoding that is not gzip, deflate or zstd.",
		`Content-Encoding "br" is not supported.`,
	},
	{
		wire.CodeInvalid, "A field is missing or wrong; `fields` lists them.",
		"score must be an integer from 0 to 100.",
	},
	{
		wire.CodeTooMany, "A limit of the key.",
		"This key met its limit of requests in a second. Send this again after the time in Retry-After.",
	},
	{
		wire.CodeInternal, "A fault of promptspool; its log has the details.",
		"Something failed inside promptspool. Its log has the details.",
	},
	{
		wire.CodeNotImplemented, "This process does not serve the route.",
		"/sync/changes is not served here. Call the server.",
	},
	{
		wire.CodeUnavailable, "No space, or no server or database at the moment.",
		"The server cannot be reached. Send this again later.",
	},
}

// errorResponses returns the error answers by their codes.
func errorResponses(s *schemas) map[string]*Response {
	all := make(map[string]*Response)
	for _, f := range failures {
		body := wire.Errorf(f.code, "%s", f.message).Body()

		// The only code that tells which fields are wrong.
		if f.code == wire.CodeInvalid {
			body.Fields = []wire.FieldError{{Field: "score", Reason: "must be an integer from 0 to 100"}}
		}

		r := &Response{
			Description: f.text,
			Content:     map[string]Media{MediaJSON: {Schema: s.schemaOf(body), Example: s.example(body)}},
		}
		if f.code == wire.CodeTooMany || f.code == wire.CodeUnavailable {
			r.Headers = map[string]*Header{"Retry-After": {Ref: "#/components/headers/Retry-After"}}
		}
		all[string(f.code)] = r
	}

	return all
}
