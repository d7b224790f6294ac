package api

import (
	"strconv"

	"promptspool/api/wire"
)

// listTargets lists the project's targets.
func (a *API) listTargets(c *exchange) error {
	all, err := a.c.Targets.Targets(c.context, c.id)
	return answer(c, wire.TargetList{Success: true, Items: all}, err)
}

// putTarget makes a target, or changes it.
func (a *API) putTarget(c *exchange, t wire.TargetSettings) error {
	secret, err := a.c.Targets.PutTarget(c.context, c.id, t)
	if err != nil {
		return err
	}
	a.note(c, "put target", t.Name, t.Kind)

	done := wire.Done{Success: true, Message: "The target is saved."}
	return answer(c, wire.TargetPut{Done: done, Secret: secret}, nil)
}

// testTarget delivers a test.
func (a *API) testTarget(c *exchange) error {
	err := a.c.Targets.TestTarget(c.context, c.id, c.ident)
	return answer(c, wire.Done{Success: true, Message: "The target took the test."}, err)
}

// listDeliveries lists what a target was not told.
func (a *API) listDeliveries(c *exchange, q wire.DeliveryQuery) error {
	items, err := a.c.Targets.Deliveries(c.context, c.id, c.ident, q)
	return answer(c, wire.DeliveryPage{Success: true, Items: items}, err)
}

// takeDeliveries puts dead letters into the queue again, or discards what was not delivered.
func (a *API) takeDeliveries(c *exchange, choice wire.DeliveryChoice) error {
	verb, message := "discard", "They will not be delivered."
	if c.route.name == "replay-deliveries" {
		verb, message = "replay", "They will be delivered again."
		choice.Replay, choice.Dead = true, true
	}
	n, err := a.c.Targets.TakeDeliveries(c.context, c.id, c.ident, choice)
	if err != nil {
		return err
	}
	a.note(c, verb+" notices", c.ident, strconv.Itoa(n))

	return answer(c, wire.DeliveriesTaken{Success: true, Message: message, Count: n}, nil)
}

// listAlerts lists the project's alerts with their state.
func (a *API) listAlerts(c *exchange) error {
	all, err := a.c.Alerts.Alerts(c.context, c.id)
	return answer(c, wire.AlertList{Success: true, Items: all}, err)
}

// putAlert makes an alert, or replaces its rule.
func (a *API) putAlert(c *exchange, r wire.AlertRule) error {
	err := a.c.Alerts.PutAlert(c.context, c.id, r)
	return a.done(c, err, "save alert", r.Name, wire.AuditFilter(r.Filter), "The alert is saved.")
}
