package api

import (
	"bytes"

	"promptspool/api/room"
)

// bodyCopies is how often a body exists beside itself while its call is passed to a
// server: encoded anew, then as the answer, decoded and encoded.
const bodyCopies = 5

// makeRoom waits until there is room for what is made of the call's body. A recorded one
// is handed on as it is.
func (a *API) makeRoom(c *call) error {
	if c.route.needs == recorder {
		return nil
	}

	return room.Admit(c.life, bodyCopies*len(c.body))
}

// settle releases what the call holds of the room: once a large answer has been written,
// else now.
func (c *call) settle() {
	claim := &c.own.claim
	if !claim.Holds() {
		return
	}
	answer := &c.ctx.Response
	if answer.IsBodyStream() || len(answer.Body()) <= room.SmallBytes {
		claim.Release()
		return
	}

	// A slow reader holds the room of the answer's own bytes, and no longer than the pace of
	// bodies lets it.
	body := answer.SwapBody(nil)
	claim.Keep(len(body))
	paced := newStreamed(c.ctx, bytes.NewReader(body), paceBytes, paceTime)
	answer.SetBodyStream(&claimedAnswer{paced, claim}, len(body))
}

// claimedAnswer is an answer whose room is released when it was written, or the caller is
// gone.
type claimedAnswer struct {
	*streamed
	claim *room.Claim
}

// Close is called by fasthttp in any case.
func (a *claimedAnswer) Close() error {
	a.claim.Release()

	return nil
}
