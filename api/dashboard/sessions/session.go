package sessions

import (
	"cmp"
	"net/http"
	"net/url"
	"strconv"

	"promptspool/api/calls"
	"promptspool/api/dashboard/address"
	"promptspool/api/dashboard/conversation"
	"promptspool/api/dashboard/filter"
	"promptspool/api/dashboard/frame"
	"promptspool/api/filterline"
	"promptspool/api/wire"
)

// Bounds of the page of a session.
const (
	turnsPerPage = 25
	turnsBefore  = 10      // that are read before those of a page, to know what was said there
	turnBytes    = 8 << 10 // of the texts of a turn
	turnAddedMax = 12      // messages that a turn shows, the last ones
)

// sessionView is what the page of a session shows.
type sessionView struct {
	row
	User      string // "" if it is unknown
	Turned    []turn
	OwnScores []wire.Score
	Scoring   frame.Scoring

	Previous, Following string // the addresses of the sessions before and after it
	First, Next         string // the addresses of the first page and of the next one; or ""
	OfUser, Traces      string // the addresses of the lists of the user's sessions and of its traces
	Erase               string // the address of the question before it is deleted
}

// turn is a call of a session, with what it added.
type turn struct {
	conversation.Shown
	wire.Record
	Number  int
	Total   float64 // the cost of the session so far
	Again   bool    // it sent nothing new
	Earlier int     // messages that it added before those that are shown
}

// Failed reports whether the call failed.
func (t turn) Failed() bool { return t.Status == "ERROR" }

// sessionPage shows a session as one conversation.
func (p *pages) sessionPage(c *frame.Exchange) error {
	found, err := p.records.Session(c.Context(), c.Identity(), c.PathValue("id"))
	if err != nil {
		return err
	}
	v := sessionView{row: row{Rollup: found.Rollup}, OwnScores: found.OwnScores}
	if way := c.URL.Query().Get("to"); way != "" {
		return p.step(c, v, way)
	}

	if err := p.readTurns(c, &v); err != nil {
		return err
	}
	beside := func(way string) string {
		return address.Of(address.Session(v.ID), url.Values{"to": {way}, "user": {v.User}})
	}
	v.Previous, v.Following = beside("previous"), beside("next")
	v.OfUser = listView{}.SessionsOf(v.User)
	v.Traces = address.Of("/traces", filter.Filter{}.With(filterline.Where("session", "", v.ID)).Values())
	v.Scoring = c.Scoring(scoreRoute, address.Session(v.ID)+"/score", v.OwnScores)
	v.Scoring.Parts = "facts scores"
	v.Erase = address.Of("/requests/delete", url.Values{"session_id": {v.ID}})

	return c.Show(http.StatusOK, "session", frame.Title(v.ID, "Session"), "requests", v)
}

// scoreRoute is the form that scores a session.
const scoreRoute = "POST /sessions/{id}/score"

// setScore scores a session as a whole.
func (p *pages) setScore(c *frame.Exchange) error {
	id := c.PathValue("id")
	return c.SetScore(p.recorder, p.scored, "session_id", id, address.Session(id))
}

// scored reads the scores of a session.
func (p *pages) scored(c *frame.Exchange, _, id string) ([]wire.Score, error) {
	found, err := p.records.Session(c.Context(), c.Identity(), id)
	return found.OwnScores, err
}

// readTurns reads the calls of the page at its cursor, and the last ones before it.
func (p *pages) readTurns(c *frame.Exchange, v *sessionView) error {
	query := c.URL.Query()
	s := v.Calls()
	s.Quick, s.PerPage, s.Cursor = true, turnsPerPage, query.Get("before")
	page, err := p.records.Search(c.Context(), c.Identity(), s)
	if err != nil {
		return err
	}
	rows, known := page.Items, 0
	s.Cursor = query.Get("cursor")
	if s.Cursor != "" {
		v.First = address.Session(v.ID)
		known = min(len(rows), turnsBefore)
		page, err = p.records.Search(c.Context(), c.Identity(), s)
		if err != nil {
			return err
		}
		rows = append(rows[len(rows)-known:], page.Items...)
	}

	number, _ := strconv.Atoi(query.Get("n"))
	total, _ := strconv.ParseFloat(query.Get("total"), 64)
	story, texts := calls.NewStory(), conversation.NewTexts(nil)
	texts.Prose, texts.FoldTools = true, true
	for i, row := range rows {
		r, err := p.records.Request(c.Context(), c.Identity(), row.RequestID)
		if wire.IsCode(err, wire.CodeNotFound) {
			// Deleted meanwhile.
			continue
		}
		if err != nil {
			return err
		}
		call := conversation.Call{Call: calls.Read(r.Content())}
		added := story.Next(&call.Call)
		if i < known {
			continue
		}

		number++
		if r.Price != nil {
			total += *r.Price
		}
		t := turn{Record: r, Number: number, Total: total, Again: len(added) == 0 && len(call.Input) > 0}
		t.Earlier = max(len(added)-turnAddedMax, 0)
		texts.At = "/requests/" + r.RequestID + "/text?"
		texts.Bound(turnBytes)
		texts.Only = append([]int{}, added[t.Earlier:]...)
		t.Shown = texts.Call(call)
		v.Turned = append(v.Turned, t)
		v.User = cmp.Or(v.User, r.UserID)
	}

	if page.NextCursor != nil {
		v.Next = address.Of(address.Session(v.ID), url.Values{
			"before": {s.Cursor},
			"cursor": {*page.NextCursor},
			"n":      {strconv.Itoa(number)},
			"total":  {strconv.FormatFloat(total, 'g', -1, 64)},
		})
	}

	return nil
}

// step leads to the session before or after one, of the same user or, without one, of the project.
// The search takes a while in a large project, so it waits for a click.
func (p *pages) step(c *frame.Exchange, v sessionView, way string) error {
	s := wire.RollupSearch{Of: "sessions", SortBy: "first_seen", SortOrder: "asc", PerPage: listPerPage}
	operator := "gt"
	if way == "previous" {
		operator, s.SortOrder = "lt", "desc"
	}
	s.Having = new(wire.Where("first_seen", operator, v.FirstSeen))
	if user := c.URL.Query().Get("user"); user != "" {
		s.FilterGroup = &wire.Filter{Filters: []wire.Filter{
			wire.Where("user_id", "is", user), wire.Where(filter.ByTime, operator, v.FirstSeen),
		}}
	}
	page, err := p.records.Rollups(c.Context(), c.Identity(), s)
	if err != nil {
		return err
	}
	if len(page.Items) == 0 {
		return c.Redirect(address.Session(v.ID), "no-"+way)
	}

	return c.Redirect(address.Session(page.Items[0].ID), "")
}
