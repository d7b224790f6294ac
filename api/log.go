package api

import (
	"fmt"

	"promptspool/api/edge"
	"promptspool/api/wire"
	"promptspool/api/wire/jsonscan"
)

// logAnswer answers a log-request. Status, ErrorType and ErrorMessage repeat what was logged.
type logAnswer struct {
	trackAnswer
	ID            string  `json:"id"`             // the same as request_id
	PromptVersion *int    `json:"prompt_version"` // always null: the record links the template
	Status        string  `json:"status"`
	ErrorType     *string `json:"error_type"`
	ErrorMessage  *string `json:"error_message"`
}

// logRequest logs a model call that the caller describes as blueprints of what went in and what came out. A score that comes with
// it is an event of its own, as if it were sent behind it.
func (a *API) logRequest(c *call) error {
	w, err := wire.DecodeLog(c.object)
	if err != nil {
		return err
	}
	requestID := a.requestID(c, w.RequestID)
	request := a.event(wire.KindRequest, requestID, c.takeBody())
	request.Link = w.Prompt
	events := []wire.Event{request}
	if w.Score != nil {
		events = append(events, a.event(wire.KindScore, requestID, scoreBody(requestID, w.ScoreName, *w.Score)))
	}
	if err := a.record(c, events...); err != nil {
		return err
	}
	answer := logAnswer{trackAnswer: trackAnswer{Success: true, Message: "Request logged.", RequestID: requestID}, ID: requestID, Status: "SUCCESS"}
	if !c.id.Verified {
		answer.Message += unverifiedNote
	}
	if w.Status != "" {
		answer.Status = w.Status
	}
	answer.ErrorType, answer.ErrorMessage = orNull(w.ErrorType), orNull(w.ErrorMessage)
	edge.WriteJSON(c.ctx, 201, answer)
	return nil
}

// scoreBody is what a track-score of the same would have said.
func scoreBody(requestID, name string, score int) []byte {
	b := fmt.Appendf(nil, `{"request_id":%q,"name":`, requestID)

	return fmt.Appendf(jsonscan.AppendString(b, name), `,"score":%d}`, score)
}

// orNull is null in JSON if the text is empty.
func orNull(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}
