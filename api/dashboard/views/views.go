// Package views has what leads to other pages of the dashboard: the saved views, with the forms that save,
// rename and delete them, and the search for anything by its name or id. Every page has both: see package frame.
package views

import (
	"embed"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"promptspool/api/dashboard/address"
	"promptspool/api/dashboard/frame"
	"promptspool/api/wire"
)

// listView is what the page of all views shows.
type listView struct {
	Rows  []row
	Typed string      // the name in a form
	New   string      // the address of a page that could not be saved under that name; "" is none
	Error *wire.Error // what is wrong with the name
}

// row is a saved view.
type row struct {
	wire.View
	Renamed bool
}

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

// Form returns the path of a form of the view.
func (r row) Form(action string) string {
	return formsPath(r.Own) + "/" + url.PathEscape(r.Name) + action
}

// Rename returns the address of the page with the form that renames the view.
func (r row) Rename() string {
	q := url.Values{"rename": {r.Name}}
	if r.Own {
		q.Set("own", "1")
	}
	return address.Of("/views", q)
}

// formsPath is where a view is saved. The project's have their own, so that package access tells who may.
func formsPath(own bool) string {
	if own {
		return "/views"
	}
	return "/project-views"
}

func (p *pages) list(c *frame.Exchange) error {
	q := c.URL.Query()
	renamed := wire.View{Name: q.Get("rename"), Own: q.Has("own")}

	return p.show(c, http.StatusOK, listView{Typed: renamed.Name}, renamed)
}

// show shows the page of all views, with the form that renames one.
func (p *pages) show(c *frame.Exchange, status int, v listView, renamed wire.View) error {
	all, err := p.views.Views(c.Context(), c.Identity())
	for _, saved := range all {
		isRenamed := saved.Name == renamed.Name && saved.Own == renamed.Own
		v.Rows = append(v.Rows, row{saved, isRenamed})
	}
	if err != nil {
		return err
	}

	return c.Show(status, "views", "Views", "views", v)
}

// save saves a page under a name.
func (p *pages) save(c *frame.Exchange, own bool) error {
	v := wire.View{Name: strings.TrimSpace(c.PostForm.Get("name")), Address: c.PostForm.Get("address"), Own: own}
	if err := p.put(c, v.Name, &v); err != nil {
		return p.refuse(c, err, listView{Typed: v.Name, New: v.Address}, wire.View{})
	}

	return c.Redirect(frame.ViewAddress(v), "view-saved")
}

// rename gives a view another name.
func (p *pages) rename(c *frame.Exchange, own bool) error {
	all, err := p.views.Views(c.Context(), c.Identity())
	if err != nil {
		return err
	}
	was := wire.View{Name: c.PathValue("id"), Own: own}
	i := slices.IndexFunc(all, func(v wire.View) bool { return v.Name == was.Name && v.Own == own })
	if i < 0 {
		return wire.Errorf(wire.CodeNotFound, "There is no view %.200q.", was.Name)
	}

	v := all[i]
	v.Name = strings.TrimSpace(c.PostForm.Get("name"))
	if err := p.put(c, was.Name, &v); err != nil {
		return p.refuse(c, err, listView{Typed: v.Name}, was)
	}

	return c.Redirect("/views", "view-renamed")
}

// put checks and saves a view. The audit log has those of the project.
func (p *pages) put(c *frame.Exchange, was string, v *wire.View) error {
	err := v.Check()
	if err == nil {
		err = p.views.PutView(c.Context(), c.Identity(), was, *v)
	}
	if err == nil && !v.Own {
		err = c.Note(c.Context(), "save view", v.Name, wire.AuditFilter(v.Address))
	}

	return err
}

// refuse shows a form again, with what is wrong with the name.
func (p *pages) refuse(c *frame.Exchange, err error, v listView, renamed wire.View) error {
	v.Error = frame.Correctable(err)
	if v.Error == nil {
		return err
	}

	return p.show(c, v.Error.Status(), v, renamed)
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
			frame.Route{Pattern: path + "/{id}/rename", Page: of(p.rename)},
			frame.Route{Pattern: path + "/{id}/remove", Page: of(p.remove)})
	}

	return frame.Section{
		HTML:   html,
		Routes: routes,
		Notices: map[string]string{
			"view-saved":   "The view is saved.",
			"view-renamed": "The view has another name.",
			"view-deleted": "The view is deleted.",
		},
	}
}
