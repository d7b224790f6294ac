package requests

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"promptspool/api/calls"
	"promptspool/api/client"
	"promptspool/api/dashboard/number"
	"promptspool/api/tracetree"
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
	sortBy, limit := v.OneOf("sort"), v.Count("limit", wire.PageItemsMax)
	number, begin := max(1, v.Count("page", wire.PageOffsetMax)), v.Text("cursor")
	line, selected := filter.ReadRollup(v)
	search := selected.Search(of)
	search.PerPage, search.SortBy = limit, sortBy
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
			t.Row(unmatched(line, of))
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
	// Other ids are an app's own.
	if of == "traces" {
		short = listedIDs(t.Painter, rollups, idOfRollup)
	}
	for i, r := range rollups {
		id := r.ID
		if short != nil {
			id = short[i]
		}
		failed := print.Unstyled
		if r.Errors > 0 {
			failed = print.Red
		}
		t.Row(print.Styled(id, print.Cyan), t.Moment(r.LastSeen), number.Span(r.LastSeen.Sub(r.FirstSeen)),
			r.Turns, r.Spans, print.Styled(number.Grouped(r.Errors), failed),
			tokens(wire.Row{InputTokens: &r.InputTokens, OutputTokens: &r.OutputTokens}), money(&r.Cost),
			cmp.Or(r.Score(), "-"), r.Name)
	}
}

func getSession(c *cli.Context) error {
	v := config.Read(c)
	sessionID := v.Argument("one session id, as requests get prints it")
	cl, id, err := v.Remote()
	if err != nil {
		return err
	}
	found, err := cl.Session(c.Context, id, sessionID)
	if err != nil {
		return err
	}

	// For people, each call is printed when it is read: a session may be long.
	p, story, total := print.NewPainter(c), calls.NewStory(), 0.0
	whole := struct {
		wire.RollupFound
		Calls []wire.Record `json:"calls"`
	}{found, []wire.Record{}}
	show := func(row wire.Row, r wire.Record) {
		total += wire.OrZero(row.Price)
		printTurn(p, story, row, r, total)
	}
	if v.AsData() {
		show = func(_ wire.Row, r wire.Record) { whole.Calls = append(whole.Calls, r) }
	} else {
		t := print.NewTable(c)
		listRollups(t, "sessions", found.Rollup)
		t.Head()
	}
	if err := eachCall(c.Context, cl, id, found.Calls(), show); err != nil || !v.AsData() {
		return err
	}

	return print.Data(c, whole)
}

// eachCall calls fn with every call that a search finds.
func eachCall(
	ctx context.Context, cl *client.Client, id wire.Identity, s wire.Search, fn func(wire.Row, wire.Record),
) error {
	s.PerPage = 100
	for {
		page, err := cl.Search(ctx, id, s)
		if err != nil {
			return err
		}
		for _, row := range page.Items {
			r, err := cl.Request(ctx, id, row.RequestID)
			if wire.IsCode(err, wire.CodeNotFound) {
				continue // deleted meanwhile
			}
			if err != nil {
				return err
			}
			fn(row, r)
		}

		if page.NextCursor == nil {
			return nil
		}
		s.Cursor = *page.NextCursor
	}
}

// printTurn prints a call of a session: what it added, and its answer. total is the cost so far.
func printTurn(p print.Painter, story *calls.Story, row wire.Row, r wire.Record, total float64) {
	text := facts(p.Moment(row.ListTime), row.Engine, templateOf(row), latency(row.Latency), money(row.Price),
		money(&total)+" so far")
	fmt.Fprintln(p.Out, "\n"+p.Paint(print.Bold, print.Printable(text)))
	fmt.Fprintln(p.Out, p.Paint(print.Faint, row.RequestID))

	call := calls.Read(r.Content())
	added := story.Next(&call)
	if len(added) == 0 && len(call.Input) > 0 {
		fmt.Fprintln(p.Out, "\n"+p.Paint(print.Faint, "Sent the same messages again."))
	}
	for _, i := range added {
		printMessage(p, call.Input[i], print.Faint)
	}
	for _, m := range call.Output {
		printMessage(p, m, print.Green)
	}
	if f := call.Failure; f != nil {
		fmt.Fprintln(p.Out)
		p.Lines(print.Red, "✗ "+cmp.Or(f.Message, f.Type, "No error message was logged."))
	}
}

// Bounds of what is drawn; JSON has the whole.
const (
	traceRowsMax = 500
	traceWidth   = 110
)

func getTrace(c *cli.Context) error {
	v := config.Read(c)
	given := v.Argument("one trace id, or its beginning as `promptspool traces list` lists it")
	cl, id, err := v.Remote()
	if err != nil {
		return err
	}
	whole, err := traceID(c, cl, id, given)
	if err != nil {
		return err
	}
	trace, err := cl.Trace(c.Context, id, whole)
	if err != nil {
		return err
	}
	tree := tracetree.Of(trace)
	all := tracetree.Rows(&tree, nil)
	err = print.Output(c, tree, func(t *print.Table) {
		printTraceFacts(t, &tree)
		drawTrace(t, &tree, all)
	})
	if err != nil || v.AsData() || tree.Total.Errors == 0 {
		return err
	}

	fault := all[tracetree.FirstFault(all)]
	r, err := cl.Request(c.Context, id, fault.ID)
	if err != nil {
		return err
	}
	p := print.NewPainter(c)
	fmt.Fprintln(p.Out, "\n"+p.Paint(print.Red, print.Printable(fault.Name)+", "+fault.ID))
	if failure := calls.Read(r.Content()).Failure; failure != nil {
		p.Lines(print.Unstyled, cmp.Or(failure.Message, failure.Type, "No error message was logged."))
	}

	return nil
}

// printTraceFacts prints what a trace adds up to.
func printTraceFacts(t *print.Table, tree *wire.TraceTree) {
	sum := &tree.Total
	started, running := "", ""
	if sum.StartTime != nil {
		started = t.Moment(*sum.StartTime)
	}
	if tree.Running {
		running = "still running"
	}
	t.Row(facts(
		started, between(sum.StartTime, sum.EndTime), print.Quantity(sum.Spans, "span"),
		print.Quantity(sum.Calls, "call"), tokensOf(sum)+" tokens", money(sum.Price),
		print.Quantity(sum.Errors, "error"), after("session ", tree.SessionID), after("user ", tree.UserID), running,
	))
	t.Row()
}

// drawTrace prints the rows of a tree, each with a bar of its time.
func drawTrace(t *print.Table, tree *wire.TraceTree, all []tracetree.Row) {
	fits := tracetree.DepthThatFits(all, traceRowsMax)
	rows := tracetree.Rows(tree, func(_ *wire.TraceNode, depth int) bool { return depth < fits })

	// The numbers take 41 columns; the rest is for names and bars.
	left := max(cmp.Or(t.Width, traceWidth)-41, 30)
	nameWidth, barWidth := left*3/5, left*2/5
	t.Head("SPAN", "TIMELINE", ">DURATION", ">TOKENS", ">COST")
	var guides [wire.TraceDepthMax + 1]string // by depth
	for _, row := range rows[:min(len(rows), traceRowsMax)] {
		name := print.Cut(nodeText(row, guides[row.Depth]), nameWidth)
		if row.Depth > 0 {
			guides[row.Depth+1] = guides[row.Depth] + "│ "
			if row.Last {
				guides[row.Depth+1] = guides[row.Depth] + "  "
			}
		}
		style := print.Unstyled
		if row.Status == "ERROR" {
			style = print.Red
		}
		t.Row(print.Styled(name, style), print.Styled(barOf(tree, row, barWidth), cmp.Or(style, print.Cyan)),
			between(row.StartTime, row.EndTime), tokensOf(&row.Total), money(row.Total.Price))
	}
	if more := len(rows) - traceRowsMax; more > 0 {
		t.Row(print.Styled(print.Quantity(more, "more row")+". All of it: -o json", print.Faint))
	}
}

// nodeText returns the name of a span after the lines of the tree. A span that failed has a cross.
func nodeText(row tracetree.Row, guide string) string {
	if row.Depth > 0 {
		guide += "├ "
		if row.Last {
			guide = strings.TrimSuffix(guide, "├ ") + "└ "
		}
	}
	text := cmp.Or(row.Name, "span")
	switch {
	case row.Status == "ERROR":
		text = "✗ " + text
	case row.Total.Errors > 0:
		text += fmt.Sprintf(" (✗ %d below)", row.Total.Errors)
	}
	if row.Folded {
		text += fmt.Sprintf(" +%d", row.Total.Spans-1)
	}
	if row.ParentMissing {
		text += " (no parent)"
	}

	return guide + text
}

// barOf returns when a span ran, as a bar among those of its trace.
func barOf(tree *wire.TraceTree, row tracetree.Row, width int) string {
	from, to := tree.Total.StartTime, tree.Total.EndTime
	start, end := row.Times()
	if start == nil || to == nil || !to.After(*from) {
		return ""
	}

	cells := func(d time.Duration) int {
		return int(math.Round(float64(d) / float64(to.Sub(*from)) * float64(width)))
	}
	at := min(cells(start.Sub(*from)), width-1)
	long := 0
	if end != nil {
		long = min(cells(end.Sub(*start)), width-at)
	}
	if long < 1 {
		return strings.Repeat(" ", at) + "▏"
	}

	return strings.Repeat(" ", at) + strings.Repeat("█", long)
}

// between returns the time from one moment to a later one, a dash if one of them is unknown.
func between(from, to *time.Time) string {
	if from == nil || to == nil || to.Before(*from) {
		return "-"
	}
	return number.Span(to.Sub(*from))
}

// tokensOf returns the tokens of a total as lists have them.
func tokensOf(t *wire.TraceTotal) string {
	return tokens(wire.Row{InputTokens: t.InputTokens, OutputTokens: t.OutputTokens})
}
