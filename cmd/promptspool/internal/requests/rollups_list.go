package requests

import (
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"promptspool/api/dashboard/number"
	"promptspool/api/wire"
	"promptspool/cmd/promptspool/internal/config"
	"promptspool/cmd/promptspool/internal/filter"
	"promptspool/cmd/promptspool/internal/print"
)

// TracesCommand is `promptspool traces`: read what agents did.
func TracesCommand() *cli.Command {
	return rollupCommand("traces", "find and read traces of agents",
		config.Command("get TRACE_ID",
			"draw a trace as a tree, with the time, tokens, cost and errors of each span",
			getTrace, config.RemoteFlags()))
}

// SessionsCommand is `promptspool sessions`: read conversations.
func SessionsCommand() *cli.Command {
	return rollupCommand("sessions", "find and read sessions, which are conversations of several calls",
		config.Command("get SESSION_ID", "show a session as one conversation, with what each call added",
			getSession, config.RemoteFlags()))
}

// UsersCommand is `promptspool users`: what was done for whom.
func UsersCommand() *cli.Command {
	return rollupCommand("users", "find the users that calls were made for")
}

// rollupCommand lists sessions, traces or users, or does more with one of them.
func rollupCommand(of, usage string, more ...*cli.Command) *cli.Command {
	list := config.Command("list", "list "+of+", the last seen first",
		func(c *cli.Context) error { return searchRollups(c, of) }, listFlags(of, wire.RollupSortFields))
	return config.Commands(of, usage, append([]*cli.Command{list}, more...)...)
}

func searchRollups(c *cli.Context, of string) error {
	v := config.Read(c)
	line, selected := filter.ReadRollup(v)
	search := selected.Search(of)
	search.SortBy = v.OneOf("sort")
	search.PerPage = v.Count("limit", wire.PageItemsMax)
	number, begin := max(1, v.Count("page", wire.PageOffsetMax)), v.Text("cursor")
	cl, id, err := v.Remote()
	if err != nil {
		return err
	}

	page, err := pageOf(number, begin, func(cursor string) (wire.RollupPage, *string, error) {
		search.Cursor = cursor
		page, err := cl.Rollups(c.Context, id, search)
		return page, page.NextCursor, err
	})
	if err != nil {
		return err
	}
	return print.Output(c, page, func(t *print.Table) {
		if len(page.Items) == 0 && page.NextCursor == nil {
			printUnmatched(c, t, cl, id, line, of)
			return
		}
		listRollups(t, of, page.Items...)
		told := wire.SearchPage{NextCursor: page.NextCursor, BudgetMS: 1}
		told.Complete = page.Complete || page.NextCursor == nil
		told.Total = page.Total
		if begin == "" {
			number++
			told.NextNum = &number
		}
		tellTotal(t, len(page.Items), told)
	})
}

func listRollups(t *print.Table, of string, rollups ...wire.Rollup) {
	name := "~NAME"
	if of != "traces" {
		name = ""
	}

	t.Head(strings.ToUpper(strings.TrimSuffix(of, "s"))+" ID", "@LAST SEEN", ">DURATION", ">TURNS",
		">SPANS", ">ERRORS", ">TOKENS", ">COST", ">SCORE", name).
		Spare("SPANS", "TOKENS", "SCORE", "TURNS", "DURATION", "ERRORS")
	var short []string
	if of == "traces" { // other ids are an app's own
		short = listedIDs(t.Painter, rollups, idOfRollup)
	}
	for i, r := range rollups {
		id := r.ID
		if short != nil {
			id = short[i]
		}
		failed, score := print.Unstyled, "-"
		if r.Errors > 0 {
			failed = print.Red
		}
		if r.MeanScore != nil {
			score = strconv.FormatFloat(*r.MeanScore, 'f', 1, 64)
		}
		t.Row(print.Styled(id, print.Cyan), t.Moment(r.LastSeen), number.Span(r.LastSeen.Sub(r.FirstSeen)),
			r.Turns, r.Spans, print.Styled(strconv.FormatInt(r.Errors, 10), failed),
			tokens(wire.Row{InputTokens: &r.InputTokens, OutputTokens: &r.OutputTokens}), money(&r.Cost), score, r.Name)
	}
}
