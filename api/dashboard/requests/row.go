package requests

import (
	"cmp"
	"slices"

	"promptspool/api/dashboard/filter"
	"promptspool/api/wire"
)

// requestRow is a request in the list.
type requestRow struct {
	wire.Row
	outcome
	Href  string
	Score *wire.Score // the one that the list shows; nil if the request has none of it
}

// requestRows returns the rows of a page of the list, and the name of the score that they show.
func requestRows(f filter.Filter, page wire.SearchPage) (rows []requestRow, main string) {
	main = mainScore(page.Items)
	for i, item := range page.Items {
		at := listPlace{item.RequestID, page.Start, i}
		row := requestRow{Row: item, outcome: outcome(item.Status), Href: recordAddress(f, at, "")}
		if at := slices.IndexFunc(item.Scores, func(s wire.Score) bool { return s.Name == main }); at >= 0 {
			row.Score = &item.Scores[at]
		}
		rows = append(rows, row)
	}

	return rows, main
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
