package requests

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"promptspool/api/dashboard/conversation"
	"promptspool/api/dashboard/filter"
	"promptspool/api/dashboard/frame"
	"promptspool/api/wire"
)

// requestRow is a request in the list.
type requestRow struct {
	wire.Row
	outcome
	Href   string
	Score  []wire.ScoreValue // of the one that the list shows, by author
	NewDay string            // the row's day, if the row before it is of another one
}

// requestRows returns the rows of a page of the list, and the name of the score that they show.
// n is the number of the first.
func requestRows(f filter.Filter, page wire.SearchPage, n rowNumber) (rows []requestRow, main string) {
	main, sorted := strings.CutPrefix(f.Order.By, wire.ScoreSort)
	if !sorted {
		main = mainScore(page.Items)
	}
	for i, item := range page.Items {
		at := listPlace{item.RequestID, page.Start, i, n.plus(i)}
		row := requestRow{Row: item, outcome: outcome(item.Status), Href: recordAddress(f, at, "")}
		for _, s := range item.Scores {
			if s.Name == main {
				row.Score = append(row.Score, s.ScoreValue)
			}
		}
		rows = append(rows, row)
	}

	return rows, main
}

// hitsTimeMax bounds the reading of texts for the excerpts of a search: a page is complete without them.
const hitsTimeMax = 150 * time.Millisecond

// showHits makes excerpts show what the filter looks for in prompts and responses, as far as time allows.
func (p *pages) showHits(c *frame.Exchange, f filter.Filter, rows []requestRow) {
	ctx, cancel := context.WithTimeout(c.Context(), hitsTimeMax)
	defer cancel()
	for i := range rows {
		row := &rows[i]
		var call *conversation.Call // read once, if a word is not in the excerpts
		for _, word := range f.Words() {
			in, out := conversation.Around(row.InputExcerpt, word), conversation.Around(row.OutputExcerpt, word)
			if in == "" && out == "" && call == nil && ctx.Err() == nil {
				if r, err := p.records.Request(ctx, c.Identity(), row.RequestID); err == nil {
					read := conversation.Read(r.Content())
					call = &read
				}
			}
			if in == "" && out == "" && call != nil {
				in, out = call.Around(word)
			}
			row.InputExcerpt, row.OutputExcerpt = cmp.Or(in, row.InputExcerpt), cmp.Or(out, row.OutputExcerpt)
		}
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

// without are columns that may be empty, and how to see that a row has nothing there.
var without = map[string]func(r *requestRow) bool{
	"template": func(r *requestRow) bool { return r.PromptName == nil },
	"model":    func(r *requestRow) bool { return r.Engine == "" },
	"provider": func(r *requestRow) bool { return r.Provider == "" },
	"tokens":   func(r *requestRow) bool { return r.InputTokens == nil && r.OutputTokens == nil },
	"cost":     func(r *requestRow) bool { return r.Price == nil },
	"score":    func(r *requestRow) bool { return len(r.Score) == 0 },
	"scores":   func(r *requestRow) bool { return len(r.Scores) == 0 },
	"tags":     func(r *requestRow) bool { return len(r.Tags) == 0 },
	"metadata": func(r *requestRow) bool { return len(r.Metadata) == 0 },
	"tools":    func(r *requestRow) bool { return len(r.ToolNames) == 0 },
	"finish":   func(r *requestRow) bool { return r.FinishReason == "" },
	"function": func(r *requestRow) bool { return r.FunctionName == "" },
	"groups":   func(r *requestRow) bool { return len(r.GroupIDs) == 0 },
}

// filled returns the columns without those that are empty in all rows. A column that the list is
// sorted by stays.
func filled(columns []filter.Column, f filter.Filter, rows []requestRow) []filter.Column {
	return slices.DeleteFunc(columns, func(c filter.Column) bool {
		isEmpty := without[c.Name]
		sorted := c.Sort != "" && f.Order.Direction(c.Sort) != ""
		return isEmpty != nil && !sorted &&
			!slices.ContainsFunc(rows, func(r requestRow) bool { return !isEmpty(&r) })
	})
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
