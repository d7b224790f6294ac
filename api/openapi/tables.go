package openapi

import (
	"bytes"
	"cmp"
	"embed"
	"encoding/json"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"

	"promptspool/api/wire"
)

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
		text, err = json.Marshal(document) // its types have tags for JSON
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
	Title      string     // within a sentence
	Security   []security // if it differs from the document's
	Operations []*operation

	page string // of the reference for people
}

// The pages of parts that differ from others.
const (
	exporters = "api-opentelemetry"
	sidecars  = "api-sidecars"
)

var parts = loadParts("log", "opentelemetry", "templates", "find", "sidecars")

func loadParts(names ...string) (all []*part) {
	for _, name := range names {
		p := load[*part](name)
		p.page = "api-" + name
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
	BacktestQuery{}, Continue{}, CreateGroup{}, CreateLabel{}, DefineScore{}, Empty{}, ExportLine{},
	ExportLogs{}, ExportMetrics{}, ExportTraces{}, Exported{}, Export{}, FetchTemplate{}, Heartbeat{},
	LogRequest{}, MoveLabel{}, OK{}, PartsQuery{}, PatchTemplate{}, PublishTemplateOld{},
	PublishTemplate{}, RollupSearch{}, Scan{}, Search{}, SpanSearch{}, SpansBulk{}, StatisticsQuery{},
	Trace{}, TrackAnyRequest{}, TrackGroup{}, TrackMetadata{}, TrackPrompt{}, TrackRequest{}, TrackScore{},
	wire.Analytics{}, wire.Backtest{}, wire.BatchAnswer{}, wire.ChangesQuery{}, wire.Changes{},
	wire.CloseQuery{}, wire.Deleted{}, wire.DeletionQuery{}, wire.Done{}, wire.Event{}, wire.Fleet{},
	wire.GroupCreated{}, wire.KeyVerdict{}, wire.Labels{}, wire.Logged{}, wire.NamedQuery{},
	wire.OrphanPage{}, wire.OrphanQuery{}, wire.PlacedLabel{}, wire.Published{}, wire.RawQuery{},
	wire.RawTemplate{}, wire.Record{}, wire.RenderedTemplate{}, wire.Repriced{}, wire.RollupFound{},
	wire.RollupPage{}, wire.Scanned{}, wire.ScoreDefinitionList{}, wire.Scored{}, wire.SearchPage{},
	wire.SpanPage{}, wire.SpansTaken{}, wire.Statistics{}, wire.SuggestQuery{}, wire.Suggestions{},
	wire.TemplateListQuery{}, wire.TemplateList{}, wire.TraceClosed{}, wire.TraceQuery{},
	wire.TrackedRequest{}, wire.Tracked{},
)

func byName(values ...any) map[string]reflect.Type {
	all := make(map[string]reflect.Type, len(values))
	for _, v := range values {
		all[reflect.TypeOf(v).Name()] = reflect.TypeOf(v)
	}
	return all
}
