package review

import (
	"net/url"
	"strings"

	"promptspool/api/dashboard/address"
	"promptspool/api/dashboard/frame"
	"promptspool/api/wire"
)

// answer is a reviewer's opinion of a call.
type answer struct {
	values map[string]string // by the names of scores
	reason string
}

// answered reads the answer in a form.
func answered(form url.Values) answer {
	a := answer{map[string]string{}, strings.TrimSpace(form.Get("reason"))}
	for name := range form {
		if score, ok := strings.CutPrefix(name, scorePrefix); ok {
			a.values[score] = form.Get(name)
		}
	}

	return a
}

// answerOf returns the answer that a call has from a reviewer.
func answerOf(r *wire.Record, q *queue, reviewer string) answer {
	a := answer{values: map[string]string{}}
	for _, s := range r.Scores {
		if s.Author == reviewer && q.asks(s.Name) {
			a.values[s.Name], a.reason = s.ScoreValue.String(), s.Reason()
		}
	}

	return a
}

// scorePrefix is in front of a score's name in a form.
const scorePrefix = "score:"

// judge does what the form of a screen asks for, and shows the next screen.
func (p *pages) judge(c *frame.Exchange) error {
	q, err := p.queue(c, c.PostForm)
	if err != nil {
		return err
	}

	s, call := readSitting(c.PostForm), c.PostForm.Get("call")
	switch c.PostForm.Get("do") {
	case "undo":
		return p.undo(c, &q, s)
	case "skip":
	default:
		if err := p.save(c, &q, call, answered(c.PostForm)); err != nil {
			return err
		}
		s.saved++
	}
	s.from, s.trail = readPlace(c.PostForm.Get("next")), append(s.trail, call)

	return c.Redirect(address.Of("/review", q.at(s)), "")
}

// undo takes back the answer to the call before, and shows that call with it.
func (p *pages) undo(c *frame.Exchange, q *queue, s sitting) error {
	call := s.back()
	r, err := p.records.Request(c.Context(), c.Identity(), call)
	if err != nil {
		return err
	}

	a := answerOf(&r, q, c.User.Email)
	if len(a.values) > 0 {
		s.saved--
		if err := p.save(c, q, call, answer{}); err != nil {
			return err
		}
	}
	s.from.past = "" // what was skipped and undone comes again; the trail has what was not undone

	return p.screen(c, q, s, call, &a)
}

// save gives a call the scores of the queue in the reviewer's name. Without values they are taken back.
func (p *pages) save(c *frame.Exchange, q *queue, call string, a answer) error {
	// An event for a request that does not exist, or is another project's, would be accepted
	// and wait for that request.
	if _, err := p.records.Request(c.Context(), c.Identity(), call); err != nil {
		return err
	}

	var bodies []map[string]any
	for _, asked := range q.Scores {
		if a.values != nil && a.values[asked.Name] == "" {
			return wire.Invalid(wire.FieldError{Field: asked.Name, Reason: "is missing"})
		}
		body := map[string]any{"request_id": call, "author": c.User.Email, "source": "human"}
		if a.reason != "" {
			body["reason"] = a.reason
		}
		if err := asked.body(a.values[asked.Name], body); err != nil {
			return err
		}
		bodies = append(bodies, body)
	}

	return c.RecordScores(p.recorder, bodies...)
}
