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
		err = p.put(c, v)
	}
	if e := frame.Correctable(err); e != nil {
		return p.show(c, e.Status(), listView{Typed: v.Name, New: v.Address, Error: e})
	}
	if err != nil {
		return err
	}

	return c.Redirect(frame.ViewAddress(v), "view-saved")
}

// put saves a view. The audit log has those of the project.
func (p *pages) put(c *frame.Exchange, v wire.View) error {
	err := p.views.PutView(c.Context(), c.Identity(), v)
	if err == nil && !v.Own {
		err = c.Note(c.Context(), "save view", v.Name, wire.AuditFilter(v.Address))
	}

	return err
}

// saved returns the saved view of a name; nil if there is none.
func (p *pages) saved(c *frame.Exchange, name string, own bool) (*wire.View, error) {
	all, err := p.views.Views(c.Context(), c.Identity())
	for i := range all {
		if all[i].Name == name && all[i].Own == own {
			return &all[i], err
		}
	}

	return nil, err
}

// remove deletes a view.
func (p *pages) remove(c *frame.Exchange, own bool) error {
	was, err := p.saved(c, c.PathValue("id"), own)
	if err != nil {
		return err
	}
	v := wire.View{Name: c.PathValue("id"), Own: own}
	err = p.views.RemoveView(c.Context(), c.Identity(), v)
	if err == nil && !own {
		err = c.Note(c.Context(), "delete view", v.Name, "")
	}
	if err != nil {
		return err
	}

	undo := frame.Undo{Kind: formsPath(own), Of: wire.OrZero(was).Address, Name: v.Name}

	return c.Offer("/views", "view-deleted", undo)
}

// undoing returns how the deletion of a view is undone.
func (p *pages) undoing(own bool) frame.Undoing {
	return frame.Undoing{
		Text: func(u frame.Undo) string { return "The view " + u.Name + " is deleted." },
		Back: func(c *frame.Exchange, u frame.Undo) (to, done string, err error) {
			v := wire.View{Name: u.Name, Address: u.Of, Own: own}
			other, err := p.saved(c, v.Name, own)
			switch {
			case err != nil:
				return "", "", err
			case other != nil:
				return "", "", wire.Errorf(wire.CodeConflict, "There is another view of this name now.")
			}

			return "/views", "undone", p.put(c, v)
		},
	}
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
		Undos: map[string]frame.Undoing{formsPath(true): p.undoing(true), formsPath(false): p.undoing(false)},
	}
}
