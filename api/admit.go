package api

import (
	"bytes"

	"promptspool/api/admission"
	"promptspool/api/intake"
)

// bodyCopies is how many more times a body exists while its call is passed to a server: encoded
// again, then as the answer, decoded and encoded.
const bodyCopies = 5

// takeRoom waits until there is room for what is made of the call's body. A body that is recorded
// is not copied, so it needs none.
func (a *API) takeRoom(c *call) error {
	if c.route.needs == recorder {
		return nil
	}
	return admission.AdmitRoom(c.context, bodyCopies*len(c.body))
}

// releaseRoom releases what the call holds of the room: now, or once a large answer has been
// written.
func (c *call) releaseRoom() {
	claim := &c.ownContext.claim
	if !claim.Holds() {
		return
	}
	answer := &c.ctx.Response
	if answer.IsBodyStream() || len(answer.Body()) <= admission.SmallBytes {
		claim.Release()
		return
	}

	// A slow reader holds the room of the answer's own bytes, and no longer than the pace of
	// bodies allows.
	body := answer.SwapBody(nil)
	claim.Keep(len(body))
	paced := newPacedReader(c.ctx, bytes.NewReader(body), intake.PaceBytes, intake.PaceTime)
	answer.SetBodyStream(&claimedAnswer{paced, claim}, len(body))
}

// claimedAnswer is an answer that releases its room when it has been written, or the caller has
// left.
type claimedAnswer struct {
	*pacedReader
	claim *admission.RoomClaim
}

// Close releases the room. fasthttp calls it in any case.
func (a *claimedAnswer) Close() error {
	a.claim.Release()
	return nil
}
