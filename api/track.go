package api

import (
	"encoding/json"
	"time"

	"promptspool/api/wire"
)

// trackAnswer answers a write.
type trackAnswer struct {
	Success   bool   `json:"success"`
	Message   string `json:"message"`
	RequestID string `json:"request_id,omitempty"`
}

// trackRequest logs a model call.
func (a *API) trackRequest(c *call) error {
	w, err := wire.DecodeRequest(c.object, c.route.strict)
	if err != nil {
		return err
	}

	requestID := a.requestID(c, w.RequestID)
	blueprint, done := a.blueprint(c, w.ReturnBlueprint)
	defer done()

	if err := a.trackEvent(c, wire.KindRequest, requestID, w.Prompt); err != nil {
		return err
	}

	return c.answer(requestAnswer{a.tracked(c, requestID, "Request logged."), blueprint}, nil)
}

// requestAnswer answers a track-request.
type requestAnswer struct {
	trackAnswer
	Blueprint json.RawMessage `json:"prompt_blueprint"` // null if it was not asked for
}

// Bounds of what is answered with a blueprint, which takes about so many times the memory of its body, and is null beyond them.
const (
	blueprintBodyMax = 1 << 20
	blueprintTimes   = 3
)

// blueprint makes the blueprint of the call's body, if it is wanted and there is memory for it, which done gives back.
func (a *API) blueprint(c *call, wanted bool) (_ json.RawMessage, done func()) {
	if !wanted || a.c.Blueprint == nil || len(c.body) > blueprintBodyMax {
		return nil, func() {}
	}

	claim := a.bodies.Claim(c.source.claim.Owner())
	if claim.Resize(int64(blueprintTimes*len(c.body))) != nil {
		return nil, func() {}
	}

	return a.c.Blueprint(c.body), claim.Release
}

// requestID is the caller's own, or derived from its Idempotency-Key, or new.
func (a *API) requestID(c *call, own string) string {
	if own != "" {
		return own
	}
	if header := c.ctx.Request.Header.Peek("Idempotency-Key"); len(header) > 0 {
		return wire.DeriveID(string(header))
	}
	return wire.NewIDAt(a.c.Clock.Tick())
}

func (a *API) trackScore(c *call) error {
	w, err := wire.DecodeScore(c.object)
	if err != nil {
		return err
	}
	return a.track(c, wire.KindScore, w.RequestID, wire.PromptLink{}, "Score recorded.")
}

func (a *API) trackMetadata(c *call) error {
	w, err := wire.DecodeMetadata(c.object)
	if err != nil {
		return err
	}
	return a.track(c, wire.KindMetadata, w.RequestID, wire.PromptLink{}, "Metadata recorded.")
}

func (a *API) trackPrompt(c *call) error {
	w, err := wire.DecodePrompt(c.object)
	if err != nil {
		return err
	}
	return a.track(c, wire.KindPrompt, w.RequestID, w.PromptLink, "Prompt template linked.")
}

func (a *API) trackGroup(c *call) error {
	w, err := wire.DecodeGroup(c.object)
	if err != nil {
		return err
	}
	return a.track(c, wire.KindGroup, w.RequestID, wire.PromptLink{}, "Group recorded.")
}

// createGroup mints a group's id. A group is only the id that its requests share; nothing is stored until one does.
func (a *API) createGroup(c *call) error {
	return c.answer(struct {
		Success bool   `json:"success"`
		Message string `json:"message"`
		ID      string `json:"id"`
	}{true, "Group created.", wire.NewIDAt(a.c.Clock.Tick())}, nil)
}

// track hands one write to the Recorder and answers when it is durable.
func (a *API) track(c *call, kind wire.Kind, requestID string, link wire.PromptLink, message string) error {
	if err := a.trackEvent(c, kind, requestID, link); err != nil {
		return err
	}

	return c.answer(a.tracked(c, requestID, message), nil)
}

// trackEvent hands the call's body to the Recorder, and returns when it is durable.
func (a *API) trackEvent(c *call, kind wire.Kind, requestID string, link wire.PromptLink) error {
	event := a.event(kind, requestID, c.takeBody())
	event.Link = link

	return a.record(c, event)
}

// tracked is the answer to a write that is durable.
func (a *API) tracked(c *call, requestID, message string) trackAnswer {
	if !c.id.Verified {
		message += unverifiedNote
	}

	return trackAnswer{Success: true, Message: message, RequestID: requestID}
}

// unverifiedNote goes with an answer to a key that nobody could judge yet.
const unverifiedNote = " The key is not verified yet: the server could not be asked, and will judge it when the write gets there."

// clockDigits of a clock's id travel in every event: the last ones, which are random.
const clockDigits = 12

// event is a write that is accepted now.
func (a *API) event(kind wire.Kind, requestID string, body []byte) wire.Event {
	at := a.c.Clock.Tick()

	return wire.Event{
		ID: wire.NewIDAt(at), Kind: kind, RequestID: requestID, AcceptedAt: at,
		Sidecar: a.c.Name, Clock: a.c.ClockID[len(a.c.ClockID)-clockDigits:], Body: body,
	}
}

// record makes events durable; its error is what became of the first that was not accepted.
func (a *API) record(c *call, events ...wire.Event) error {
	results, err := a.c.Recorder.Record(c.life, c.id, events)
	if err != nil {
		return err
	}
	a.count(results)
	for _, r := range results {
		switch r.Code {
		case wire.ResultInvalid:
			return wire.Errorf(wire.CodeInvalid, "%s", r.Reason)
		case wire.ResultLater:
			return wire.Unavailable(5*time.Second, "%s", r.Reason)
		}
	}
	return nil
}

// count counts the events that were accepted. One that the recorder knew already was counted when it came first.
func (a *API) count(results []wire.Result) {
	for _, r := range results {
		if r.Code == wire.ResultAccepted {
			a.c.Metrics.Accepted.Inc()
		}
	}
}
