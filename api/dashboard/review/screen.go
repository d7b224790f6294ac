package review

import (
	"net/http"
	"net/url"

	"promptspool/api/dashboard/address"
	"promptspool/api/dashboard/conversation"
	"promptspool/api/dashboard/frame"
	"promptspool/api/wire"
)

// screenView is what a screen shows.
type screenView struct {
	conversation.Shown
	*queue
	Record wire.Record // without an id at the end of the queue
	Reason string
	Fields []frame.Field // that the form sends along
	Undo   bool          // there is a call before

	Done, Total int
	More        bool // there are more than Total

	Back    string // the address of the list, or of the queues
	Renew   string // that of this screen, which keeps the call the reviewer's
	Further string // where a search that was stopped continues; or ""
	Restart string // the beginning of the queue
}

// Left returns how many calls of the list are not done.
func (v screenView) Left() int { return v.Total - v.Done }

// next shows the next call of a queue, or the one that the address names.
func (p *pages) next(c *frame.Exchange) error {
	query := c.URL.Query()
	q, err := p.queue(c, query)
	if err != nil {
		return err
	}

	return p.screen(c, &q, readSitting(query), query.Get("call"), nil)
}

// again shows a form again that came after the end of its session.
func (p *pages) again(c *frame.Exchange) error {
	q, err := p.queue(c, c.PostForm)
	if err != nil {
		return err
	}
	a := answered(c.PostForm)

	return p.screen(c, &q, readSitting(c.PostForm), c.PostForm.Get("call"), &a)
}

// screen shows a call; "" is the next one. Its form has the answer, or else what the call has from the reviewer.
func (p *pages) screen(c *frame.Exchange, q *queue, s sitting, call string, a *answer) error {
	f, err := p.find(c, q, &s)
	if err != nil {
		return err
	}
	next := s.from // after a call that was named comes the one that would be here without it
	if call != "" {
		_, err = p.queues.Claim(c.Context(), c.User.AccountID, c.User.Email, []string{call})
	} else {
		call, next = f.call, f.at
	}
	if err != nil {
		return err
	}

	v := screenView{queue: q, Undo: len(s.trail) > 0, More: f.more, Back: "/scores"}
	v.Done = max(f.done, s.saved) // a score may take its call from the list
	v.Total = f.total - f.done + v.Done
	v.Restart = address.Of("/review", q.values)
	if q.Name == "" {
		v.Back = q.Filter.Requests()
	}
	if f.stopped {
		v.Further = address.Of("/review", q.at(sitting{f.at, s.trail, s.saved}))
	}

	at := q.at(s)
	if call != "" {
		if v.Record, err = p.records.Request(c.Context(), c.Identity(), call); err != nil {
			return err
		}
		if a == nil {
			said := answerOf(&v.Record, q, c.User.Email)
			a = &said
		}
		v.Reason = a.reason
		for i := range q.Scores {
			q.Scores[i].Given, q.Scores[i].First = a.values[q.Scores[i].Name], i == 0
		}
		v.Shown = texts(q, &v.Record).Call(conversation.Read(v.Record.Content()))
		at.Set("call", call)
		v.Renew = address.Of("/review", at)
		at.Set("next", next.String())
	}
	at.Set("session", c.FormSession())
	for name := range at {
		v.Fields = append(v.Fields, frame.Field{Name: name, Value: at.Get(name)})
	}

	return c.Show(http.StatusOK, "screen", frame.Title(q.Name, "Review"), "requests", v)
}

// texts returns the texts of a call, in which what the queue looks for is marked.
func texts(q *queue, r *wire.Record) *conversation.Texts {
	t := conversation.NewTexts(nil)
	t.Prose = true
	t.Mark(q.Filter.Words())
	t.At = "/requests/" + r.RequestID + "/text?" + url.Values{"filter": {q.Filter.Text}}.Encode()

	return t
}
