// Package sessions has the dashboard's pages of what calls add up to: the lists of traces, sessions and
// users, and a session as one conversation. The page of a trace is one of package requests.
package sessions

import (
	"cmp"
	"context"
	"embed"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"promptspool/api/calls"
	"promptspool/api/dashboard/address"
	"promptspool/api/dashboard/conversation"
	"promptspool/api/dashboard/filter"
	"promptspool/api/dashboard/frame"
	"promptspool/api/dashboard/number"
	"promptspool/api/dashboard/table"
	"promptspool/api/filterline"
	"promptspool/api/wire"
)

const listPerPage = 50

// listView is what a list shows.
type listView struct {
	filter.Form
	wire.RollupPage
	One    string // what a row is, such as session
	Title  string // what it lists, such as Sessions
	Rows   []row
	Next   string // the address of the next page; "" on the last one
	First  string // the address of the first page; "" on that page
	Export string // that of the whole list as a file, to be ended with csv or jsonl
}

// row is a session, a trace or a user.
type row struct {
	wire.Rollup
	Href          string // of its page
	Input, Output string // what its first call was asked, and what its last one answered; "" if unknown
}

// Duration returns the time from the first call to the last.
func (r row) Duration() string { return number.Span(r.LastSeen.Sub(r.FirstSeen)) }

// list shows the list at its path, or saves it as a file.
func (p *pages) list(c *frame.Exchange) error {
	query := c.URL.Query()
	f := c.Filter(query).OfRollups(query)
	v := listView{Form: filter.NewForm(c.URL.Path, f)}
	v.One = strings.TrimSuffix(v.Noun(), "s")
	v.Title = strings.ToUpper(v.One[:1]) + v.Noun()[1:]
	search, err := f.Rollups(v.Noun())
	search.PerPage, search.Cursor = listPerPage, query.Get("cursor")
	if err == nil && query.Has("format") {
		return p.export(c, f, search)
	}
	if at := filter.ReadPlace(query.Get("id"), query); err == nil && at.ID != "" {
		return p.step(c, v, search, at)
	}

	if err == nil {
		v.RollupPage, err = p.records.Rollups(c.Context(), c.Identity(), search)
	}
	// A filter that makes no sense is shown in its form, where it can be corrected.
	if e := wire.AsError(err); err != nil && e.Code == wire.CodeInvalid {
		v.Reject(e)
		return c.Show(e.Status(), "list", f.Title(v.Title), "requests", v)
	}
	if err != nil {
		return err
	}

	n := filter.ReadNumber(query)
	if v.Complete && n.At == 1 {
		n.Of = v.Total
	}
	for i, item := range v.Items {
		at := filter.Place{ID: item.ID, Cursor: search.Cursor, Row: i, Number: n.Plus(i)}
		v.Rows = append(v.Rows, row{Rollup: item, Href: v.open(at)})
	}

	if v.One != "user" {
		p.readTexts(c, v)
	}

	here := address.Of(v.Path, f.Values())
	v.Export = address.With(here, "format", "")
	if v.NextCursor != nil {
		next := f.Values()
		next.Set("cursor", *v.NextCursor)
		n.Plus(len(v.Items)).Set(next)
		v.Next = address.Of(v.Path, next)
	}
	if search.Cursor != "" {
		v.First = here
	}

	return c.Show(http.StatusOK, "list", f.Title(v.Title), "requests", v)
}

// Bounds of the reading of the texts of a page's rows.
const (
	textsTimeMax = 100 * time.Millisecond // the page is of use without them
	textsWithin  = 10 * time.Minute       // of its first and of its last moment, a row's calls are looked for
	textsTurns   = 200                    // that are read at once
)

// readTexts reads the texts of the rows, as many as there is time for.
func (p *pages) readTexts(c *frame.Exchange, v listView) {
	first, last := make([]*row, len(v.Rows)), make([]*row, len(v.Rows))
	for i := range v.Rows {
		first[i], last[i] = &v.Rows[i], &v.Rows[i]
	}
	slices.SortStableFunc(first, func(a, b *row) int { return a.FirstSeen.Compare(b.FirstSeen) })
	slices.SortStableFunc(last, func(a, b *row) int { return b.LastSeen.Compare(a.LastSeen) })

	end := time.Now().Add(textsTimeMax)
	var readers sync.WaitGroup
	readers.Go(func() {
		for len(first) > 0 && time.Now().Before(end) {
			from := first[0].FirstSeen
			first = p.readCalls(c, v.One, first, from, from.Add(2*textsWithin), "asc")
		}
	})
	readers.Go(func() {
		for len(last) > 0 && time.Now().Before(end) {
			// Lists are to the millisecond.
			to := last[0].LastSeen.Add(time.Millisecond)
			last = p.readCalls(c, v.One, last, to.Add(-2*textsWithin), to, "desc")
		}
	})
	readers.Wait()
}

// readCalls reads the text of the first call that comes in an order of each row that begins, or ends, in the
// first half of a time. It returns the rows that are still to be read.
func (p *pages) readCalls(c *frame.Exchange, one string, rows []*row, from, to time.Time, order string) []*row {
	isFirst := order == "asc"
	near := slices.IndexFunc(rows, func(r *row) bool {
		if isFirst {
			return r.FirstSeen.After(from.Add(textsWithin))
		}
		return r.LastSeen.Before(to.Add(-textsWithin))
	})
	if near < 0 {
		near = len(rows)
	}
	var ids []string
	for _, r := range rows[:near] {
		ids = append(ids, r.ID)
	}
	page, _ := p.records.Search(c.Context(), c.Identity(), wire.Search{
		FilterGroup: &wire.Filter{Filters: []wire.Filter{
			wire.Where(one+"_id", "in", ids),
			wire.Where(filter.ByTime, "gte", from), wire.Where(filter.ByTime, "lte", to),
		}},
		SortBy:    filter.ByTime,
		SortOrder: order,
		PerPage:   textsTurns,
	})

	var left []*row
	for _, r := range rows[:near] {
		i := slices.IndexFunc(page.Items, func(call wire.Row) bool {
			return one == "trace" && call.TraceID == r.ID || one == "session" && call.SessionID == r.ID
		})
		switch {
		case i >= 0 && isFirst:
			r.Input = page.Items[i].InputExcerpt
		case i >= 0:
			r.Output = page.Items[i].OutputExcerpt
		case len(page.Items) == textsTurns:
			// The calls of others have filled the page.
			left = append(left, r)
		}
	}

	return append(left, rows[near:]...)
}

// Excerpt returns an excerpt in which what the filter looks for is marked.
func (v listView) Excerpt(text string) template.HTML {
	return conversation.Excerpt(text, v.Filter.Sought())
}

// Scored reports whether a row has a score.
func (v listView) Scored() bool {
	return slices.ContainsFunc(v.Rows, func(r row) bool { return r.MeanScore != nil })
}

// open returns the address of a row's page, which leads back to the list.
func (v listView) open(at filter.Place) string {
	if v.One == "user" {
		return v.SessionsOf(at.ID)
	}
	return openedFrom(v.Path+"/"+url.PathEscape(at.ID), v.Filter.At(at).Encode())
}

// step leads to the page of the row beside one.
func (p *pages) step(c *frame.Exchange, v listView, s wire.RollupSearch, at filter.Place) error {
	s.PerPage = min(max(at.Row+2, listPerPage), wire.PageItemsMax)
	page, err := p.records.Rollups(c.Context(), c.Identity(), s)
	if err != nil {
		return err
	}

	return c.Step(at, len(page.Items), func(i int) string { return page.Items[i].ID }, v.open)
}

// Heading returns the heading of a column of numbers, which sorts by a field.
func (v listView) Heading(field, text string) table.Heading {
	h := table.Heading{Text: text, Number: true}
	h.Href, h.Sorted = v.Filter.Sorted(v.Path, field)

	return h
}

// reviewMax bounds what the ids of the rows take of an address.
const reviewMax = 4 << 10

// Review returns the address where the calls of the rows are scored, one after another.
func (v listView) Review() string {
	of := filterline.Where(v.One, "", "")
	of.Values = nil
	size := 0
	for _, r := range v.Rows {
		size += len(url.QueryEscape(r.ID))
		if size <= reviewMax {
			of.Values = append(of.Values, filterline.Value{Text: r.ID, Quoted: true})
		}
	}

	return address.Of("/review", filter.Filter{}.With(of).Values())
}

// SessionsOf returns the address of the sessions of a user.
func (v listView) SessionsOf(user string) string {
	return address.Of("/sessions", filter.Filter{}.With(filterline.Where("user", "", user)).Values())
}

// exportPerPage is the size of the pages of an export, for each of which all names are read.
const exportPerPage = 10_000

// exportForms are the formats in which a list can be saved.
var exportForms = map[string]struct {
	mediaType, heading string
	write              func(w io.Writer, r *wire.Rollup) error
}{
	"csv":   {"text/csv; charset=utf-8", csvHeading, writeCSV},
	"jsonl": {"application/x-ndjson", "", writeJSON},
}

const csvHeading = "id,first_seen,last_seen,turns,spans,cost_usd,input_tokens,output_tokens,errors,scores,mean_score\n"

func writeJSON(w io.Writer, r *wire.Rollup) error { return json.NewEncoder(w).Encode(r) }

func writeCSV(w io.Writer, r *wire.Rollup) error {
	const layout = time.RFC3339Nano
	facts := fmt.Sprintf("%s %s %d %d %.9f %d %d %d %d", r.FirstSeen.Format(layout), r.LastSeen.Format(layout),
		r.Turns, r.Spans, r.Cost, r.InputTokens, r.OutputTokens, r.Errors, r.Scores)
	line := append([]string{wire.CSVCell(r.ID)}, strings.Fields(facts)...)

	return csv.NewWriter(w).WriteAll([][]string{append(line, r.Score())})
}

// export answers with all pages of a list, in one of the forms.
func (p *pages) export(c *frame.Exchange, f filter.Filter, s wire.RollupSearch) error {
	id, format := c.Identity(), c.URL.Query().Get("format")
	form, ok := exportForms[format]
	if !ok {
		return wire.Invalid(wire.FieldError{Field: "format", Reason: "must be csv or jsonl"})
	}
	// A fault can be answered only before the first line is sent.
	s.PerPage = exportPerPage
	page, err := p.records.Rollups(c.Context(), id, s)
	if err != nil {
		return err
	}
	if err := c.Note(c.Context(), "export "+s.Of, format, wire.AuditFilter(f.Text)); err != nil {
		return err
	}

	return c.SendFile(f.FileName(s.Of, "."+format), form.mediaType, func(ctx context.Context, w io.Writer) error {
		_, err := io.WriteString(w, form.heading)
		// A later page of a part may have older calls of the same session.
		written := make(map[string]bool)
		for err == nil {
			for _, r := range page.Items {
				if written[r.ID] {
					continue
				}
				if err := form.write(w, &r); err != nil {
					return err
				}
				if !page.Complete {
					written[r.ID] = true
				}
			}
			if page.NextCursor == nil {
				return nil
			}
			s.Cursor = *page.NextCursor
			page, err = p.records.Rollups(ctx, id, s)
		}
		return err
	})
}

// pages are the pages of sessions.
type pages struct {
	records  wire.Archive
	recorder wire.Recorder
}

//go:embed *.html
var html embed.FS

// Pages returns the pages of sessions.
func Pages(records wire.Archive, recorder wire.Recorder) frame.Section {
	p := &pages{records, recorder}

	return frame.Section{
		HTML: html,
		Routes: []frame.Route{
			{Pattern: "GET /traces", Page: p.list},
			{Pattern: "GET /sessions", Page: p.list},
			{Pattern: "GET /sessions/{id}", Page: p.sessionPage},
			{Pattern: scoreRoute, Page: p.setScore, Review: frame.ReviewScore},
			{Pattern: "GET /users", Page: p.list},
		},
	}
}

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

	Trail          filter.Trail
	First, Next    string // the addresses of the first page and of the next one; or ""
	OfUser, Traces string // the addresses of the lists of the user's sessions and of its traces
	Erase          string // the address of the question before it is deleted
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
	opened := c.URL.Query().Get(filter.OpenedFrom)
	v.Href = openedFrom(address.Session(v.ID), opened)
	v.Trail = c.Walk("Sessions", "/sessions", v.ID, c.URL.Query())
	if err := p.readTurns(c, &v); err != nil {
		return err
	}
	v.OfUser = listView{}.SessionsOf(v.User)
	v.Traces = address.Of("/traces", filter.Filter{}.With(filterline.Where("session", "", v.ID)).Values())
	v.Scoring = c.Scoring(scoreRoute, address.Session(v.ID)+"/score", v.OwnScores,
		frame.Field{Name: filter.OpenedFrom, Value: opened})
	v.Scoring.Parts = "facts scores"
	v.Erase = address.Of("/requests/delete", url.Values{"session_id": {v.ID}})

	return c.Show(http.StatusOK, "session", frame.Title(v.ID, "Session"), "requests", v)
}

// openedFrom returns the address of a page that was opened from a list; "" is none.
func openedFrom(page, list string) string {
	if list == "" {
		return page
	}
	return address.With(page, filter.OpenedFrom, list)
}

// scoreRoute is the form that scores a session.
const scoreRoute = "POST /sessions/{id}/score"

// setScore scores a session as a whole.
func (p *pages) setScore(c *frame.Exchange) error {
	id := c.PathValue("id")
	to := openedFrom(address.Session(id), c.PostForm.Get(filter.OpenedFrom))

	return c.SetScore(p.recorder, p.scored, "session_id", id, to)
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
		v.First = v.Href
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
		total += wire.OrZero(r.Price)
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

			filter.OpenedFrom: {query.Get(filter.OpenedFrom)},
		})
	}

	return nil
}
