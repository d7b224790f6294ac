// Package review has the dashboard's page on which people score calls one after another: a call, the
// scores to give beside it, and the next call.
//
// # Files
//
//	pages.go    the table of pages
//	queue.go    which calls, and which of them is next; the scores to give, and the keys for them
//	screen.go   the page: a call with its form, and what that does: saving, skipping, undoing
package review

import (
	"context"
	"embed"
	"net/http"
	"net/url"

	"promptspool/api/dashboard/address"
	"promptspool/api/dashboard/conversation"
	"promptspool/api/dashboard/filter"
	"promptspool/api/dashboard/frame"
	"promptspool/api/wire"
)

// screenView is what a screen shows.
type screenView struct {
	conversation.Shown
	*queue
	progress
	Record wire.Record   // without an id at the end of the queue
	Fields []frame.Field // that the form sends along
	Undo   bool          // there is a call before
	Back   string        // the address of the list, or of the queues
	Here   string        // that of this screen, which keeps the call the reviewer's
	Start  string        // the beginning of the queue
}

// next shows the next call of a queue, or the one that the address names.
func (p *pages) next(c *frame.Exchange) error {
	q, err := p.queue(c, c.URL.Query())
	if err != nil {
		return err
	}

	return p.screen(c, q, c.URL.Query().Get("call"), false)
}

// again shows a form again that came after the end of its session.
func (p *pages) again(c *frame.Exchange) error {
	q, err := p.queue(c, c.PostForm)
	if err != nil {
		return err
	}

	return p.screen(c, q, c.PostForm.Get("call"), true)
}

// screen shows a call; "" is the next one. If it was answered, the queue has what is in its form.
func (p *pages) screen(c *frame.Exchange, q *queue, call string, answered bool) error {
	v := screenView{queue: q, Undo: len(q.trail) > 0, Back: "/scores", Start: address.Of("/review", q.values)}
	nav := "scores"
	if q.Name == "" {
		nav, v.Back = "requests", q.Filter.Requests()
	}
	var err error
	v.progress, err = p.find(c, q)
	if err != nil {
		return err
	}
	left := v.Left()
	// A score may take its call from the list.
	v.Done = max(v.Done, q.saved)
	v.Total = left + v.Done

	at := q.at()
	if call != "" {
		_, err = p.queues.Claim(c.Context(), c.User.AccountID, c.User.Email, []string{call})
	} else {
		call = v.call
	}
	if call != "" && err == nil {
		v.Record, err = p.records.Request(c.Context(), c.Identity(), call)
	}
	if err != nil {
		return err
	}

	if call != "" {
		if !answered {
			q.takeFrom(&v.Record, c.User.Email)
		}
		t := conversation.NewTexts(nil)
		t.Prose = true
		t.Mark(q.Filter.Sought())
		t.At = "/requests/" + call + "/text?" + url.Values{"filter": {q.Filter.Text}}.Encode()
		v.Shown = t.Call(conversation.Read(v.Record.Content()))
		at.Set("call", call)
		v.Here = address.Of("/review", at)
	}
	at.Set("session", c.FormSession())
	for name := range at {
		v.Fields = append(v.Fields, frame.Field{Name: name, Value: at.Get(name)})
	}

	return c.Show(http.StatusOK, "screen", frame.Title(q.Name, "Review"), nav, v)
}

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

// Records finds and reads calls.
type Records interface {
	filter.Searcher
	Request(ctx context.Context, id wire.Identity, requestID string) (wire.Record, error)
}

// Queues knows what the project has said about reviews.
type Queues interface {
	ScoreDefinitions(ctx context.Context, id wire.Identity) (wire.ScoreDefinitions, error)
	ReviewQueues(ctx context.Context, id wire.Identity) ([]wire.ReviewQueue, error)

	// Claim returns the first of some calls that no other reviewer looks at; "" if there is none. It is
	// the reviewer's for two minutes.
	Claim(ctx context.Context, account, reviewer string, calls []string) (call string, err error)
}

// pages are the pages of reviews.
type pages struct {
	records  Records
	recorder frame.Recorder
	queues   Queues
}

//go:embed *.html
var html embed.FS

// Pages returns the pages of reviews.
func Pages(records Records, recorder frame.Recorder, queues Queues) frame.Section {
	p := &pages{records, recorder, queues}

	return frame.Section{
		HTML: html,
		Routes: []frame.Route{
			{Pattern: "GET /review", Page: p.next},
			{Pattern: "POST /review", Page: p.judge, Review: p.again},
			{Pattern: "GET /review/{name}", Page: openQueue},
		},
	}
}
