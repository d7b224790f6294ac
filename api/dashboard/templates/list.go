// Package templates has the dashboard's pages of templates: the list, one template with its versions and
// labels, the editor, and how versions compare by their texts, their numbers and past requests.
//
// # Files
//
//	pages.go                         the table of pages
//	list.go, template.go             all templates; one with its versions, and code that fetches it
//	label.go                         moving labels; taking back a change
//	editor.go, draft.go, tool.go     the form of a version, and what it publishes
//	finding.go                       what is wrong with a draft, and with the parameters of its tools
//	compare.go, backtest.go          two versions; a version and what was sent in the past
//	statistics.go, comparison.go     versions by their numbers; what the difference of two is worth
package templates

import (
	"context"
	"embed"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"promptspool/api/dashboard/address"
	"promptspool/api/dashboard/filter"
	"promptspool/api/dashboard/frame"
	"promptspool/api/dashboard/table"
	"promptspool/api/wire"
)

const (
	templatesPerPage = 50
	useTime          = "since:24h" // in which the list counts calls
)

// templatesView is what the list of templates shows.
type templatesView struct {
	Items                    []templateRow
	Total                    int
	Name, Label, Tag, Status string
	Order                    table.Order
	Newer, Older             string // the addresses of the neighbouring pages
	Narrowed                 bool   // a filter is in force
}

type templateRow struct {
	wire.TemplateListItem
	Kind  string
	Model string
	Calls int64 // within useTime
}

func (p *pages) templatesPage(c *frame.Exchange) error {
	q := c.URL.Query()
	v := templatesView{
		Name:   q.Get("q"),
		Label:  q.Get("label"),
		Tag:    q.Get("tag"),
		Status: "active",
	}
	if q.Get("status") == "deleted" {
		v.Status = "deleted"
	}
	v.Narrowed = v.Name != "" || v.Label != "" || v.Tag != "" || v.Status != "active"

	// Anything that is not the number of a page means the first one.
	page, _ := strconv.Atoi(q.Get("page"))
	page = min(max(page, 1), wire.PageOffsetMax)
	calls, err := p.callsByTemplate(c)
	if err != nil {
		return err
	}
	v.Order = table.Read("/templates", c.URL.Query())
	query := v.query(page)
	query.Rank = table.Rank(v.Order, table.Columns[wire.Template]{
		"latest":  func(t *wire.Template) float64 { return float64(t.Latest()) },
		"calls":   func(t *wire.Template) float64 { return float64(calls[t.Name].Requests) },
		"changed": func(t *wire.Template) float64 { return table.At(&t.UpdatedAt) },
	})
	list, err := p.templates.List(c.Context(), c.Identity(), query)
	if err != nil {
		return err
	}

	v.Total = list.Total
	for _, item := range list.Items {
		row := templateRow{TemplateListItem: item, Calls: calls[item.Name].Requests}
		row.Kind, row.Model = kindAndModel(item.Blueprint, item.Metadata)
		v.Items = append(v.Items, row)
	}

	pageAddress := func(page int) string {
		q.Set("page", strconv.Itoa(page))
		q.Del("done")
		return address.Of("/templates", q)
	}
	if list.HasPrev {
		v.Newer = pageAddress(page - 1)
	}
	if list.HasNext {
		v.Older = pageAddress(page + 1)
	}

	return c.Show(http.StatusOK, "templates", frame.Title(v.Name, v.Label, v.Tag, "Templates"), "templates", v)
}

// query returns the query for one page of the list.
func (v *templatesView) query(page int) wire.TemplateListQuery {
	query := wire.TemplateListQuery{
		Page:    page,
		PerPage: templatesPerPage,
		Name:    v.Name,
		Label:   v.Label,
		Status:  v.Status,
	}
	if v.Tag != "" {
		query.Tags = []string{v.Tag}
	}

	return query
}

// callsByTemplate counts the recent requests of each template.
func (p *pages) callsByTemplate(c *frame.Exchange) (map[string]wire.Totals, error) {
	recent, err := c.Filter(nil).During(useTime).Group()
	if err != nil {
		return nil, err
	}
	query := wire.StatisticsQuery{PointsMax: 1, FilterGroup: recent}
	a, err := p.records.Analyze(c.Context(), c.Identity(), query)

	return a.ByTemplate, err
}

// kindAndModel returns what the list shows of a version.
func kindAndModel(blueprint, metadata json.RawMessage) (kind, model string) {
	var b struct {
		Type string `json:"type"`
	}
	var m struct {
		Model struct{ Name string }
	}
	// The registry has checked both.
	_ = json.Unmarshal(blueprint, &b)
	_ = json.Unmarshal(metadata, &m)

	return b.Type, m.Model.Name
}

// Templates reads an account's templates. Package registry documents the errors.
type Templates interface {
	List(ctx context.Context, id wire.Identity, q wire.TemplateListQuery) (wire.TemplateList, error)
	Head(ctx context.Context, id wire.Identity, ident string) (wire.Template, error)
	Source(ctx context.Context, id wire.Identity, ident string, s wire.Selector) (wire.RawTemplate, error)
	Fetch(
		ctx context.Context, id wire.Identity, ident string, f wire.TemplateFetch,
	) (wire.RenderedTemplate, error)
	TemplateEditor
}

// TemplateEditor changes templates, and shows beforehand what a change would do.
type TemplateEditor interface {
	Preview(
		ctx context.Context, id wire.Identity, p wire.Publish, f wire.TemplateFetch,
	) (wire.RenderedTemplate, []wire.Finding, error)
	Findings(ctx context.Context, id wire.Identity, p wire.Publish) ([]wire.Finding, error)
	FindingsOf(ctx context.Context, id wire.Identity, ident string, s wire.Selector) ([]wire.Finding, error)
	Publish(ctx context.Context, id wire.Identity, p wire.Publish) (wire.Published, error)
	CreateLabel(
		ctx context.Context, id wire.Identity, ident string, w wire.LabelWrite, by string,
	) (wire.PlacedLabel, error)
	DeleteLabel(ctx context.Context, id wire.Identity, label int64, by string) error
	Archive(ctx context.Context, id wire.Identity, ident, by string) error
	Restore(ctx context.Context, id wire.Identity, ident, by string) error

	// RevertLabel and RevertArchive take back a change, unless another one has followed it. A
	// label that was moved on and back again counts as unchanged.
	RevertLabel(ctx context.Context, id wire.Identity, name, label string, is, was int, by string) error
	RevertArchive(ctx context.Context, id wire.Identity, name string, at time.Time, by string) error
}

// Records reads what was logged with the templates.
type Records interface {
	Request(ctx context.Context, id wire.Identity, requestID string) (wire.Record, error)
	Analyze(ctx context.Context, id wire.Identity, q wire.StatisticsQuery) (wire.Analytics, error)
	Statistics(ctx context.Context, id wire.Identity, q wire.PartsQuery) (wire.Statistics, error)
	filter.Searcher
}

// pages are the pages of templates.
type pages struct {
	templates Templates
	records   Records
	providers []string // that llm_kwargs can be made for
}

//go:embed *.html
var html embed.FS

// Pages returns the pages of templates. A template's name may hold any character, so it is in the query
// and not in the path. providers are those that llm_kwargs can be made for.
func Pages(templates Templates, records Records, providers []string) frame.Section {
	p := &pages{templates, records, providers}

	return frame.Section{
		HTML: html,
		Routes: []frame.Route{
			{Pattern: "GET /templates", Page: p.templatesPage},
			{Pattern: "GET /template", Page: p.of("text", p.templatePage)},
			{Pattern: "GET /template/compare", Page: p.of("compare", p.comparePage)},
			{Pattern: "GET /template/statistics", Page: p.of("statistics", p.statisticsPage)},
			{Pattern: "GET /template/backtest", Page: p.of("backtest", p.backtestPage)},

			{Pattern: "GET /template/edit", Page: p.editPage},
			{Pattern: "POST /template/edit", Page: p.edit, Review: p.reviewEdit},
			{Pattern: "POST /template/preview", Page: p.preview},

			{Pattern: "POST /template/label", Page: p.of("", p.moveLabel),
				Review: frame.Review("Move this label?", "Move", "name", "label", "version", "compared")},
			{Pattern: "POST /template/label/delete", Page: p.of("", p.deleteLabel)},
			{Pattern: "POST /template/archive", Page: p.of("", p.archiveTemplate)},
			{Pattern: "POST /template/restore", Page: p.of("", p.restoreTemplate)},
		},
		Notices: map[string]string{
			"saved":      "Saved. Apps requesting the latest version get it within a second.",
			"unchanged":  "Nothing was changed, so no new version was created.",
			"label":      "The label now points to this version. Apps requesting it get it within a second.",
			"unlabelled": "The label was deleted.",
			"relabelled": "The label was created again, with a new ID.",
			"archived":   archived,
			"restored":   "The template was restored.",
		},
		Undos: map[string]frame.Undoing{
			"label":   {Text: labelText, Back: p.undoLabel},
			"archive": {Text: func(frame.Undo) string { return archived }, Back: p.undoArchive},
		},
	}
}

// archived is the notice that a template was archived.
const archived = "The template is archived. Apps requesting it will get 404."
