package client

import (
	"context"

	"promptspool/api/wire"
)

// Beat tells the server of a sidecar, in the name of one of its accounts.
func (c *Client) Beat(ctx context.Context, id wire.Identity, h wire.Heartbeat) error {
	body, err := encode(h)
	if err != nil {
		return wire.Errorf(wire.CodeInternal, "The heartbeat cannot be encoded: %w", err)
	}
	var done struct{}
	return c.do(ctx, request{method: "POST", path: "/sync/heartbeat", key: id.Key, body: body, answer: &done, answerBytesMax: syncAnswerBytesMax})
}

// Fleet lists the account's sidecars.
func (c *Client) Fleet(ctx context.Context, id wire.Identity) (wire.Fleet, error) {
	var f wire.Fleet
	err := c.do(ctx, request{method: "GET", path: "/sync/fleet", key: id.Key, answer: &f})
	return f, err
}
