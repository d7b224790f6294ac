package api

import (
	"context"

	"promptspool/api/wire"
)

// Fleet keeps what the account's sidecars tell of themselves. On a sidecar it is the server.
type Fleet interface {
	// Beat notes a heartbeat, durably.
	Beat(ctx context.Context, id wire.Identity, h wire.Heartbeat) error
	Fleet(ctx context.Context, id wire.Identity) (wire.Fleet, error)
}

func (a *API) heartbeat(c *call) error {
	h, err := wire.DecodeHeartbeat(c.body)
	if err != nil {
		return err
	}

	return c.answer(map[string]bool{"success": true}, a.c.Fleet.Beat(c.life, c.id, h))
}

func (a *API) listFleet(c *call) error {
	fleet, err := a.c.Fleet.Fleet(c.life, c.id)
	return c.answer(fleet, err)
}
