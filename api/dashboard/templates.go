package dashboard

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"promptspool/api/wire"
)

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

const (
	templatesPerPage = 50
	useTime          = "since:24h" // in which the list counts calls
)

// templateRoutes registers the pages of templates. A template's name may hold any
// character, so it is in the query and not in the path.
func (d *Dashboard) templateRoutes() {
	d.handle("GET /templates", wire.RoleViewer, d.templatesPage)
	d.handle("GET /template", wire.RoleViewer, d.templatePage)
	d.handle("GET /template/compare", wire.RoleViewer, d.comparePage)
	d.handle("GET /template/statistics", wire.RoleViewer, d.statisticsPage)
	d.handle("GET /template/backtest", wire.RoleViewer, d.backtestPage)

	d.handle("GET /template/edit", wire.RoleEditor, d.editPage)
	d.resumable("POST /template/edit", wire.RoleEditor, d.edit, d.reviewEdit)
	d.handle("POST /template/preview", wire.RoleEditor, d.preview)

	d.resumable("POST /template/label", wire.RoleEditor, d.moveLabel,
		d.reviewShort("Move this label?", "Move", "name", "label", "version"))
	d.handle("POST /template/label/delete", wire.RoleEditor, d.deleteLabel)
	d.handle("POST /template/archive", wire.RoleEditor, d.archiveTemplate)
	d.handle("POST /template/restore", wire.RoleEditor, d.restoreTemplate)
}

// templatesView is what the list of templates shows.
type templatesView struct {
	Items                    []templateRow
	Total                    int
	Name, Label, Tag, Status string
	Sort                     string
	Newer, Older             string // the addresses of the neighbouring pages
	Narrowed                 bool   // a filter is in force
}

type templateRow struct {
	wire.TemplateListItem
	Kind  string
	Model string
	Calls int64 // within useTime
}

func (d *Dashboard) templatesPage(c *call) error {
	q := c.URL.Query()
	v := templatesView{
		Name:   q.Get("q"),
		Label:  q.Get("label"),
		Tag:    q.Get("tag"),
		Sort:   q.Get("sort"),
		Status: "active",
	}
	if q.Get("status") == "deleted" {
		v.Status = "deleted"
	}
	v.Narrowed = v.Name != "" || v.Label != "" || v.Tag != "" || v.Status != "active"

	// Anything that is not the number of a page means the first one.
	page, _ := strconv.Atoi(q.Get("page"))
	page = min(max(page, 1), wire.PageOffsetMax)
	list, err := d.Templates.List(c.Context(), c.identity(), v.query(page))
	if err != nil {
		return err
	}
	calls, err := d.callsByTemplate(c)
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
		// The notice belongs to this page only.
		q.Set("page", strconv.Itoa(page))
		q.Del("done")
		return address("/templates", q)
	}
	if list.HasPrev {
		v.Newer = pageAddress(page - 1)
	}
	if list.HasNext {
		v.Older = pageAddress(page + 1)
	}

	return d.show(c, http.StatusOK, "templates", "Templates", "templates", v)
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
	if v.Sort == "updated_at" {
		query.SortBy = v.Sort
	}

	return query
}

// callsByTemplate counts the recent requests of each template.
func (d *Dashboard) callsByTemplate(c *call) (map[string]wire.Totals, error) {
	recent, err := newFilter(useTime).group(d.Now())
	if err != nil {
		return nil, err
	}
	query := wire.StatisticsQuery{PointsMax: 1, FilterGroup: recent}
	a, err := d.Records.Analyze(c.Context(), c.identity(), query)

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
	_ = json.Unmarshal(blueprint, &b) // the registry has checked both
	_ = json.Unmarshal(metadata, &m)

	return b.Type, m.Model.Name
}

// templateAddress returns the address of a template's page. params are names and values.
func templateAddress(page, name string, params ...string) string {
	q := url.Values{"name": {name}}
	for i := 0; i+1 < len(params); i += 2 {
		q.Set(params[i], params[i+1])
	}

	return address(page, q)
}
