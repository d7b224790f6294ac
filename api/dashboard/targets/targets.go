// Package targets has the dashboard's pages of where a project's notices go, and of what did not arrive.
package targets

import (
	"embed"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"promptspool/api/dashboard/frame"
	"promptspool/api/wire"
)

// view is what the pages show: all targets, or one.
type view struct {
	Rows  []wire.Target
	Of    *wire.Target // the one that the page is about; nil for all
	Lists []list

	Typed  wire.TargetSettings // what the form shows
	Error  *wire.Error         // of the form, or of a test
	Secret string              // of the target just made: it is shown only now
}

// list is what a target was not told.
type list struct {
	Title string
	Dead  bool
	Items []wire.Delivery
}

// Types are what a target can be told.
func (view) Types() []string { return wire.NoticeTypes }

// Tells reports whether the form has a type checked.
func (v view) Tells(name string) bool { return slices.Contains(v.Typed.Types, name) }

func (p *pages) all(c *frame.Exchange) error { return p.show(c, http.StatusOK, view{}) }

// target shows the page of a target.
func (p *pages) target(c *frame.Exchange) error {
	return p.show(c, http.StatusOK, view{Typed: wire.TargetSettings{Name: c.PathValue("id")}})
}

// show shows the page of the target that v has typed in its form or, without a name there, of all. A name that
// was refused may be a new one.
func (p *pages) show(c *frame.Exchange, status int, v view) (err error) {
	v.Rows, err = p.targets.Targets(c.Context(), c.Identity())
	if err != nil {
		return err
	}
	at := slices.IndexFunc(v.Rows, func(t wire.Target) bool { return t.Name == v.Typed.Name })
	switch {
	case at < 0 && v.Typed.Name != "" && v.Error == nil:
		return wire.Errorf(wire.CodeNotFound, "This project has no such target.")
	case at < 0:
		return c.Show(status, "targets", "Targets", "targets", v)
	}

	v.Of = &v.Rows[at]
	if v.Typed.Kind == "" {
		v.Typed.Kind, v.Typed.Types = v.Of.Kind, v.Of.Types
	}
	for _, l := range []list{{Title: "Dead letters", Dead: true}, {Title: "Waiting"}} {
		l.Items, err = p.targets.Deliveries(c.Context(), c.Identity(), v.Of.Name, wire.DeliveryQuery{Dead: l.Dead})
		if err != nil {
			return err
		}
		v.Lists = append(v.Lists, l)
	}

	return c.Show(status, "targets", frame.Title(v.Of.Name, "Targets"), "targets", v)
}

// put makes or changes the target that a form describes. Its page comes in the answer itself: a secret is
// shown once, and must not appear in an address.
func (p *pages) put(c *frame.Exchange) error {
	typed, err := wire.DecodeForm[wire.TargetSettings](c.PostForm)
	v := view{Typed: typed}
	if err == nil {
		v.Secret, err = p.targets.PutTarget(c.Context(), c.Identity(), v.Typed)
	}
	if err != nil {
		return p.refuse(c, v, err)
	}
	if err := c.Note(c.Context(), "put target", v.Typed.Name, v.Typed.Kind); err != nil {
		return err
	}
	if v.Secret == "" {
		return c.Redirect(path(v.Typed.Name), "target-kept")
	}
	v.Typed = wire.TargetSettings{Name: v.Typed.Name}
	return p.show(c, http.StatusOK, v)
}

func path(name string) string { return "/targets/" + url.PathEscape(name) }

// refuse shows the form again with what is wrong, or why a test failed.
func (p *pages) refuse(c *frame.Exchange, v view, err error) error {
	v.Error = frame.Correctable(err)
	if v.Error == nil {
		return err
	}
	return p.show(c, v.Error.Status(), v)
}

func (p *pages) test(c *frame.Exchange) error {
	name := c.PathValue("id")
	if err := p.targets.TestTarget(c.Context(), c.Identity(), name); err != nil {
		return p.refuse(c, view{Typed: wire.TargetSettings{Name: name}}, err)
	}
	return c.Redirect(path(name), "target-tested")
}

func (p *pages) remove(c *frame.Exchange) error {
	return c.Remove(p.targets.RemoveTarget, "remove target", "/targets", "target-removed")
}

// take replays or discards the delivery that a form names or, without an id, the first 200.
func (p *pages) take(verb, notice string) func(*frame.Exchange) error {
	return func(c *frame.Exchange) error {
		name := c.PathValue("id")
		n, err := p.targets.TakeDeliveries(c.Context(), c.Identity(), name, wire.DeliveryChoice{
			Replay: verb == "replay",
			Dead:   c.PostForm.Get("waiting") == "",
			ID:     c.PostForm.Get("notice"),
		})
		if err != nil {
			return err
		}
		return c.Done(verb+" notices", name, strconv.Itoa(n), path(name), notice)
	}
}

// pages are the pages of targets.
type pages struct{ targets wire.Targets }

//go:embed *.html
var html embed.FS

// Pages returns the pages of targets.
func Pages(targets wire.Targets) frame.Section {
	p := &pages{targets}

	return frame.Section{
		HTML: html,
		Routes: []frame.Route{
			{Pattern: "GET /targets", Page: p.all},
			{Pattern: "POST /targets", Page: p.put},
			{Pattern: "GET /targets/{id}", Page: p.target},
			{Pattern: "POST /targets/{id}/test", Page: p.test},
			{Pattern: "POST /targets/{id}/replay", Page: p.take("replay", "replayed")},
			{Pattern: "POST /targets/{id}/discard", Page: p.take("discard", "discarded")},
			{Pattern: "POST /targets/{id}/remove", Page: p.remove},
		},
		Notices: map[string]string{
			"target-kept":    "The target is saved.",
			"target-tested":  "The target took the test.",
			"target-removed": "The target is removed, with its queue.",
			"replayed":       "They will be delivered again.",
			"discarded":      "They will not be delivered.",
		},
	}
}
