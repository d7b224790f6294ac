package templates

import (
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
