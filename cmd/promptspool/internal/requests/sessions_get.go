package requests

import (
	"cmp"
	"context"
	"fmt"

	"github.com/urfave/cli/v2"

	"promptspool/api/calls"
	"promptspool/api/client"
	"promptspool/api/wire"
	"promptspool/cmd/promptspool/internal/config"
	"promptspool/cmd/promptspool/internal/print"
)

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
		if row.Price != nil {
			total += *row.Price
		}
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
