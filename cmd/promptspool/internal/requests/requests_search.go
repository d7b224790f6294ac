package requests

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/dustin/go-humanize"
	"github.com/urfave/cli/v2"

	"promptspool/api/dashboard/number"
	"promptspool/api/filterline"
	"promptspool/api/wire"
	"promptspool/api/words"
	"promptspool/cmd/promptspool/internal/config"
	"promptspool/cmd/promptspool/internal/filter"
	"promptspool/cmd/promptspool/internal/print"
)

// listFlags are the flags of a command that lists things, with the fields that it sorts by.
func listFlags(what string, fields []string) []cli.Flag {
	return slices.Concat(filter.Flags(), []cli.Flag{
		config.ChoiceFlag("sort", "", "sort by this `field` instead of the newest, highest first", fields...),
		config.TextFlag("limit", "20", "the `number` of "+what+", at most 1000"),
	}, pageFlags(), config.RemoteFlags(), []cli.Flag{config.ColumnsFlag()})
}

// pageFlags continue a list.
func pageFlags() []cli.Flag {
	return []cli.Flag{
		config.TextFlag("page", "", "the `number` of the page; what is new moves what is on it"),
		config.TextFlag("cursor", "", "continue where an earlier list ended, at the `cursor` it printed"),
	}
}

// pageOf returns the page with a number, from a cursor on, of a list that is continued by cursors only.
// get also returns the cursor of the next page, nil after the last.
func pageOf[P any](number int, cursor string, get func(cursor string) (P, *string, error)) (P, error) {
	for n := 1; ; n++ {
		page, next, err := get(cursor)
		if err == nil && next == nil && n < number {
			err = fmt.Errorf("there is no page %d: the list ends with page %d", number, n)
		}
		if err != nil || n >= number {
			return page, err
		}
		cursor = *next
	}
}

func searchRequests(c *cli.Context) error {
	v := config.Read(c)
	limit := v.Count("limit", wire.PageItemsMax)
	number := v.Count("page", wire.PageOffsetMax)
	sortBy := v.OneOf("sort")
	line, selected := filter.Read(v)
	cl, id, err := v.Remote()
	if err != nil {
		return err
	}

	search := wire.Search{
		FilterGroup: selected,
		Page:        number,
		PerPage:     limit,
		Cursor:      v.Text("cursor"),
		SortBy:      sortBy,
	}
	page, err := cl.Search(c.Context, id, search)
	if err != nil {
		return err
	}
	return print.Output(c, page, func(t *print.Table) {
		// A page may be empty although there is more: looking into texts has a budget.
		if len(page.Items) == 0 && page.NextCursor == nil {
			t.Row(unmatched(line, "requests"))
			return
		}
		listRows(rowTable(t), page.Items)
		tellTotal(t, len(page.Items), page)
	})
}

// tellTotal says how much there is beyond what is listed of a page, and how to get it.
func tellTotal(t *print.Table, listed int, page wire.SearchPage) {
	if page.Total > listed {
		of := humanize.Comma(int64(page.Total))
		if page.TotalIsLowerBound {
			// Without this, a count that was cut short would read like a fact.
			of = "at least " + of
		}
		t.Row()
		t.Row(print.Styled(humanize.Comma(int64(listed))+" of "+of, print.Faint))
	}

	if page.BudgetMS > 0 && !page.Complete {
		t.Row()
		t.Row("The time for looking into records ran out; older ones were not looked at.")
	}
	if page.NextCursor != nil {
		more := "--cursor " + *page.NextCursor
		if page.NextNum != nil {
			more = fmt.Sprintf("--page %d, or %s", *page.NextNum, more)
		}
		t.Row()
		t.Row("More: " + more)
	}
}

// unmatched says that a line finds none of what it is about. It takes every key that it does not know for one of the
// metadata, slips included.
func unmatched(line filterline.Line, what string) string {
	if len(line.Terms) == 0 {
		return "No " + what + "."
	}
	var names []string
	for i := range filterline.Fields {
		if f := &filterline.Fields[i]; f.Listed() && !f.NeedsPart {
			names = append(names, f.Name)
		}
	}

	text := "No " + what + " match these filters."
	if meant, ok := line.Meant(what); ok {
		text += " Did you mean '" + meant.String() + "'?"
	}
	for _, t := range line.Terms {
		if near := words.Closest(t.Part, names); t.Field == filterline.OfMetadata() && len(near) > 0 {
			text += fmt.Sprintf(" Did you mean %s in place of %s?", near[0], t.Part)
		}
	}
	return text
}

func rowTable(t *print.Table) *print.Table {
	return t.Head("REQUEST ID", "STATUS", "@STARTED", "~TEMPLATE", "…TEXT", ">LATENCY", ">COST",
		"~MODEL", ">TOKENS", "SCORES", "TAGS").
		Spare("TAGS", "SCORES", "TOKENS", "MODEL", "LATENCY", "TEMPLATE", "COST")
}

func listRows(t *print.Table, rows []wire.Row) {
	for i, id := range listedIDs(t.Painter, rows, idOfRow) {
		r := rows[i]
		t.Row(
			print.Styled(id, print.Cyan),
			statusCell(r.Status),
			t.Moment(r.ListTime),
			templateOf(r),
			print.Halves(r.InputExcerpt, r.OutputExcerpt, print.CellRunesMax),
			latency(r.Latency),
			money(r.Price),
			r.Engine,
			tokens(r),
			r.Cell("scores"),
			r.Cell("tags"),
		)

		// Elsewhere a line is a record.
		if r.Snippet != nil && t.Width > 0 {
			t.Under(snippetCells(r.Snippet, t.Width-len("  "))...)
		}
	}
}

// snippetCells returns a snippet with its match in bold, in at most width characters.
func snippetCells(s *wire.Snippet, width int) []print.Cell {
	match := words.Head(s.Match, width/2)
	// Each side may have a ….
	side := (width-utf8.RuneCountInString(match))/2 - 1

	return []print.Cell{
		print.Styled(words.Tail(s.Before, side), print.Faint),
		print.Styled(match, print.Bold),
		print.Styled(words.Head(s.After, side), print.Faint),
	}
}

func statusCell(status string) print.Cell {
	style := map[string]print.Style{"SUCCESS": print.Green, "WARNING": print.Yellow}[status]
	return print.Styled(status, cmp.Or(style, print.Red))
}

func templateOf(r wire.Row) string {
	switch {
	case r.PromptName == nil:
		return ""
	case r.PromptVersion == nil:
		return *r.PromptName
	}
	return *r.PromptName + "@" + strconv.FormatInt(*r.PromptVersion, 10)
}

// known prints a number as the dashboard does; "" if it is not known.
func known(n *float64, print func(*float64) string) string {
	if n == nil {
		return ""
	}
	return print(n)
}

// money is an amount of dollars; a dash if it is not known.
func money(dollars *float64) string { return cmp.Or(known(dollars, number.Cost), "-") }

// latency is seconds; a dash if they are not known.
func latency(seconds *float64) string { return cmp.Or(known(seconds, number.Latency), "-") }

// after returns a text after what it is; "" if there is none.
func after(what, text string) string {
	if text == "" {
		return ""
	}
	return what + text
}

// facts lists texts in one line, without those that are empty.
func facts(texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(text string) bool { return text == "" }), ", ")
}

func tokens(r wire.Row) string {
	if r.InputTokens == nil || r.OutputTokens == nil {
		return "-"
	}
	return number.Tokens(r.InputTokens) + "+" + number.Tokens(r.OutputTokens)
}
