package api

import (
	"strconv"

	"promptspool/api/wire"
)

// listTargets lists the project's targets.
func (a *API) listTargets(c *exchange) error {
	all, err := a.c.Targets.Targets(c.context, c.id)
	return c.answer(wire.TargetList{Success: true, Items: all}, err)
}

// putTarget makes a target, or changes it.
func (a *API) putTarget(c *exchange) error {
	t, err := wire.DecodeTarget(c.object, c.ident)
	if err != nil {
		return err
	}
	secret, err := a.c.Targets.PutTarget(c.context, c.id, t)
	if err != nil {
		return err
	}
	a.note(c, "put target", t.Name, t.Kind)

	return c.answer(wire.TargetPut{Done: wire.Done{Success: true, Message: "The target is kept."}, Secret: secret}, nil)
}

// removeTarget removes a target with what waits for it.
func (a *API) removeTarget(c *exchange) error {
	if err := a.c.Targets.RemoveTarget(c.context, c.id, c.ident); err != nil {
		return err
	}
	a.note(c, "remove target", c.ident, "")

	return c.answer(wire.Done{Success: true, Message: "The target is removed, with its queue."}, nil)
}

// testTarget delivers a test.
func (a *API) testTarget(c *exchange) error {
	err := a.c.Targets.TestTarget(c.context, c.id, c.ident)
	return c.answer(wire.Done{Success: true, Message: "The target took the test."}, err)
}

// listDeliveries lists what a target was not told.
func (a *API) listDeliveries(c *exchange) error {
	q, err := queryArgs[wire.DeliveryQuery](c)
	if err != nil {
		return err
	}
	page, err := a.c.Targets.Deliveries(c.context, c.id, c.ident, q)
	return c.answer(page, err)
}

// replayDeliveries puts dead letters into the queue again.
func (a *API) replayDeliveries(c *exchange) error {
	return a.takeDeliveries(c, "replay", "replayed", true)
}

// discardDeliveries deletes what was not delivered.
func (a *API) discardDeliveries(c *exchange) error {
	return a.takeDeliveries(c, "discard", "discarded", false)
}

func (a *API) takeDeliveries(c *exchange, verb, done string, replay bool) error {
	choice, err := wire.Decode[wire.DeliveryChoice](c.object)
	if err != nil {
		return err
	}
	choice.Replay = replay
	choice.Dead = choice.Dead || replay
	n, err := a.c.Targets.TakeDeliveries(c.context, c.id, c.ident, choice)
	if err != nil {
		return err
	}
	a.note(c, verb+" notices", c.ident, strconv.Itoa(n))

	return c.answer(wire.DeliveriesTaken{Success: true, Message: "They are " + done + ".", Count: n}, nil)
}
