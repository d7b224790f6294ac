package api

import (
	"encoding/json"
	"fmt"
	"time"

	"promptspool/api/edge"
	"promptspool/api/wire"
	"promptspool/api/wire/jsonscan"
)

// trackRequest logs a model call.
func (a *API) trackRequest(c *exchange) error {
	w, err := wire.DecodeRequest(c.object, c.route.strict, a.c.Clock.Now())
	if err != nil {
		return err
	}

	// The blueprint is made first, because the recorder owns the body's bytes afterwards.
	requestID := a.requestID(c, w.RequestID)
	blueprint, release := a.blueprint(c, string(w.ReturnBlueprint) == "true")
	defer release()

	if err := a.recordBody(c, wire.KindRequest, requestID, w.PromptLink); err != nil {
		return err
	}

	answer := wire.TrackedRequest{
		Tracked:   c.tracked(requestID, "Request logged."+w.Note),
		Dropped:   w.Dropped,
		Blueprint: blueprint,
	}
	edge.WriteJSON(c.ctx, 200, answer)

	return nil
}

// A blueprint takes about blueprintTimes the memory of its body. It is null for a larger body
// than blueprintBodyMax.
const (
	blueprintBodyMax = 1 << 20
	blueprintTimes   = 3
)

// blueprint makes the blueprint of the request's body, if it is wanted and there is memory for it.
// release gives the memory back.
func (a *API) blueprint(c *exchange, wanted bool) (_ json.RawMessage, release func()) {
	if !wanted || a.c.Blueprint == nil || len(c.body) > blueprintBodyMax {
		return nil, func() {}
	}

	// Too little memory is not a reason to refuse the write itself.
	release, err := a.intake.ClaimBeside(c.id.KeyID, int64(blueprintTimes*len(c.body)))
	if err != nil {
		return nil, func() {}
	}

	return a.c.Blueprint(c.body), release
}

// requestID returns the caller's own id, or one derived from its Idempotency-Key, or a new one.
func (a *API) requestID(c *exchange, own string) string {
	if own != "" {
		return own
	}
	if header := c.ctx.Request.Header.Peek("Idempotency-Key"); len(header) > 0 {
		return wire.DeriveID(string(header))
	}

	return wire.NewIDAt(a.c.Clock.Tick())
}

func (a *API) trackScore(c *exchange) error {
	w, err := wire.DecodeScore(c.object)
	if err == nil {
		err = a.fits(c, w.Score)
	}
	if err == nil {
		err = a.recordBody(c, wire.KindScore, w.RequestID, wire.PromptLink{})
	}
	if err != nil {
		return err
	}

	// The record that keeps a score of anything else than a call is not one that can be asked for.
	if w.Target != nil {
		w.RequestID = ""
	}
	edge.WriteJSON(c.ctx, 200, wire.Scored(c.tracked(w.RequestID, "Score recorded."+w.Note)))
	return nil
}

func (a *API) trackMetadata(c *exchange) error {
	w, err := wire.Decode[wire.MetadataWrite](c.object)
	return a.track(c, wire.KindMetadata, w.RequestID, wire.PromptLink{}, "Metadata recorded.", err)
}

func (a *API) trackPrompt(c *exchange) error {
	w, err := wire.Decode[wire.PromptWrite](c.object)
	return a.track(c, wire.KindPrompt, w.RequestID, w.Link(), "Prompt template linked.", err)
}

func (a *API) trackGroup(c *exchange) error {
	w, err := wire.Decode[wire.GroupWrite](c.object)
	return a.track(c, wire.KindGroup, w.RequestID, wire.PromptLink{}, "Group recorded.", err)
}

// createGroup mints a group's id. A group is only the id that its requests share, so nothing is
// stored until one does.
func (a *API) createGroup(c *exchange) error {
	return answer(c, wire.GroupCreated{
		Success: true,
		Message: "Group created.",
		ID:      wire.NewIDAt(a.c.Clock.Tick()),
	}, nil)
}

// track records the request's body and answers when it is durable. err is why it could not be decoded.
func (a *API) track(
	c *exchange, kind wire.Kind, requestID string, link wire.PromptLink, message string, err error,
) error {
	if err == nil {
		err = a.recordBody(c, kind, requestID, link)
	}
	if err != nil {
		return err
	}

	edge.WriteJSON(c.ctx, 200, c.tracked(requestID, message))

	return nil
}

// recordBody makes the request's body an event, and returns when it is durable.
func (a *API) recordBody(c *exchange, kind wire.Kind, requestID string, link wire.PromptLink) error {
	event := a.event(kind, requestID, c.takeBody())
	event.Link = link
	return a.record(c, event)
}

// unverifiedNote is added to the answer for a key that could not be verified yet.
const unverifiedNote = " The key is not verified yet: the server could not be reached. " +
	"It will check the key when the write arrives."

// tracked returns the answer to a write that is durable.
func (c *exchange) tracked(requestID, message string) wire.Tracked {
	if !c.id.Verified {
		message += unverifiedNote
	}
	return wire.Tracked{Success: true, Message: message, RequestID: requestID}
}

// clockDigits is how many characters of a clock's id are in every event: the last ones, which are
// random.
const clockDigits = 12

// event returns a write that is accepted now.
func (a *API) event(kind wire.Kind, requestID string, body []byte) wire.Event {
	// The id is minted from the same tick, so ids sort like the times of their events.
	now := a.c.Clock.Tick()

	return wire.Event{
		ID:         wire.NewIDAt(now),
		Kind:       kind,
		RequestID:  requestID,
		AcceptedAt: now,
		Sidecar:    a.c.Name,
		Clock:      a.c.ClockID[len(a.c.ClockID)-clockDigits:],
		Body:       body,
	}
}

// record makes events durable. Its error says why the first one that was not accepted was not.
func (a *API) record(c *exchange, events ...wire.Event) error {
	_, err := a.recordAll(c, events...)
	return err
}

// recordAll is record, and returns what became of each event.
func (a *API) recordAll(c *exchange, events ...wire.Event) ([]wire.Result, error) {
	results, err := a.c.Recorder.Record(c.context, c.id, events)
	if err != nil {
		return nil, err
	}
	a.count(results)
	if a.c.RecorderKeepsNothing {
		c.source.TakeBack()
	}

	for _, r := range results {
		switch r.Code {
		case wire.ResultInvalid:
			return nil, wire.Errorf(wire.CodeInvalid, "%s", r.Reason)
		case wire.ResultLater:
			return nil, wire.Unavailable(5*time.Second, "%s", r.Reason)
		}
	}

	return results, nil
}

// count counts the events that were accepted. A duplicate was counted when it first came.
func (a *API) count(results []wire.Result) {
	for _, r := range results {
		if r.Code == wire.ResultAccepted {
			a.c.Metrics.Accepted.Inc()
		}
	}
}

// logRequest logs a model call that the caller describes as blueprints of its input and output.
// A score that comes with it becomes its own event, as if it had been sent afterwards.
func (a *API) logRequest(c *exchange) error {
	w, err := wire.DecodeLog(c.object, a.c.Clock.Now())
	if err != nil {
		return err
	}

	if err := a.mayScore(c, w); err != nil {
		return err
	}

	// The request is made before its score, so that its time and id are the earlier ones.
	requestID := a.requestID(c, w.RequestID)
	request := a.event(wire.KindRequest, requestID, c.takeBody())
	request.Link = w.Link()
	events := []wire.Event{request}
	if w.Score != nil {
		body := scoreBody(requestID, w.ScoreName, *w.Score)
		events = append(events, a.event(wire.KindScore, requestID, body))
	}
	if err := a.record(c, events...); err != nil {
		return err
	}

	answer := wire.Logged{
		Tracked:      c.tracked(requestID, "Request logged."+w.Note),
		Dropped:      w.Dropped,
		ID:           requestID,
		Status:       "SUCCESS",
		ErrorType:    wire.OrNull(w.ErrorType),
		ErrorMessage: wire.OrNull(w.ErrorMessage),
	}
	if w.Status != "" {
		answer.Status = w.Status
	}
	edge.WriteJSON(c.ctx, 201, answer)

	return nil
}

// scoreBody returns the body of a track-score that sets the same score.
func scoreBody(requestID, name string, score int64) []byte {
	b := fmt.Appendf(nil, `{"request_id":%q,"name":`, requestID)
	return fmt.Appendf(jsonscan.AppendString(b, name), `,"score":%d}`, score)
}

// fits returns a 422 for a score that does not fit its definition. A sidecar takes every score.
func (a *API) fits(c *exchange, s wire.Score) error {
	if a.c.Scoring == nil || a.c.Upstream != nil {
		return nil
	}
	defined, err := a.c.Scoring.ScoreDefinitions(c.context, c.id)
	if err != nil {
		return err
	}
	return defined.Check(s)
}

// listScoreDefinitions lists the definitions of the project's scores.
func (a *API) listScoreDefinitions(c *exchange) error {
	defined, err := a.c.Scoring.ScoreDefinitions(c.context, c.id)
	return answer(c, wire.ScoreDefinitionList{Success: true, Items: defined}, err)
}

// defineScore makes a definition, or replaces it.
func (a *API) defineScore(c *exchange, d wire.ScoreDefinition) error {
	err := a.c.Scoring.DefineScore(c.context, c.id, d)
	return a.done(c, err, "define score", d.Name, d.Expected(), "The score is defined.")
}

// listViews lists the project's views.
func (a *API) listViews(c *exchange) error {
	all, err := a.c.Views.Views(c.context, c.id)
	return answer(c, wire.ViewList{Success: true, Items: all}, err)
}

// putView saves a view of the project.
func (a *API) putView(c *exchange, v wire.View) error {
	err := a.c.Views.PutView(c.context, c.id, v)
	return a.done(c, err, "save view", v.Name, wire.AuditFilter(v.Address), "The view is saved.")
}

// deleteView deletes a view of the project.
func (a *API) deleteView(c *exchange) error {
	err := a.c.Views.RemoveView(c.context, c.id, wire.View{Name: c.ident})
	return a.done(c, err, "delete view", c.ident, "", "The view is deleted.")
}
