package api_test

import (
	"context"
	"reflect"
	"strings"
	"testing"

	"promptspool/api"
	"promptspool/api/wire"
)

// finder answers every query with nothing, and counts how often it was asked.
type finder struct {
	wire.Records
	asked int
}

func (f *finder) Search(context.Context, wire.Identity, wire.Search) (wire.SearchPage, error) {
	f.asked++
	return wire.SearchPage{Success: true, Items: []wire.Row{}, Paging: wire.NewPaging(1, 10, 0)}, nil
}

func (f *finder) ExportEvents(
	_ context.Context, _ wire.Identity, _ wire.Search, _ func([]wire.Event) error, mark func(string) error,
) error {
	f.asked++
	return mark("")
}

func (f *finder) Orphans(context.Context, wire.Identity, wire.OrphanQuery) (wire.OrphanPage, error) {
	f.asked++
	return wire.OrphanPage{Success: true, Items: []wire.Orphan{}}, nil
}

func (f *finder) Suggest(context.Context, wire.Identity, wire.SuggestQuery) (wire.Suggestions, error) {
	f.asked++
	return wire.Suggestions{Success: true, Values: []string{}}, nil
}

func (f *finder) Delete(context.Context, wire.Identity, wire.Deletion) (wire.Deleted, error) {
	f.asked++
	return wire.Deleted{Success: true}, nil
}

// shelf has one template.
type shelf struct {
	wire.Templates
	finder *finder
}

func (s shelf) Fetch(
	context.Context, wire.Identity, string, wire.TemplateFetch,
) (wire.RenderedTemplate, error) {
	warning := "The variable name is missing."
	return wire.RenderedTemplate{Success: true, Name: "a", Version: 1, Tags: []string{},
		Blueprint: []byte(`{"type":"chat","messages":[]}`), Warning: &warning,
		Snippets: []wire.UsedSnippet{}}, nil
}

func (s shelf) Raw(context.Context, wire.Identity, string, wire.Selector) (wire.RawTemplate, error) {
	return wire.RawTemplate{Success: true, Name: "a", Tags: []string{}, Labels: []string{}, AllLabels: []wire.Label{},
		Blueprint: []byte(`{"type":"chat","messages":[]}`), Snippets: []wire.UsedSnippet{}}, nil
}

func (s shelf) List(context.Context, wire.Identity, wire.TemplateListQuery) (wire.TemplateList, error) {
	s.finder.asked++
	return wire.TemplateList{Success: true, Items: []wire.TemplateListItem{}, Paging: wire.NewPaging(1, 30, 0)}, nil
}

func (s shelf) Publish(context.Context, wire.Identity, wire.Publish) (wire.Published, error) {
	return wire.Published{Success: true, Name: "a", Tags: []string{}, Labels: []string{},
		ExternalIDs: []wire.ExternalID{}, Blueprint: []byte(`{"type":"chat","messages":[]}`)}, nil
}

func (s shelf) Patch(context.Context, wire.Identity, string, wire.TemplatePatch) (wire.Published, error) {
	s.finder.asked++
	return wire.Published{Success: true}, nil
}

// startQueries starts an API that answers queries with nothing.
func startQueries(t *testing.T) (*scene, *finder) {
	t.Helper()
	f := &finder{}
	s := start(t, func(c *api.Config) { c.Records, c.Templates = f, shelf{finder: f} })

	return s, f
}

func (*finder) Analyze(context.Context, wire.Identity, wire.StatisticsQuery) (wire.Analytics, error) {
	a := wire.Analytics{Success: true}
	makeLists(reflect.ValueOf(&a).Elem())

	return a, nil
}

// makeLists replaces nil lists and maps by empty ones, as answers have them.
func makeLists(v reflect.Value) {
	for _, field := range v.Fields() {
		switch {
		case !field.CanSet():
		case field.Kind() == reflect.Struct:
			makeLists(field)
		case field.Kind() == reflect.Slice:
			field.Set(reflect.MakeSlice(field.Type(), 0, 0))
		case field.Kind() == reflect.Map:
			field.Set(reflect.MakeMap(field.Type()))
		}
	}
}

func (*finder) Statistics(context.Context, wire.Identity, wire.PartsQuery) (wire.Statistics, error) {
	return wire.Statistics{Success: true, Items: []wire.ValueTotals{}}, nil
}

// text makes a call and returns its status, its body and the header of warnings.
func (s *scene) text(method, path, body string) (status int, text, warning string) {
	s.t.Helper()
	res, text, err := s.read(method, path, body, "X-API-KEY", "full")
	if err != nil {
		s.t.Fatal(err)
	}

	return res.StatusCode, text, res.Header.Get("Promptspool-Warning")
}

func TestAQueryWithAnUnknownMemberIsRejectedWithTheClosestOne(t *testing.T) {
	s, f := startQueries(t)
	const requests = "/api/public/v2/requests"
	for _, tt := range []struct{ method, path, body, field, says string }{
		{"POST", requests + "/search", `{"fliter":"tag:demo"}`, "fliter", "the closest is filter"},
		{"POST", requests + "/search", `{"filters":[{"field":"tags"}]}`, "filters", "the closest is filter"},
		{"POST", requests + "/search", `{"limit":5}`, "limit", "which takes "},
		{"POST", requests + "/search", `{"filter_group":{"logic":"AND","filter":[]}}`,
			"filter_group", `it has "filter"`},
		{"POST", requests + "/search", `{"filter_group":{"filters":[{"feild":"tags"}]}}`, "filter_group", `"feild"`},
		{"POST", requests + "/export", `{"fromat":"csv"}`, "fromat", "the closest is format"},
		{"POST", requests + "/analytics", `{"bucket_size":"day"}`, "bucket_size", "the closest is bucket"},
		{"POST", requests + "/analytics", `{"by":"model"}`, "by", "which takes "},
		{"POST", requests + "/statistics", `{"templates":[]}`, "templates", "which takes "},
		{"POST", requests + "/statistics", `{"prompt_name":"a","copmare":[1,2]}`, "copmare", "the closest is compare"},
		{"POST", requests + "/statistics", `{"prompt_name":"a","compare":[2,2]}`, "compare", "different versions"},
		{"POST", requests + "/statistics", `{"compare":[1,2]}`, "prompt_name", "is missing"},
		{"POST", requests + "/statistics", `{"by":"metadata."}`, "by", "must be one of: version, "},
		{"GET", requests + "/suggestions?field=tags&limits=3", "", "limits", "the closest is limit"},
		{"GET", requests + "/suggestions?field=tags&filter_group=%7B%22x%22:1%7D", "", "filter_group", `it has "x"`},
		{"GET", requests + "/orphans?page=2", "", "page", "which takes per_page, cursor"},
		{"GET", requests + "/orphans?per_page=0", "", "per_page", "from 1 to 1000"},
		{"GET", requests + "/orphans?per_page=x", "", "per_page", "from 1 to 1000"},
		{"DELETE", requests + "?metadata_key=a&metadata_value=b&befor=2026-01-01", "",
			"befor", "the closest is before"},
		{"POST", requests + "/scan", `{"maks":true}`, "maks", "the closest is mask"},
		{"POST", "/rest/backtest", `{"prompt_name":"a","lats":3}`, "lats", "the closest is last"},
		{"GET", "/prompt-templates?lable=prod", "", "lable", "the closest is label"},
		{"GET", "/prompt-templates?external_id=7", "", "external_id", "only be given together"},
		{"GET", "/prompt-templates?is_snippet=maybe", "", "is_snippet", "true or false"},
		{"PATCH", "/rest/prompt-templates/a", `{"nonsense":1}`, "nonsense", "which takes version, label, messages"},
		{"PATCH", "/prompt-labels/65537", `{"prompt_version_number":1,"version":2}`,
			"version", "which takes prompt_version_number"},
	} {
		a := s.call(tt.method, tt.path, tt.body, "X-API-KEY", "full")
		if a.Status != 422 || len(a.Fields) != 1 || a.Fields[0].Field != tt.field ||
			!strings.Contains(a.Fields[0].Reason, tt.says) {
			t.Errorf("%s %s %s: %d %+v, want %q of %s",
				tt.method, tt.path, tt.body, a.Status, a.Fields, tt.says, tt.field)
		}
	}
	if f.asked > 0 {
		t.Errorf("%d of these queries were answered", f.asked)
	}

	// null and an empty parameter are absent, and the key is no member.
	for path, body := range map[string]string{
		requests + "/search":        `{"api_key":"full","fliter":null}`,
		requests + "/search?fliter": `{}`,
	} {
		if status, text, _ := s.text("POST", path, body); status != 200 {
			t.Errorf("%s %s: %d %s", path, body, status, text)
		}
	}
	if status, text, _ := s.text("GET", "/prompt-templates?lable=", ""); status != 200 {
		t.Errorf("%d %s", status, text)
	}
}

// TestAMemberOfTheHostedServiceWithoutAnEffectIsAcceptedWithAWarning has every field of that
// service's schema that is not acted on here.
func TestAMemberOfTheHostedServiceWithoutAnEffectIsAcceptedWithAWarning(t *testing.T) {
	s, _ := startQueries(t)
	const requests = "/api/public/v2/requests"
	const publish = `"prompt_version":{"prompt_template":{"type":"chat","messages":[]}}`
	for _, tt := range []struct{ method, path, body, names string }{
		{"POST", requests + "/search", `{"metadata_cost_breakdown_key":"team"}`, "metadata_cost_breakdown_key"},
		{"POST", requests + "/analytics", `{"sort_by":"cost","sort_order":"desc"}`, "sort_by sort_order"},
		{"POST", requests + "/statistics", `{"sort_by":"cost","by":"metadata.plan"}`, "sort_by"},
		{"POST", requests + "/export", `{"page":2,"format":"csv"}`, "page"},
		{"POST", "/prompt-templates/a", `{"workspace_id":3}`, "workspace_id"},
		{"POST", "/rest/prompt-templates",
			`{"prompt_template":{"prompt_name":"a","folder_id":7,"workspace_id":3},` + publish + `}`,
			"prompt_template.folder_id prompt_template.workspace_id"},
		{"POST", "/rest/publish-prompt-template",
			`{"prompt_name":"a","folder_id":7,"prompt_template":{"type":"chat","messages":[]}}`, "folder_id"},

		// An app gets its template whatever it sends, and learns what had no effect.
		{"POST", "/prompt-templates/a", `{"labl":"prod"}`, "label"},
		{"GET", "/prompt-templates/a?resolve_snipets=false", "", "resolve_snippets"},
		{"GET", "/rest/get-prompt-template?prompt_name=a&versoin=1", "", "version"},
	} {
		status, text, header := s.text(tt.method, tt.path, tt.body)
		for name := range strings.FieldsSeq(tt.names) {
			told := strings.Contains(header, name) ||
				strings.Contains(text, `"warning":"`) && strings.Contains(text, name)
			if status/100 != 2 || !told {
				t.Errorf("%s %s %s: %d %s %s", tt.method, tt.path, tt.body, status, text, header)
			}
		}
	}

	// The template's own warning stays, and what has an effect brings none.
	if _, text, _ := s.text("POST", "/prompt-templates/a", `{"workspace_id":3}`); !strings.Contains(text,
		`"warning":"The variable name is missing. workspace_id has no effect here."`) {
		t.Error(text)
	}
	for path, body := range map[string]string{
		requests + "/search":    `{"include_prompt_name":true,"page":1,"sort_by":"cost"}`,
		requests + "/analytics": `{"metadata_cost_breakdown_key":"team"}`,
		"/prompt-templates/a":   `{"metadata_filters":{"a":"b"}}`, // the SDKs send it with each run
	} {
		if _, text, header := s.text("POST", path, body); strings.Contains(text, "effect") || header != "" {
			t.Errorf("%s %s: %s", path, body, text)
		}
	}
}

// groups notes of what a search was.
type groups struct {
	wire.Records
	of string
}

func (g *groups) Rollups(_ context.Context, _ wire.Identity, s wire.RollupSearch) (wire.RollupPage, error) {
	g.of = s.Of
	return wire.RollupPage{Success: true, Items: []wire.Rollup{}}, nil
}

func TestASearchKnowsItsPathWithASlash(t *testing.T) {
	records := &groups{}
	s := start(t, func(c *api.Config) { c.Records = records })
	for _, of := range []string{"sessions", "traces", "users"} {
		for _, path := range []string{"/search", "/search/"} {
			records.of = ""
			a := s.call("POST", "/api/public/v2/"+of+path, "{}", "X-API-KEY", "full")
			if a.Status != 200 || records.of != of {
				t.Errorf("%s%s: %d %s, searched %q", of, path, a.Status, a.Message, records.of)
			}
		}
	}
}

// agentHeader is what an agent sends beside a message.
var agentHeader = []string{"X-API-KEY", "full"}

// toolCall is the message that calls a tool.
func toolCall(tool, arguments string) string {
	return `{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "` + tool +
		`", "arguments": ` + arguments + `}}`
}

func TestAToolIsARouteWithItsChecks(t *testing.T) {
	s, f := startQueries(t)
	for _, tt := range []struct {
		message, want string
		asked         int
	}{
		{toolCall("search", `{"filter": "status:error"}`), `\"items\":`, 1},
		{toolCall("search", `{"filters": "status:error"}`), `the closest is filter`, 0},
		{toolCall("search", `{"filter": "status:"}`), `filter is wrong at character`, 0},
		{toolCall("suggest_values", `{"field": "tags"}`), `\"complete\":false`, 1},
		{toolCall("get", `{"id": "no id"}`), `request_id`, 0},
		{toolCall("get", `{"id": "suggestions"}`), `field is missing`, 0},
		{toolCall("render_template", `{"prompt_name": "a"}`), `The variable name is missing.`, 0},
		{`{"jsonrpc": "2.0", "id": 1, "method": "prompts/list"}`, `"prompts":[]`, 1},
	} {
		f.asked = 0
		res, text, err := s.read("POST", "/mcp", tt.message, agentHeader...)
		if err != nil || res.StatusCode != 200 || !strings.Contains(text, tt.want) || f.asked != tt.asked {
			t.Errorf("%s: %d, asked %d times: %s", tt.message, res.StatusCode, f.asked, text)
		}
	}
}

func TestAMessageThatIsNoneIsRefusedAsOtherCallsAre(t *testing.T) {
	s, _ := startQueries(t)
	message := toolCall("search", "{}")
	for _, tt := range []struct {
		method, body string
		header       []string
		status       int
		want         string
	}{
		{"POST", message, nil, 401, "The key is missing"},
		{"POST", "{", agentHeader, 400, "JSON"},
		{"POST", toolCall("search", `"`+strings.Repeat("x", 256<<10)+`"`), agentHeader, 413, "than 262144 bytes"},
		{"POST", "{}", agentHeader, 400, "malformed payload"},
		{"POST", message, append([]string{"Mcp-Protocol-Version", "1999-01-01"}, agentHeader...), 400, "Unsupported"},
		{"GET", "", agentHeader, 405, "takes POST"},
		{"DELETE", "", agentHeader, 405, "takes POST"},
	} {
		a := s.call(tt.method, "/mcp", tt.body, tt.header...)
		if a.Status != tt.status || !strings.Contains(a.Message, tt.want) {
			t.Errorf("%s %s: %+v; want %d, %q", tt.method, tt.body, a, tt.status, tt.want)
		}
	}
}

func TestAPanicOfAToolEndsOnlyItsCall(t *testing.T) {
	s, _ := startQueries(t)
	// The finder knows no traces.
	_, text, err := s.read("POST", "/mcp", toolCall("get", `{"kind": "traces", "id": "1"}`), agentHeader...)
	if err != nil || !strings.Contains(text, "Its log has the details") {
		t.Errorf("%s %v", text, err)
	}
	_, text, err = s.read("POST", "/mcp", toolCall("search", "{}"), agentHeader...)
	if err != nil || !strings.Contains(text, "items") {
		t.Error(text, err)
	}
}
