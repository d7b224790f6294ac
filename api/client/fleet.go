package client

import (
	"context"

	"promptspool/api/wire"
)

// Beat reports a sidecar to the server, in the name of one of its accounts.
func (c *Client) Beat(ctx context.Context, id wire.Identity, h wire.Heartbeat) error {
	r := post(id, "/sync/heartbeat", h)
	r.answerBytesMax = syncAnswerBytesMax
	return c.do(ctx, r)
}

// Fleet lists the account's sidecars.
func (c *Client) Fleet(ctx context.Context, id wire.Identity) (wire.Fleet, error) {
	return ask[wire.Fleet](ctx, c, get(id, "/sync/fleet", nil))
}
