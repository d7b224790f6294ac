package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"

	"github.com/urfave/cli/v2"

	"promptspool/api/wire"
	"promptspool/spool/archive/calls"
)

func backtestCommand() *cli.Command {
	return &cli.Command{
		Name: "backtest", Usage: "render the variables of a template's newest requests with another version, beside what was sent then", ArgsUsage: "NAME",
		Flags: append(own("templates backtest", append(filterFlags(),
			stringFlag("version", "", "the `number` of the version to render with, instead of the latest"),
			stringFlag("sent-version", "", "only requests that were sent with this `number` of a version"),
			stringFlag("last", strconv.Itoa(wire.BacktestDefault), "how many of the newest requests: a `number`, at most "+strconv.Itoa(wire.BacktestsMax)))...), remoteFlags()...),
		Action: backtest,
	}
}

func backtest(c *cli.Context) error {
	v := values{c: c}
	where, words := v.filter()
	if words != "" {
		v.wrong("text", "cannot narrow a backtest")
	}
	q := wire.BacktestQuery{
		Name:     v.argument("one template's name"),
		Selector: wire.Selector{Version: v.count("version", math.MaxInt32)},
		Filter:   where,
		Sent:     v.count("sent-version", math.MaxInt32),
		Last:     v.count("last", wire.BacktestsMax),
	}
	asJSON := v.asJSON()
	cl, id := v.remote()
	if err := v.err(); err != nil {
		return err
	}
	defer cl.Close()

	tests, err := cl.Backtest(c.Context, id, q)
	if err != nil {
		return err
	}
	if !asJSON {
		showBacktests(newPainter(c), tests)
		return nil
	}

	for _, t := range tests {
		if err := printJSONLine(c.App.Writer, t); err != nil {
			return err
		}
	}
	return nil
}

// showBacktests prints each request as it was sent, as it would be now, and what came back then.
func showBacktests(p painter, tests []wire.Backtest) {
	for _, t := range tests {
		sent := "?"
		if t.Sent.Version != nil {
			sent = strconv.Itoa(*t.Sent.Version)
		}
		fmt.Fprintf(p.w, "\n%s  %s  %s  %s\n", p.paint(cyan, printable(t.RequestID)), moment(t.AcceptedAt), printable(t.Sent.Model), printable(scores(t.Sent.Scores)))
		p.lines(faint, "with "+string(t.InputVariables))
		call := calls.Read(t.Sent.Request)
		p.conversation("sent then, version "+sent, red, call.Input)
		if t.Rendered == nil {
			p.lines(red, "cannot be rendered: "+t.Error)
			continue
		}
		now := calls.Read(asRequest(t.Rendered))
		p.conversation("rendered now, version "+strconv.Itoa(t.Rendered.Version), green, now.Input)
		if w := t.Rendered.Warning; w != nil {
			p.lines(yellow, "warning: "+*w)
		}
		p.conversation("came back then", unstyled, call.Output)
	}
	fmt.Fprintf(p.w, "\n%s\n", quantity(len(tests), "request"))
}

// asRequest puts the arguments of the model call, or the blueprint where there are none, into a request as it is logged.
func asRequest(r *wire.BacktestRender) json.RawMessage {
	if len(r.LLMKwargs) > 0 && string(r.LLMKwargs) != "null" {
		return json.RawMessage(`{"kwargs":` + string(r.LLMKwargs) + `,"request_response":null}`)
	}
	return json.RawMessage(`{"input":` + string(r.Blueprint) + `,"output":null}`)
}

func (p painter) conversation(title string, s style, messages []calls.Message) {
	fmt.Fprintln(p.w, "  "+p.paint(s, title))
	for _, m := range messages {
		text := m.Role + ": " + m.Text()
		for _, call := range m.ToolCalls {
			text += "\n→ " + call.Name + " " + call.Arguments
		}
		painter{w: indented{p.w}, on: p.on}.lines(unstyled, text)
	}
}

// indented writes two blanks before what it is given.
type indented struct{ w io.Writer }

func (i indented) Write(b []byte) (int, error) {
	if _, err := i.w.Write(append([]byte("  "), b...)); err != nil {
		return 0, err
	}
	return len(b), nil
}
