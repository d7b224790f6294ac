// Package views has what leads to other pages of the dashboard: the saved views, with the forms that save
// and delete them, and the search for anything by its name or id. Every page has both: see package frame.
package views

import (
	"embed"
	"net/http"
	"net/url"

	"promptspool/api/dashboard/frame"
	"promptspool/api/wire"
)

// listView is what the page of all views shows.
type listView struct {
	Rows  []row
	Typed string      // the name in the form
	New   string      // the address of a page that could not be saved under that name; "" is none
	Error *wire.Error // what is wrong with the name
}

// row is a saved view.
type row struct{ wire.View }

// pageNames are the names of the pages that a view can be of.
var pageNames = map[string]string{
	"/":                    "Overview",
	"/requests":            "Requests",
	"/traces":              "Traces",
	"/sessions":            "Sessions",
	"/users":               "Users",
	"/template/statistics": "Statistics",
}

// Page returns which page the view is of.
func (r row) Page() string { return pageNames[r.Path()] }

// Remove returns the path of the form that deletes the view.
func (r row) Remove() string { return formsPath(r.Own) + "/" + url.PathEscape(r.Name) + "/remove" }

// formsPath is where a view is saved. The project's have their own, so that package access tells who may.
func formsPath(own bool) string {
	if own {
		return "/views"
	}
	return "/project-views"
}

func (p *pages) list(c *frame.Exchange) error { return p.show(c, http.StatusOK, listView{}) }

// show shows the page of all views.
func (p *pages) show(c *frame.Exchange, status int, v listView) error {
	all, err := p.views.Views(c.Context(), c.Identity())
	if err != nil {
		return err
	}
	for _, saved := range all {
		v.Rows = append(v.Rows, row{saved})
	}

	return c.Show(status, "views", "Views", "views", v)
}

// save saves a page under a name.
func (p *pages) save(c *frame.Exchange, own bool) error {
	v, err := wire.DecodeForm[wire.View](c.PostForm)
	v.Own = own
	if err == nil {
		err = p.views.PutView(c.Context(), c.Identity(), v)
	}
	// The audit log has those of the project.
	if err == nil && !own {
		err = c.Note(c.Context(), "save view", v.Name, wire.AuditFilter(v.Address))
	}
	if e := frame.Correctable(err); e != nil {
		return p.show(c, e.Status(), listView{Typed: v.Name, New: v.Address, Error: e})
	}
	if err != nil {
		return err
	}

	return c.Redirect(frame.ViewAddress(v), "view-saved")
}

// remove deletes a view.
func (p *pages) remove(c *frame.Exchange, own bool) error {
	v := wire.View{Name: c.PathValue("id"), Own: own}
	err := p.views.RemoveView(c.Context(), c.Identity(), v)
	if err == nil && !own {
		err = c.Note(c.Context(), "delete view", v.Name, "")
	}
	if err != nil {
		return err
	}

	return c.Redirect("/views", "view-deleted")
}

// pages are the pages of views, and the one that finds something.
type pages struct {
	views     wire.Views
	records   wire.Archive
	templates wire.Registry
	keys      wire.Keys
}

//go:embed *.html
var html embed.FS

// Pages returns the pages of views, and the one that finds something.
func Pages(views wire.Views, records wire.Archive, templates wire.Registry, keys wire.Keys) frame.Section {
	p := &pages{views, records, templates, keys}
	review := frame.Review("Save this view?", "Save", "name", "address")
	routes := []frame.Route{
		{Pattern: "GET /views", Page: p.list},
		{Pattern: "GET /find", Page: p.findPage},
		{Pattern: "GET /find/offers", Page: p.offersAnswer},
	}
	for _, own := range []bool{true, false} {
		of := func(page func(*frame.Exchange, bool) error) func(*frame.Exchange) error {
			return func(c *frame.Exchange) error { return page(c, own) }
		}
		path := "POST " + formsPath(own)
		routes = append(routes,
			frame.Route{Pattern: path, Page: of(p.save), Review: review},
			frame.Route{Pattern: path + "/{id}/remove", Page: of(p.remove)})
	}

	return frame.Section{
		HTML:   html,
		Routes: routes,
		Notices: map[string]string{
			"view-saved":   "The view is saved.",
			"view-deleted": "The view is deleted.",
		},
	}
}
