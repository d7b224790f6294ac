package api

import "promptspool/api/wire"

// listAlerts lists the project's alerts with their state, and what fired and ended last.
func (a *API) listAlerts(c *exchange) error {
	list, err := a.c.Alerts.Alerts(c.context, c.id)
	return c.answer(list, err)
}

// putAlert makes an alert, or replaces its rule.
func (a *API) putAlert(c *exchange) error {
	r, err := wire.DecodeAlertRule(c.object, c.ident)
	if err == nil {
		err = a.c.Alerts.PutAlert(c.context, c.id, r)
	}
	return a.done(c, err, "save alert", r.Name, wire.AuditFilter(r.Filter), "The alert is saved.")
}

// testAlert looks at how often a rule would have fired.
func (a *API) testAlert(c *exchange) error {
	r, err := wire.DecodeAlertRule(c.object, "")
	if err != nil {
		return err
	}
	answer, err := a.c.Alerts.TestAlert(c.context, c.id, r)
	return c.answer(answer, err)
}
