package review

import (
	"promptspool/api/dashboard/address"
	"promptspool/api/dashboard/frame"
	"promptspool/api/wire"
)

// judge does what the form of a screen asks for, and shows the next screen.
func (p *pages) judge(c *frame.Exchange) error {
	q, err := p.queue(c, c.PostForm)
	if err != nil {
		return err
	}

	call := c.PostForm.Get("call")
	switch c.PostForm.Get("do") {
	case "undo":
		return p.undo(c, q)
	case "skip":
	default:
		// An event for a request that does not exist, or is another project's, would be accepted
		// and wait for that request.
		r, err := p.records.Request(c.Context(), c.Identity(), call)
		if err != nil {
			return err
		}
		if err := p.save(c, q, &r, false); err != nil {
			return err
		}
		q.saved++
	}
	q.trail = append(q.trail, call)

	return c.Redirect(address.Of("/review", q.at()), "")
}

// undo takes back the scores of the call before, and shows that call with them.
func (p *pages) undo(c *frame.Exchange, q *queue) error {
	last := len(q.trail) - 1
	if last < 0 {
		return wire.Errorf(wire.CodeInvalid, "There is no call before this one.")
	}
	call := q.trail[last]
	q.trail = q.trail[:last]
	r, err := p.records.Request(c.Context(), c.Identity(), call)
	if err != nil {
		return err
	}

	if q.takeFrom(&r, c.User.Email) {
		q.saved--
		if err := p.save(c, q, &r, true); err != nil {
			return err
		}
	}

	return p.screen(c, q, call, true)
}

// save gives a call that exists the scores of the queue in the reviewer's name, or takes them back.
func (p *pages) save(c *frame.Exchange, q *queue, r *wire.Record, back bool) error {
	var bodies []map[string]any
	for _, s := range q.Scores {
		body := map[string]any{
			"request_id": r.RequestID, "name": s.Name, "author": c.User.Email, "source": "human", "value": nil,
		}
		member := "value"
		if s.whole {
			member = "score"
		}
		if !back {
			if s.Given == "" {
				return wire.Invalid(wire.FieldError{Field: s.Name, Reason: "must be " + s.Expected()})
			}
			body["reason"], body[member] = q.Reason, frame.Typed(s.Given, &s.ScoreDefinition)
		}
		bodies = append(bodies, body)
	}

	return c.RecordScores(p.recorder, r.Scores, bodies...)
}
