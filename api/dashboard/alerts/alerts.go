// Package alerts has the dashboard's page of the rules that watch a project's calls.
package alerts

import (
	"embed"
	"net/http"
	"slices"
	"strings"

	"promptspool/api/dashboard/frame"
	"promptspool/api/dashboard/number"
	"promptspool/api/wire"
)

// view is what the page shows.
type view struct {
	Alerts  []wire.Alert
	History []firing
	Views   []wire.View   // that a rule can name
	Targets []wire.Target // the same

	Typed wire.AlertRule  // what the form shows
	Tried *wire.AlertTest // how often that would have fired; nil unless it was asked
	Error *wire.Error     // of the form
}

// firing is a row of the history.
type firing struct {
	wire.AlertFiring
	Of wire.AlertRule
}

// historyMax is how many firings are shown of all alerts together.
const historyMax = 100

// Condition prints when an alert fires.
func (view) Condition(r wire.AlertRule) string { return number.Condition(r) }

// Measured prints what an alert has measured.
func (view) Measured(r wire.AlertRule, v *float64) string { return number.Measured(r.Measure, v) }

// Tells reports whether the form has a target checked.
func (v view) Tells(name string) bool { return slices.Contains(v.Typed.Targets, name) }

// list shows the page; the form has the rule that the query names.
func (p *pages) list(c *frame.Exchange) error { return p.show(c, http.StatusOK, view{}) }

func (p *pages) show(c *frame.Exchange, status int, v view) (err error) {
	v.Alerts, err = p.alerts.Alerts(c.Context(), c.Identity())
	if err != nil {
		return err
	}
	edited := c.URL.Query().Get("alert")
	for _, a := range v.Alerts {
		if a.Name == edited {
			v.Typed = a.AlertRule
		}
		for _, f := range a.State.Firings {
			v.History = append(v.History, firing{f, a.AlertRule})
		}
	}
	slices.SortStableFunc(v.History, func(a, b firing) int { return b.At.Compare(a.At) })
	v.History = v.History[:min(len(v.History), historyMax)]

	v.Views, err = p.views.Views(c.Context(), wire.Identity{Account: c.Identity().Account})
	if err == nil {
		v.Targets, err = p.targets.Targets(c.Context(), c.Identity())
	}
	if err != nil {
		return err
	}
	return c.Show(status, "alerts", "Alerts", "alerts", v)
}

// put saves the rule of the form, or only tries it.
func (p *pages) put(c *frame.Exchange) error {
	// In rules, a metadata key has a prefix.
	if key := c.PostForm.Get("by"); key != "" {
		c.PostForm.Set("by", wire.ByMetadata+strings.TrimPrefix(key, wire.ByMetadata))
	}
	r, err := wire.DecodeForm[wire.AlertRule](c.PostForm)
	v := view{Typed: r}
	switch {
	case err == nil && c.PostForm.Get("try") != "":
		var tried wire.AlertTest
		tried, err = p.alerts.TestAlert(c.Context(), c.Identity(), r)
		if err == nil {
			v.Tried = &tried
			return p.show(c, http.StatusOK, v)
		}
	case err == nil:
		err = p.alerts.PutAlert(c.Context(), c.Identity(), r)
		if err == nil {
			return c.Done("save alert", r.Name, wire.AuditFilter(r.Filter), "/alerts", "alert-saved")
		}
	}

	v.Error = frame.Correctable(err)
	if v.Error == nil {
		return err
	}
	return p.show(c, v.Error.Status(), v)
}

func (p *pages) remove(c *frame.Exchange) error {
	return c.Remove(p.alerts.RemoveAlert, "remove alert", "/alerts", "alert-removed")
}

// pages are the pages of alerts, and what their rules name.
type pages struct {
	alerts  wire.Alerts
	views   wire.Views
	targets wire.Targets
}

//go:embed *.html
var html embed.FS

// Pages returns the pages of alerts.
func Pages(alerts wire.Alerts, views wire.Views, targets wire.Targets) frame.Section {
	p := &pages{alerts, views, targets}

	return frame.Section{
		HTML: html,
		Routes: []frame.Route{
			{Pattern: "GET /alerts", Page: p.list},
			{Pattern: "POST /alerts", Page: p.put},
			{Pattern: "POST /alerts/{id}/remove", Page: p.remove},
		},
		Notices: map[string]string{
			"alert-saved":   "The alert is saved.",
			"alert-removed": "The alert is removed.",
		},
	}
}
