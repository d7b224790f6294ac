package requests

import (
	"cmp"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"promptspool/api/calls"
	"promptspool/api/dashboard/number"
	"promptspool/api/tracetree"
	"promptspool/api/wire"
	"promptspool/cmd/promptspool/internal/config"
	"promptspool/cmd/promptspool/internal/print"
)

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
