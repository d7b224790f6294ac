package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"promptspool/api/wire"
	"promptspool/spool/archive/calls"
)

// shownRunesMax is how much of one text is shown; JSON has the whole.
const shownRunesMax = 20_000

func getCommand() *cli.Command {
	return &cli.Command{Name: "get", Usage: "show one record, as a conversation", ArgsUsage: "REQUEST_ID", Flags: remoteFlags(), Action: getRequest}
}

func getRequest(c *cli.Context) error {
	v := values{c: c}
	requestID := v.argument("one request id, as track-request returned it")
	cl, id := v.remote()
	if err := v.err(); err != nil {
		return err
	}
	defer cl.Close()

	r, err := cl.Request(c.Context, id, requestID)
	if err != nil {
		return err
	}
	p, call := newPainter(c), calls.Read(r.Request)
	show := func(t *table) {
		if call.Failure != nil {
			p.failure(&call) // before the table, which is printed as a whole
		}
		describe(t, r)
	}
	if err := output(c, r, show); err != nil || text(c, "output") == "json" {
		return err
	}

	for _, m := range call.Input {
		p.message(m, faint)
	}
	for _, m := range call.Output {
		p.message(m, green)
	}
	if !call.Readable && call.Failure == nil {
		p.unparsed(&call)
	}
	fmt.Fprintln(p.w, "\n"+p.paint(faint, "All of it, as it was sent: -o json"))
	return nil
}

// failure prints what went wrong with a call: it comes before all else.
func (p painter) failure(call *calls.Call) {
	fmt.Fprintln(p.w, p.paint(red, printable(cmp.Or(call.Failure.Type, "The call failed"))))
	p.lines(unstyled, cmp.Or(call.Failure.Message, "No error message was logged."))
	if call.Raw != nil {
		fmt.Fprintln(p.w, "\nResponse:")
		p.lines(unstyled, laidOut(call.RawText()))
	}
	fmt.Fprintln(p.w)
}

// unparsed prints a response that could not be read.
func (p painter) unparsed(call *calls.Call) {
	if call.Raw == nil {
		fmt.Fprintln(p.w, "\nNo response was logged.")
		return
	}

	fmt.Fprintln(p.w, "\nWe could not parse this response. Raw response:")
	p.lines(unstyled, laidOut(call.RawText()))
}

// laidOut lays out JSON; any other text stays as it is.
func laidOut(text string) string {
	var b bytes.Buffer
	if json.Indent(&b, []byte(text), "", "  ") != nil {
		return text
	}
	return b.String()
}

// message prints one turn of a conversation.
func (p painter) message(m calls.Message, s style) {
	who := m.Role
	if m.Name != "" {
		who += " " + m.Name
	}
	if m.ToolCallID != "" {
		who += ", answering " + m.ToolCallID
	}
	fmt.Fprintf(p.w, "\n%s\n", p.paint(s, "── "+printable(who)+" "+strings.Repeat("─", max(2, 60-len([]rune(who))))))
	for _, part := range m.Parts {
		switch part.Kind {
		case calls.PartMedia:
			p.lines(faint, "["+part.Text+"]")
		case calls.PartThinking:
			p.lines(faint, "(thinking) "+part.Text)
		case calls.PartRefusal:
			p.lines(red, "(refusal) "+part.Text)
		default:
			p.lines(unstyled, part.Text)
		}
	}
	for _, call := range m.ToolCalls {
		p.lines(yellow, "→ "+strings.TrimSpace(call.Name+" "+call.Arguments))
	}
}

// lines prints a text line by line, less what drives a terminal.
func (p painter) lines(s style, text string) {
	runes := []rune(text)
	cut := len(runes) > shownRunesMax
	if cut {
		runes = runes[:shownRunesMax]
	}
	for line := range strings.Lines(string(runes)) {
		line = strings.ReplaceAll(strings.TrimRight(line, "\r\n"), "\t", "    ")
		fmt.Fprintln(p.w, strings.TrimRight("  "+p.paint(s, printable(line)), " "))
	}
	if cut {
		fmt.Fprintln(p.w, p.paint(faint, "  … the rest: -o json"))
	}
}

// describe prints what is known of a record, for people.
func describe(t *table, r wire.Record) {
	t.row("request", r.RequestID)
	t.row("accepted", moment(r.AcceptedAt))
	if r.Provider != "" {
		t.row("model", strings.TrimSpace(r.Model+" of "+r.Provider))
	} else {
		t.row("model", r.Model)
	}
	t.row("function", r.FunctionName)
	status := r.Status
	if r.ErrorType != "" {
		status += ", " + r.ErrorType
	}
	if r.FinishReason != "" {
		status += ", finished by " + r.FinishReason
	}
	t.row("status", status)
	if r.LatencyMS != nil {
		t.row("latency", brief(time.Duration(*r.LatencyMS*1e6)))
	}
	t.row("tokens", usage(r))
	if r.Price != nil {
		t.row("cost", money(r.Price))
	} else {
		t.row("cost", "unknown")
	}
	if p := r.Prompt; p != nil {
		template := p.Name + ", unknown version"
		if p.Version != nil {
			template = fmt.Sprintf("%s, version %d", p.Name, *p.Version)
		}
		if p.Label != nil {
			template += ", by label " + *p.Label
		}
		t.row("template", template)
	}
	for _, s := range r.Scores {
		t.row("score", fmt.Sprintf("%s = %d", s.Name, s.Score))
	}
	if len(r.Tags) > 0 {
		t.row("tags", strings.Join(r.Tags, ", "))
	}
	for _, k := range slices.Sorted(maps.Keys(r.Metadata)) {
		t.row("metadata", k+" = "+r.Metadata[k])
	}
	for _, g := range r.GroupIDs {
		t.row("group", g)
	}
	for _, e := range r.Events {
		t.row("event", fmt.Sprintf("%s accepted by %s %s, arrived %s", e.Kind, e.Sidecar, e.AcceptedAt.Local().Format(time.TimeOnly), e.ArrivedAt.Local().Format(time.TimeOnly)))
	}
}

// usage is what went in and came out, with the parts that cost otherwise.
func usage(r wire.Record) string {
	if r.InputTokens == nil && r.OutputTokens == nil {
		return "unknown"
	}
	side := func(n, part *int64, direction, what string) string {
		s := "? " + direction
		if n != nil {
			s = fmt.Sprintf("%d %s", *n, direction)
		}
		if part != nil && *part > 0 {
			s += fmt.Sprintf(" (%d %s)", *part, what)
		}
		return s
	}
	return side(r.InputTokens, r.CachedTokens, "in", "from the cache") + ", " + side(r.OutputTokens, r.ReasoningTokens, "out", "reasoning")
}
