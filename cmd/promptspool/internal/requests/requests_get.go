package requests

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os/exec"
	"runtime"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"promptspool/api/calls"
	"promptspool/api/dashboard/number"
	"promptspool/api/wire"
	"promptspool/cmd/promptspool/internal/config"
	"promptspool/cmd/promptspool/internal/print"
)

func getRequest(c *cli.Context) error {
	v := config.Read(c)
	given := v.Argument("one request id, or its beginning as `promptspool requests search` lists it")
	cl, id, err := v.Remote()
	if err != nil {
		return err
	}

	whole, err := requestID(c, cl, id, given)
	if err != nil {
		return err
	}
	if v.Given("web") {
		return openPage(c, cl.URL("/requests/"+whole))
	}
	r, err := cl.Request(c.Context, id, whole)
	if err != nil {
		return err
	}
	return print.Output(c, r, func(t *print.Table) { showCall(t, r) })
}

// showCall shows a record with its messages; a failure comes first.
func showCall(t *print.Table, r wire.Record) {
	p, call := t.Painter, calls.Read(r.Content())
	if call.Failure != nil {
		printFailure(p, &call, r.IsSpan())
	}
	describe(t, r)
	t.Head()

	for _, m := range call.Input {
		printMessage(p, m, print.Faint)
	}
	for _, m := range call.Output {
		printMessage(p, m, print.Green)
	}
	if !call.Readable && call.Failure == nil {
		printUnparsed(p, &call)
	}
	t.Row()
	t.Row(print.Styled("All of it, as it was sent: -o json", print.Faint))
}

// browsers are the commands that open an address, by system.
var browsers = map[string][]string{
	"linux": {"xdg-open"}, "darwin": {"open"}, "windows": {"rundll32", "url.dll,FileProtocolHandler"},
}

// openPage prints an address and, if a person reads it, opens it in a browser. Where there is none it does no more.
func openPage(c *cli.Context, address string) error {
	open := browsers[runtime.GOOS]
	if open != nil && print.IsTerminal(c.App.Writer) {
		_ = exec.Command(open[0], append(open[1:], address)...).Start()
	}
	_, err := fmt.Fprintln(c.App.Writer, address)
	return err
}

// printFailure prints what went wrong with a call or another span: it comes before all else.
func printFailure(p print.Painter, call *calls.Call, isSpan bool) {
	untyped := map[bool]string{false: "The call failed", true: "The span failed"}[isSpan]
	fmt.Fprintln(p.Out, p.Paint(print.Red, print.Printable(cmp.Or(call.Failure.Type, untyped))))
	p.Lines(print.Unstyled, cmp.Or(call.Failure.Message, "No error message was logged."))
	if call.Raw != nil {
		fmt.Fprintln(p.Out, "\nResponse:")
		p.Lines(print.Unstyled, laidOut(call.RawText()))
	}
	fmt.Fprintln(p.Out)
}

// printUnparsed prints a response that could not be read.
func printUnparsed(p print.Painter, call *calls.Call) {
	if call.Raw == nil {
		fmt.Fprintln(p.Out, "\nNo response was logged.")
		return
	}

	why := "We could not parse this response."
	if call.TooLong {
		why = "This response has too many pieces to be taken apart."
	}
	fmt.Fprintln(p.Out, "\n"+why+" Raw response:")
	p.Lines(print.Unstyled, laidOut(call.RawText()))
}

// laidOut lays out JSON; any other text stays as it is.
func laidOut(text string) string {
	var b bytes.Buffer
	// A response need not be JSON: libraries log the text of an exception.
	if json.Indent(&b, []byte(text), "", "  ") != nil {
		return text
	}
	return b.String()
}

// printMessage prints one turn of a conversation.
func printMessage(p print.Painter, m calls.Message, s print.Style) {
	who := facts(m.Role+after(" ", m.Name), after("answering ", m.ToolCallID))

	// A line of one length for every role, so that turns are found by eye.
	rule := strings.Repeat("─", max(2, 60-len([]rune(who))))
	fmt.Fprintf(p.Out, "\n%s\n", p.Paint(s, "── "+print.Printable(who)+" "+rule))
	for _, part := range m.Parts {
		switch part.Kind {
		case calls.PartMedia:
			p.Lines(print.Faint, "["+part.Label()+"]")
		case calls.PartResult:
			p.Lines(print.Faint, "(result) "+part.Text)
		case calls.PartThinking:
			p.Lines(print.Faint, "(thinking) "+part.Text)
		case calls.PartRefusal:
			p.Lines(print.Red, "(refusal) "+part.Text)
		default:
			p.Lines(print.Unstyled, part.Text)
		}
	}
	for _, call := range m.ToolCalls {
		p.Lines(print.Yellow, "→ "+strings.TrimSpace(call.Name+" "+call.Arguments))
	}
}

// describe prints what is known of a record, for people.
func describe(t *print.Table, r wire.Record) {
	t.Row(map[bool]string{false: "request", true: "record"}[r.IsSpan()], r.RequestID)
	t.Row("started", t.Moment(r.ListTime))
	t.Row("accepted", t.Moment(r.AcceptedAt))
	if r.SpanName != "" {
		t.Row("span", facts(r.SpanName, r.SpanKind))
	}
	t.Known("trace", r.TraceID)
	t.Known("request", r.RequestLogID)
	if !r.IsSpan() {
		t.Row("model", strings.TrimSpace(r.Model+after(" of ", r.Provider)))
	}

	t.Known("function", r.FunctionName)
	t.Row("status", facts(r.Status, r.ErrorType, after("finished by ", r.FinishReason)))
	t.Known("latency", known(r.LatencyMS, number.LatencyMS))
	t.Known("first token", known(r.FirstTokenMS, number.LatencyMS))
	if !r.IsSpan() {
		t.Row("tokens", usage(r))
		if n := r.CacheWrites; n != nil && *n > 0 {
			t.Row("cache writes", fmt.Sprint(*n, " tokens"))
		}
		t.Row("cost", cmp.Or(known(r.Price, number.Cost), "unknown"))
	}
	if p := r.Prompt; p != nil {
		version, label := "unknown version", ""
		if p.Version != nil {
			version = fmt.Sprint("version ", *p.Version)
		}
		if p.Label != nil {
			label = "by label " + *p.Label
		}
		t.Row("template", facts(p.Name, version, label))
	}
	for _, s := range r.Scores {
		t.Row("score", s.Name+" = "+s.ScoreValue.String()+after(", by ", s.Author)+after(": ", s.Reason()))
	}
	t.Known("tags", strings.Join(r.Tags, ", "))
	for _, k := range slices.Sorted(maps.Keys(r.Metadata)) {
		t.Row("metadata", k+" = "+r.Metadata[k])
	}
	for _, g := range r.GroupIDs {
		t.Row("group", g)
	}
	if r.EventsTruncated {
		t.Row("event", "(earlier scores, metadata and prompts are no longer listed)")
	}
	for _, e := range r.Events {
		t.Row("event", fmt.Sprintf("%s accepted by %s %s, arrived %s", e.Kind, e.Sidecar,
			t.Moment(e.AcceptedAt), t.Moment(e.ArrivedAt)))
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
	return side(r.InputTokens, r.CachedTokens, "in", "from the cache") + ", " +
		side(r.OutputTokens, r.ReasoningTokens, "out", "reasoning")
}
