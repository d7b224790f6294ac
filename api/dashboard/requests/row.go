package requests

import (
	"cmp"
	"encoding/base64"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"promptspool/api/dashboard/address"
	"promptspool/api/dashboard/conversation"
	"promptspool/api/dashboard/filter"
	"promptspool/api/dashboard/frame"
	"promptspool/api/dashboard/table"
	"promptspool/api/wire"
	"promptspool/api/words"
)

// requestRow is a request in the list.
type requestRow struct {
	wire.Row
	outcome
	Href   string
	Score  []wire.ScoreValue // of the one that the list shows, by author
	NewDay string            // the row's day, if the row before it is of another one
}

// Cell returns what a column shows of the request.
func (r requestRow) Cell(c filter.Column) filter.Cell { return c.Cell(&r.Row) }

// requestRows returns the rows of a page of the list, and the name of the score that they show.
// n is the number of the first.
func requestRows(f filter.Filter, page wire.SearchPage, n filter.Number) (rows []requestRow, main string) {
	main, sorted := strings.CutPrefix(f.Order.By, wire.ScoreSort)
	if !sorted {
		main = mainScore(page.Items)
	}
	sought := f.Sought()
	for i, item := range page.Items {
		at := filter.Place{ID: item.RequestID, Cursor: page.Start, Row: i, Number: n.Plus(i)}
		row := requestRow{Row: item, outcome: outcome(item.Status), Href: recordAddress(f, at, "")}
		row.showHit(sought)
		for _, s := range item.Scores {
			if s.Name == main {
				row.Score = append(row.Score, s.ScoreValue)
			}
		}
		rows = append(rows, row)
	}

	return rows, main
}

const (
	seenRunes   = 45 // of an excerpt, whatever the width of its column
	beforeRunes = 30 // in front of a hit that is shown instead
)

// showHit makes the row's excerpts show where a search has found something.
func (r *requestRow) showHit(sought []words.Sought) {
	if r.Snippet == nil {
		return
	}
	shown := &r.InputExcerpt
	if r.Snippet.In == "output" {
		shown = &r.OutputExcerpt
	}

	// The beginning says what the text is about, if the hit is in sight there.
	head := words.Head(*shown, seenRunes)
	inSight := func(s words.Sought) bool {
		for range s(head) {
			return true
		}
		return false
	}
	if !slices.ContainsFunc(sought, inSight) {
		text := words.Tail(r.Snippet.Before, beforeRunes) + r.Snippet.Match + r.Snippet.After
		// As in other excerpts, emphasis has no marks.
		*shown = strings.ReplaceAll(text, "**", "")
	}
}

// markDays sets the days of a list by time, in a zone.
func markDays(rows []requestRow, now time.Time, zone *time.Location) {
	last := ""
	for i := range rows {
		at := rows[i].ListTime.In(zone)
		day := at.Format("Monday, January 2")
		if at.Year() != now.In(zone).Year() {
			day += at.Format(", 2006")
		}
		if day != last {
			rows[i].NewDay, last = day, day
		}
	}
}

// filled returns the columns without those that are empty in all rows. A column that the list is
// sorted by stays.
func filled(columns []filter.Column, f filter.Filter, rows []requestRow) []filter.Column {
	isFilled := func(c filter.Column) bool {
		return slices.ContainsFunc(rows, func(r requestRow) bool { return !c.IsEmpty(&r.Row) })
	}

	// Rows without templates are told apart by their models.
	at := columnAt(columns, "template")
	if at >= 0 && !isFilled(columns[at]) && columnAt(columns, "model") < 0 {
		columns[at] = filter.Columns[columnAt(filter.Columns, "model")]
	}

	return slices.DeleteFunc(columns, func(c filter.Column) bool {
		sorted := c.Sort != "" && f.Order.Direction(c.Sort) != ""

		return c.Optional && !sorted && !isFilled(c)
	})
}

// columnAt returns the place of a column; -1 if it is not there.
func columnAt(columns []filter.Column, name string) int {
	return slices.IndexFunc(columns, func(c filter.Column) bool { return c.Name == name })
}

// mainScore returns the name of the score that most rows have, so that as many as possible can be
// compared: a list has section for one.
func mainScore(items []wire.Row) (name string) {
	count := map[string]int{}
	for _, item := range items {
		for _, s := range item.Scores {
			count[s.Name]++
			if count[s.Name] > count[name] || count[s.Name] == count[name] && s.Name < name {
				name = s.Name
			}
		}
	}

	return name
}

// outcome is the status of a call.
type outcome string

// Ended returns how the call ended, in a word.
func (o outcome) Ended() string {
	words := map[outcome]string{"SUCCESS": "succeeded", "ERROR": "failed"}

	return cmp.Or(words[o], string(o))
}

// Failed reports whether the call failed.
func (o outcome) Failed() bool { return o == "ERROR" }

// Class returns the style of how the call ended.
func (o outcome) Class() string {
	styles := map[outcome]string{"SUCCESS": "good", "ERROR": "bad"}

	return cmp.Or(styles[o], "warn")
}

// listView is how a person wants to see lists of requests. The browser keeps it in a
// cookie.
type listView struct {
	Columns []string // names of columns
	Compact bool     // rows are low
}

// listCookie holds a listView, as escaped names with dots between them.
const listCookie = "list"

// listViewKept is how long a browser keeps it after it was last changed.
const listViewKept = 400 * 24 * time.Hour // the most that browsers allow

// readView returns how the reader wants to see this list. Columns in the address win: it
// was sent to show them.
func readView(c *frame.Exchange, f filter.Filter) listView {
	v := listView{Columns: defaultColumns()}
	if cookie, err := c.Cookie(listCookie); err == nil {
		names := strings.Split(cookie.Value, ".")
		for i := range names {
			names[i], _ = url.QueryUnescape(names[i])
		}
		v.Compact = slices.Contains(names, filter.Compact)
		if chosen := filter.ColumnNames(names); chosen != nil {
			v.Columns = chosen
		}
	}
	if f.Columns != nil {
		v.Columns = f.Columns
	}
	v.Compact = v.Compact || f.Density == filter.Compact

	return v
}

// address returns the address of the list of a filter that looks so.
func (v listView) address(f filter.Filter) string {
	f.Columns = v.Columns
	if v.Compact {
		f.Density = filter.Compact
	}

	return f.Requests()
}

// Shows reports whether a list shows a column.
func (v listView) Shows(name string) bool { return slices.Contains(v.Columns, name) }

// rememberView keeps what the form asks for, and shows the list again. Its address has it too, unless it is
// usual, so that others see the same.
func rememberView(c *frame.Exchange) error {
	if key := strings.TrimSpace(c.PostForm.Get("key")); key != "" {
		c.PostForm.Add("col", wire.MetadataColumn+key)
	}
	f := c.Filter(c.PostForm)
	if slices.Equal(f.Columns, defaultColumns()) {
		// A later version shows its own, if they change.
		f.Columns = nil
	}

	var words []string
	for _, name := range append(slices.Clone(f.Columns), f.Density) {
		words = append(words, strings.ReplaceAll(url.QueryEscape(name), ".", "%2E"))
	}
	c.Remember(listCookie, strings.Trim(strings.Join(words, "."), "."), listViewKept)

	return c.Redirect(f.Requests(), "")
}

// defaultColumns returns the names of the columns that are shown unless the reader chose others.
func defaultColumns() (names []string) {
	for _, c := range filter.Columns {
		if c.ByDefault {
			names = append(names, c.Name)
		}
	}

	return names
}

// headings returns those of a list: of the first column, and of the shown ones. main names the score
// that its rows show.
func headings(f filter.Filter, shown []filter.Column, main string) (all []table.Heading) {
	started := filter.Column{Text: "Started", Sort: filter.ByTime}
	for _, c := range append([]filter.Column{started}, shown...) {
		h := table.Heading{Text: c.Text, Number: c.Number}
		if c.Name == "score" {
			h.Text, c.Sort = main, wire.ScoreSort+main
		}
		if c.Sort != "" {
			h.Href, h.Sorted = f.Sorted("/requests", c.Sort)
		}
		all = append(all, h)
	}

	return all
}

// sentView is the value of the address's view in which texts are as they were sent.
const sentView = "sent"

// recordTexts returns the texts of a record's page.
func recordTexts(c *frame.Exchange, f filter.Filter, r wire.Record) *conversation.Texts {
	t := conversation.NewTexts(nil)
	// The values of the variables are marked in the prompt, and what was searched for anywhere.
	if r.Prompt != nil {
		t = conversation.NewTexts(r.Prompt.InputVariables)
	}
	sought := f.Sought()
	t.Mark(sought)
	t.Prose = true
	t.AsSent = c.URL.Query().Get("view") == sentView

	q := url.Values{}
	if len(sought) > 0 {
		q.Set("filter", f.Text)
	}
	if t.AsSent {
		q.Set("view", sentView)
	}
	t.At = "/requests/" + r.RequestID + "/text?" + q.Encode()

	return t
}

// toggled returns the address of a page with its texts the other way: laid out, or as sent.
func toggled(page *url.URL) string {
	if page.Query().Get("view") == sentView {
		return withParameter(page, "view", "")
	}

	return withParameter(page, "view", sentView)
}

// withParameter returns the address of a page with another value of a parameter; "" is none.
func withParameter(page *url.URL, name, value string) string {
	q := page.Query()
	address.Set(q, name, value)
	q.Del("done")

	return address.Of(page.Path, q)
}

// keepPlace adds to a query the record's place in its list, and whether another query shows it as sent.
func keepPlace(to, from url.Values) url.Values {
	maps.Copy(to, address.Some(from, "cursor", "row", "n", "of", "view"))

	return to
}

// recordText answers with one text of a record: with all of it as it is, or, for the
// page's script, with what replaces a folded one in the page.
func (p *pages) recordText(c *frame.Exchange) error {
	r, err := p.records.Request(c.Context(), c.Identity(), c.PathValue("id"))
	if err != nil {
		return err
	}

	q := c.URL.Query()
	request := r.Content()

	var text string
	var prose, ok bool
	of := q.Get("of")
	again := logReplay(c.Base(), request)
	language, isProvider := strings.CutPrefix(of, "provider-")
	if isProvider {
		again = providerReplay(r)
	}
	switch {
	case isProvider || programs.Lookup(of) != nil:
		text, ok = again.program(language)
	case of == "variables":
		if r.Prompt != nil {
			text, ok = string(r.Prompt.InputVariables), true
		}
	default:
		read := conversation.Read(request)
		if image := read.Picture(of); image != "" {
			return sendImage(c, image)
		}
		text, prose, ok = read.Find(of)
	}
	if !ok {
		return errNoText
	}

	// The script shows longer texts by itself, which takes only the reader's time.
	if q.Get("as") != "html" || len(text) > conversation.WholeTextMax {
		return c.Send("text/plain; charset=utf-8", text)
	}

	return c.Part("record", "body", recordTexts(c, c.Filter(q), r).ShowWhole(text, prose))
}

// sendImage answers with an image that its reader has checked: PNG, JPEG, GIF or WebP as a data: URL.
func sendImage(c *frame.Exchange, image string) error {
	kind, data, _ := strings.Cut(strings.TrimPrefix(image, "data:"), ";base64,")
	// The padding is optional there.
	raw, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(data, "="))
	if err != nil {
		return errNoText
	}

	// The browser makes a page of it, with its own styles.
	c.W.Header().Set("Content-Security-Policy",
		"default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; sandbox")

	return c.Send(kind, string(raw))
}

// errNoText answers for a text that a record does not have.
var errNoText = wire.Errorf(wire.CodeNotFound, "This request has no such text.")
