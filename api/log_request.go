package api

import (
	"fmt"

	"promptspool/api/edge"
	"promptspool/api/wire"
	"promptspool/api/wire/jsonscan"
)

// logRequest logs a model call that the caller describes as blueprints of its input and output.
// A score that comes with it becomes an event of its own, as if it had been sent afterwards.
func (a *API) logRequest(c *call) error {
	w, err := wire.DecodeLog(c.object)
	if err != nil {
		return err
	}

	// The request is made before its score, so that its time and id are the earlier ones.
	requestID := a.requestID(c, w.RequestID)
	request := a.event(wire.KindRequest, requestID, c.takeBody())
	request.Link = w.Prompt
	events := []wire.Event{request}
	if w.Score != nil {
		body := scoreBody(requestID, w.ScoreName, *w.Score)
		events = append(events, a.event(wire.KindScore, requestID, body))
	}
	if err := a.record(c, events...); err != nil {
		return err
	}

	answer := wire.Logged{
		Tracked:      c.tracked(requestID, "Request logged."),
		ID:           requestID,
		Status:       "SUCCESS",
		ErrorType:    orNull(w.ErrorType),
		ErrorMessage: orNull(w.ErrorMessage),
	}
	if w.Status != "" {
		answer.Status = w.Status
	}
	edge.WriteJSON(c.ctx, 201, answer)

	return nil
}

// scoreBody returns the body of a track-score that sets the same score.
func scoreBody(requestID, name string, score int) []byte {
	b := fmt.Appendf(nil, `{"request_id":%q,"name":`, requestID)
	return fmt.Appendf(jsonscan.AppendString(b, name), `,"score":%d}`, score)
}

// orNull returns text, or what is null in JSON if it is empty.
func orNull(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}
