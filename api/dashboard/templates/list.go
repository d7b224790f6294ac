// Package templates has the dashboard's pages of templates: the list, one template with its versions and
// labels, the editor, and how versions compare by their texts, their numbers and past requests.
//
// # Files
//
//	list.go                all templates, and the table of pages
//	template.go            one with its versions, and code that fetches it; moving labels, and taking that back
//	editor.go, draft.go    the form of a version, with its tools; what it publishes
//	compare.go             two versions, and what the difference of their numbers is worth; a version and what was
//	                       sent in the past; what is wrong with a draft
//	statistics.go          versions by their numbers
//	experiment.go          what versions answered to the same rows
package templates

import (
	"embed"
	"encoding/json"
	"net/http"
	"strconv"

	"promptspool/api/dashboard/address"
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
	var m struct {
		Model struct{ Name string }
	}
	// The registry has checked it.
	_ = json.Unmarshal(metadata, &m)

	return readBlueprint(blueprint).Type, m.Model.Name
}

// pages are the pages of templates.
type pages struct {
	templates wire.Registry
	records   wire.Archive
	providers []string // that llm_kwargs can be made for
}

//go:embed *.html
var html embed.FS

// Pages returns the pages of templates. A template's name may hold any character, so it is in the query
// and not in the path. providers are those that llm_kwargs can be made for.
func Pages(templates wire.Registry, records wire.Archive, providers []string) frame.Section {
	p := &pages{templates: templates, records: records, providers: providers}

	return frame.Section{
		HTML: html,
		Routes: []frame.Route{
			{Pattern: "GET /templates", Page: p.templatesPage},
			{Pattern: "GET /template", Page: p.of("text", p.templatePage)},
			{Pattern: "GET /template/compare", Page: p.of("compare", p.comparePage)},
			{Pattern: "GET /template/statistics", Page: p.of("statistics", p.statisticsPage)},
			{Pattern: "GET /template/backtest", Page: p.of("backtest", p.backtestPage)},
			{Pattern: "GET /template/experiment", Page: p.of("experiment", p.experimentPage)},

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
			"archived":   "The template is archived. Apps requesting it will get 404.",
			"restored":   "The template was restored.",
		},
	}
}
