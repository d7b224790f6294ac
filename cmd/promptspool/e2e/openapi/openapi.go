// Package openapi describes the HTTP API: for programs as OpenAPI 3.1, for people as a
// page of the documentation.
//
// The description is generated from tables (*.yaml), which list the operations with examples, and
// from the types that cross the wire. The binary contains only the result (openapi.json and the pages
// api-*.md in api/dashboard/docs). Tests compare both with this package, with the route table, and with
// the requests that the tests themselves make; see package description.
package openapi

import (
	"bytes"
	"cmp"
	"embed"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/invopop/jsonschema"
	"go.yaml.in/yaml/v3"

	"promptspool/api/wire"
	"promptspool/api/wire/jsonscan"
)

// Document is an OpenAPI description. Members of no type are as document.yaml has them.
type Document struct {
	OpenAPI    string                           `json:"openapi"`
	Info       any                              `json:"info"`
	Servers    any                              `json:"servers"`
	Docs       any                              `json:"externalDocs"`
	Security   any                              `json:"security"`
	Tags       []tag                            `json:"tags"`
	Paths      map[string]map[string]*Operation `json:"paths"` // by path and method
	Components components                       `json:"components"`
}

type tag struct {
	Name        string `json:"name"`
	Description string `json:"description"`
}

type components struct {
	SecuritySchemes map[string]any                `json:"securitySchemes"`
	Schemas         map[string]*jsonschema.Schema `json:"schemas"`
	Responses       map[string]*Response          `json:"responses"`
	Headers         any                           `json:"headers"`
}

// Operation is one method of one path.
type Operation struct {
	ID          string               `json:"operationId"`
	Tags        []string             `json:"tags"`
	Summary     string               `json:"summary"`
	Description string               `json:"description,omitempty"`
	Scope       []string             `json:"x-scope"`            // rights; the key needs one of them
	Security    any                  `json:"security,omitempty"` // if it differs from the document's
	Parameters  []Parameter          `json:"parameters,omitempty"`
	Body        *Body                `json:"requestBody,omitempty"`
	Responses   map[string]*Response `json:"responses"` // by status
}

// Parameter is an identifier in the path, a field of the query, or a header.
type Parameter struct {
	Name        string             `json:"name"`
	In          string             `json:"in"`
	Description string             `json:"description,omitempty"`
	Required    bool               `json:"required,omitempty"`
	Schema      *jsonschema.Schema `json:"schema"`
	Example     any                `json:"example,omitempty"`
}

// Body is what a request sends.
type Body struct {
	Required bool             `json:"required"`
	Content  map[string]Media `json:"content"` // by media type
}

// headerRef refers to a header of the document's.
type headerRef struct {
	Ref string `json:"$ref"`
}

// Response is an answer, or a reference to one.
type Response struct {
	Ref         string               `json:"$ref,omitempty"`
	Description string               `json:"description,omitempty"`
	Headers     map[string]headerRef `json:"headers,omitempty"`
	Content     map[string]Media     `json:"content,omitempty"`
}

// Media is a body of one media type. For newline-delimited JSON it describes one line.
type Media struct {
	Schema  *jsonschema.Schema `json:"schema"`
	Example any                `json:"example,omitempty"`
}

// Describe returns the description. It reads the comments on the types from their source,
// so it works only in this package's folder.
func Describe() (*Document, error) {
	s, err := newSchemas()
	if err != nil {
		return nil, err
	}

	d := load[Document]("document")
	d.Paths = make(map[string]map[string]*Operation)
	d.Components.Schemas = s.all
	d.Components.Responses = errorResponses(s)

	for _, part := range parts {
		d.Tags = append(d.Tags, part.tag)
		for _, o := range part.Operations {
			d.add(s, o)
		}
	}

	return &d, nil
}

// add adds an operation in its usual spelling. Older ones are served, and left out here:
// generators of clients make a function of every operation.
func (d *Document) add(s *schemas, o *operation) {
	method, path, _ := strings.Cut(o.Route, " ")
	if d.Paths[path] == nil {
		d.Paths[path] = make(map[string]*Operation)
	}

	d.Paths[path][strings.ToLower(method)] = &Operation{
		ID:          o.ID,
		Tags:        []string{o.part.Name},
		Summary:     o.Summary,
		Description: o.Detail,
		Scope:       o.scope().Names(),
		Security:    o.part.Security,
		Parameters:  o.parameters(s),
		Body:        o.requestBody(s),
		Responses:   o.responses(s),
	}
}

// JSON returns the description as it is served.
func (d *Document) JSON() ([]byte, error) {
	text, err := jsonscan.Marshal(d)
	if err != nil {
		return nil, err
	}

	// The reflector refers to definitions beside each schema; here all schemas share one
	// place.
	text = bytes.ReplaceAll(text, []byte(`"#/$defs/`), []byte(`"`+schemaPrefix))

	var indented bytes.Buffer
	if err := json.Indent(&indented, text, "", " "); err != nil {
		return nil, fmt.Errorf("openapi: %w", err)
	}

	return append(indented.Bytes(), '\n'), nil
}

//go:embed *.yaml
var tables embed.FS

// load reads a table. It panics if the table is wrong: it is part of this package.
func load[T any](name string) (table T) {
	text, err := tables.ReadFile(name + ".yaml")
	var document any
	if err == nil {
		err = yaml.Unmarshal(text, &document)
	}
	if err == nil {
		// Its types have tags for JSON.
		text, err = json.Marshal(document)
	}
	if err == nil {
		d := json.NewDecoder(bytes.NewReader(text))
		d.DisallowUnknownFields()
		err = d.Decode(&table)
	}
	if err != nil {
		panic("openapi: " + name + ".yaml: " + err.Error())
	}

	return table
}

// shared are the texts that several operations use.
var shared = load[struct {
	Parameters map[string]Parameter
	Errors     []struct {
		Code          wire.Code
		Text, Message string
	}
	Properties map[string]string
}]("shared")

// part is a part of the API: the operations of a tag.
type part struct {
	tag
	Title      string // within a sentence
	Security   any    // if it differs from the document's
	Operations []*operation

	Page string `json:"-"` // of the reference for people
}

// The pages of parts that differ from others.
const (
	exporters = "api-opentelemetry"
	sidecars  = "api-sidecars"
)

var parts = loadParts("log", "opentelemetry", "templates", "find", "alerts", "targets", "sidecars")

func loadParts(names ...string) (all []*part) {
	for _, name := range names {
		p := load[*part](name)
		p.Page = "api-" + name
		for _, o := range p.Operations {
			o.part = p
		}
		all = append(all, p)
	}

	return all
}

// operations returns those of all parts.
func operations() (all []*operation) {
	for _, p := range parts {
		all = append(all, p.Operations...)
	}
	return all
}

// OlderRoutes maps older spellings of routes to those in the description. Each is a method and a
// path.
func OlderRoutes() map[string]string {
	all := map[string]string{}
	for _, o := range operations() {
		method, _, _ := strings.Cut(o.Route, " ")
		for path := range strings.FieldsSeq(o.Older) {
			all[method+" "+path] = o.Route
		}
	}

	return all
}

// value is what a query, a body or an answer holds.
type value struct {
	Type    string // one of types, which gives the schema
	Media   string // application/json if it is ""
	Example string // JSON; members that are left out have their zero value

	// Closed is set for a body that has the members of its type only, as answers have them.
	Closed bool
}

// parse returns the example. It panics if the type has no such members.
func (v *value) parse() any {
	example := reflect.New(types[v.Type])
	d := json.NewDecoder(strings.NewReader(cmp.Or(v.Example, "{}")))
	d.DisallowUnknownFields()
	if err := d.Decode(example.Interface()); err != nil {
		panic("openapi: an example of " + v.Type + ": " + err.Error())
	}

	return example.Elem().Interface()
}

// types are those that the tables name.
var types = byName(
	Empty{}, ExportLine{}, ExportLogs{}, ExportMetrics{}, ExportTraces{}, Exported{}, Export{},
	FetchTemplate{}, OK{}, PartsQuery{}, PublishTemplateOld{}, PublishTemplate{}, RPC{}, Search{}, SpansBulk{},
	StatisticsQuery{}, Trace{}, TrackAnyRequest{}, wire.AlertList{}, wire.AlertRule{}, wire.AlertTest{},
	wire.Analytics{}, wire.BacktestQuery{}, wire.Backtest{}, wire.BatchAnswer{}, wire.ChangesQuery{},
	wire.Changes{}, wire.CloseQuery{}, wire.Continue{}, wire.Deleted{}, wire.DeletionQuery{},
	wire.DeliveriesTaken{}, wire.DeliveryChoice{}, wire.DeliveryPage{}, wire.DeliveryQuery{}, wire.Done{},
	wire.Event{}, wire.Fleet{}, wire.GroupCreated{}, wire.GroupWrite{}, wire.Heartbeat{}, wire.KeyVerdict{},
	wire.LabelMove{}, wire.LabelWrite{}, wire.Labels{}, wire.LogWrite{}, wire.Logged{}, wire.MetadataWrite{},
	wire.NamedQuery{}, wire.OrphanPage{}, wire.OrphanQuery{}, wire.PlacedLabel{}, wire.PromptWrite{},
	wire.Published{}, wire.RawQuery{}, wire.RawTemplate{}, wire.Record{}, wire.RenderedTemplate{},
	wire.Repriced{}, wire.RequestWrite{}, wire.RollupFound{}, wire.RollupPage{}, wire.RollupSearch{},
	wire.ScanQuery{}, wire.Scanned{}, wire.ScoreBody{}, wire.ScoreDefinitionList{}, wire.ScoreDefinition{},
	wire.Scored{}, wire.SearchPage{}, wire.SpanPage{}, wire.SpanSearch{}, wire.SpansTaken{}, wire.Statistics{},
	wire.SuggestQuery{}, wire.Suggestions{}, wire.TargetList{}, wire.TargetPut{}, wire.TargetSettings{},
	wire.TemplateListQuery{}, wire.TemplateList{}, wire.TemplatePatch{}, wire.TraceClosed{}, wire.TraceQuery{},
	wire.TrackedRequest{}, wire.Tracked{}, wire.ViewList{}, wire.View{},
)

func byName(values ...any) map[string]reflect.Type {
	all := make(map[string]reflect.Type, len(values))
	for _, v := range values {
		all[reflect.TypeOf(v).Name()] = reflect.TypeOf(v)
	}
	return all
}
