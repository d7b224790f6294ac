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
	wire.AlertList

	Typed wire.AlertRule  // what the form shows
	Tried *wire.AlertTest // how often that would have fired; nil unless it was asked
	Error *wire.Error     // of the form
}

// Condition prints when an alert fires.
func (view) Condition(r wire.AlertRule) string { return number.Condition(r) }

// Measured prints what an alert has measured.
func (view) Measured(r wire.AlertRule, v *float64) string { return number.Measured(r.Measure, v) }

// Threshold is what the form shows of the rule's.
func (v view) Threshold() any {
	if v.Typed.Threshold == nil {
		return ""
	}
	return *v.Typed.Threshold
}

// Targets are those of the form's rule, as they are typed.
func (v view) Targets() string { return strings.Join(v.Typed.Targets, ", ") }

// list shows the page; the form has the rule that the query names.
func (p *pages) list(c *frame.Exchange) error { return p.show(c, http.StatusOK, view{}) }

func (p *pages) show(c *frame.Exchange, status int, v view) (err error) {
	v.AlertList, err = p.alerts.Alerts(c.Context(), c.Identity())
	if err != nil {
		return err
	}
	edited := c.URL.Query().Get("alert")
	if i := slices.IndexFunc(v.Items, func(a wire.Alert) bool { return a.Name == edited }); i >= 0 {
		v.Typed = v.Items[i].AlertRule
	}

	return c.Show(status, "alerts", "Alerts", "alerts", v)
}

// put saves the rule of the form, or only tries it.
func (p *pages) put(c *frame.Exchange) error {
	r, err := readRule(c)
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

// readRule reads the form.
func readRule(c *frame.Exchange) (wire.AlertRule, error) {
	field := func(name string) string { return strings.TrimSpace(c.PostForm.Get(name)) }
	members := map[string]any{}
	for _, name := range []string{"filter", "measure", "when", "no_data", "severity"} {
		members[name] = field(name)
	}
	if key := field("by"); key != "" {
		members["by"] = wire.ByMetadata + strings.TrimPrefix(key, wire.ByMetadata)
	}
	for _, name := range []string{"threshold", "window_minutes", "windows"} {
		if text := field(name); text != "" {
			members[name] = frame.Typed(text, nil)
		}
	}
	if targets := strings.Fields(strings.ReplaceAll(field("targets"), ",", " ")); len(targets) > 0 {
		members["targets"] = targets
	}

	object, err := frame.Object(members)
	if err != nil {
		return wire.AlertRule{}, err
	}
	return wire.DecodeAlertRule(object, field("name"))
}

func (p *pages) remove(c *frame.Exchange) error {
	name := c.PathValue("id")
	if err := p.alerts.RemoveAlert(c.Context(), c.Identity(), name); err != nil {
		return err
	}
	return c.Done("remove alert", name, "", "/alerts", "alert-removed")
}

// pages are the pages of alerts.
type pages struct{ alerts wire.Alerts }

//go:embed *.html
var html embed.FS

// Pages returns the pages of alerts.
func Pages(alerts wire.Alerts) frame.Section {
	p := &pages{alerts}

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
