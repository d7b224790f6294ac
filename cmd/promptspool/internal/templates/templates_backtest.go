package templates

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"promptspool/api/calls"
	"promptspool/api/wire"
	"promptspool/cmd/promptspool/internal/config"
	"promptspool/cmd/promptspool/internal/filter"
	"promptspool/cmd/promptspool/internal/print"
)

func backtestCommand() *cli.Command {
	flags := config.OfCommand("templates backtest", append(filter.Flags(),
		config.TextFlag("version", "", "the `number` of the version to render with, instead of the latest"),
		config.TextFlag("sent-version", "", "only requests that were sent with this `number` of a version"),
		config.TextFlag("last", strconv.Itoa(wire.BacktestDefault),
			"`number` of recent requests, at most "+strconv.Itoa(wire.BacktestsMax)),
	)...)

	return &cli.Command{
		Name: "backtest",
		Usage: "render the variables of a template's newest requests with another version, " +
			"beside what was sent then",
		ArgsUsage: "NAME",
		Flags:     append(flags, config.RemoteFlags()...),
		Action:    backtest,
	}
}

func backtest(c *cli.Context) error {
	v := config.Read(c)
	_, selected := filter.Read(v)
	q := wire.BacktestQuery{
		Name:     v.Argument("one template's name"),
		Selector: wire.Selector{Version: v.Count("version", math.MaxInt32)},
		Filter:   selected.Group(),
		Sent:     v.Count("sent-version", math.MaxInt32),
		Last:     v.Count("last", wire.BacktestsMax),
	}
	asJSON := v.AsJSON()
	cl, id, err := v.Remote()
	if err != nil {
		return err
	}

	tests, err := cl.Backtest(c.Context, id, q)
	if err != nil {
		return err
	}
	if !asJSON {
		printBacktests(print.NewPainter(c), tests)
		return nil
	}

	for _, t := range tests {
		// A line for each: hundreds of requests need not be in a program's memory.
		if err := print.JSONLine(c.App.Writer, t); err != nil {
			return err
		}
	}
	return nil
}

// printBacktests prints each request as it was sent, as it would be now, and the original
// response.
func printBacktests(p print.Painter, tests []wire.Backtest) {
	for _, t := range tests {
		fmt.Fprintf(p.Out, "\n%s  %s  %s  %s\n",
			p.Paint(print.Cyan, print.Printable(t.RequestID)),
			p.Moment(t.AcceptedAt),
			print.Printable(t.Sent.Model),
			print.Printable(print.Scores(t.Sent.Scores)))
		p.Lines(print.Faint, "with "+string(t.InputVariables))
		printBacktest(p, t)
	}

	fmt.Fprintf(p.Out, "\n%s\n", print.Quantity(len(tests), "request"))
}

func printBacktest(p print.Painter, t wire.Backtest) {
	sentVersion := "?"
	if t.Sent.Version != nil {
		sentVersion = strconv.Itoa(*t.Sent.Version)
	}
	// Both sides by the reader of logged calls, whatever the provider.
	sent := calls.Read(t.Sent.Request)
	printConversation(p, "sent then, version "+sentVersion, print.Red, sent.Input)

	if t.Rendered == nil {
		p.Lines(print.Red, "cannot be rendered: "+t.Error)
		return
	}
	rendered := calls.Read(asRequest(t.Rendered))
	printConversation(p, "rendered now, version "+strconv.Itoa(t.Rendered.Version), print.Green, rendered.Input)
	if w := t.Rendered.Warning; w != nil {
		p.Lines(print.Yellow, "warning: "+*w)
	}

	printConversation(p, "came back then", print.Unstyled, sent.Output)
}

// asRequest puts what was rendered into the form of a logged request.
//
// That is the arguments of the model call, or the blueprint if there are none.
func asRequest(r *wire.BacktestRender) json.RawMessage {
	if len(r.LLMKwargs) > 0 && string(r.LLMKwargs) != "null" {
		return json.RawMessage(`{"kwargs":` + string(r.LLMKwargs) + `,"request_response":null}`)
	}
	return json.RawMessage(`{"input":` + string(r.Blueprint) + `,"output":null}`)
}

func printConversation(p print.Painter, title string, s print.Style, messages []calls.Message) {
	fmt.Fprintln(p.Out, "  "+p.Paint(s, title))
	for _, m := range messages {
		text := m.Role + ": " + m.Text()
		for _, call := range m.ToolCalls {
			text += "\n→ " + call.Name + " " + call.Arguments
		}
		p.Lines(print.Unstyled, "  "+strings.ReplaceAll(text, "\n", "\n  "))
	}
}
