package requests

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/urfave/cli/v2"

	"promptspool/api/calls"
	"promptspool/api/client"
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
			t.Row("cache writes", number.Quantity(*n, "token"))
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
			s = number.Tokens(n) + " " + direction
		}
		if part != nil && *part > 0 {
			s += fmt.Sprintf(" (%s %s)", number.Tokens(part), what)
		}
		return s
	}
	return side(r.InputTokens, r.CachedTokens, "in", "from the cache") + ", " +
		side(r.OutputTokens, r.ReasoningTokens, "out", "reasoning")
}

// shortID is how much of an id a list shows at least: 12 hex digits, which are the time to a millisecond.
const shortID = len("0198c1f2-abcd")

// listedIDs returns the ids of rows as a list shows them. On a terminal they are short, but long enough to tell these
// rows apart.
func listedIDs[T any](p print.Painter, rows []T, idOf func(T) string) []string {
	ids := make([]string, len(rows))
	for i := range rows {
		id := idOf(rows[i])
		n := min(shortID, len(id))
		if p.Width == 0 {
			// A program reads it.
			n = len(id)
		}
		for _, row := range rows {
			for other := idOf(row); id != other && strings.HasPrefix(other, id[:n]); {
				n++
			}
		}
		ids[i] = strings.TrimSuffix(id[:n], "-")
	}
	return ids
}

func idOfRow(r wire.Row) string { return r.RequestID }

func idOfRollup(r wire.Rollup) string { return r.ID }

// candidatesMax is how many requests with the same short id are named.
const candidatesMax = 5

// requestID returns the id of the one request whose id begins like this.
func requestID(c *cli.Context, cl *client.Client, id wire.Identity, given string) (string, error) {
	digits := strings.ToLower(strings.ReplaceAll(given, "-", ""))
	n := len(digits)
	switch {
	case n < 8 || n > 32 || strings.Trim(digits, "0123456789abcdef") != "":
		return "", config.Usagef(c, "%q is not a request id or its beginning, of at least 8 hex digits", given)
	case n == 32:
		return given, nil
	}

	first := uuid.MustParse(digits + strings.Repeat("0", 32-n))
	last := uuid.MustParse(digits + strings.Repeat("f", 32-n))
	// Its dashes are those of a whole id, which has 8, 4, 4, 4 and 12 digits.
	begins := wire.Where("request_id", "starts_with", first.String()[:n+min((n-5)/4, 4)])

	// The time in an id is when its call was accepted, or when its span began: few rows have to be looked at. Only
	// what comes from another system has other ids.
	around := []time.Time{timeOf(first).Add(-time.Minute), timeOf(last).Add(time.Minute)}
	within := func(field string) *wire.Filter {
		return &wire.Filter{Filters: []wire.Filter{begins, wire.Where(field, "between", around)}}
	}
	var found []string
	for _, where := range []*wire.Filter{within("accepted_at"), within("list_time"), &begins} {
		if where == &begins && found != nil {
			break
		}
		page, err := cl.Search(c.Context, id, wire.Search{FilterGroup: where, PerPage: candidatesMax})
		if err != nil {
			return "", err
		}
		for _, row := range page.Items {
			found = append(found, row.RequestID)
		}
	}

	return theOne(c, "request", given, found)
}

// traceID returns the id of the one trace whose id begins like this.
func traceID(c *cli.Context, cl *client.Client, id wire.Identity, given string) (string, error) {
	if len(given) < 8 || len(given) >= 32 {
		return given, nil
	}
	has := wire.Where("id", "contains", given)
	page, err := cl.Rollups(c.Context, id, wire.RollupSearch{Of: "traces", Having: &has})
	if err != nil {
		return "", err
	}
	var found []string
	for _, trace := range page.Items {
		if strings.HasPrefix(trace.ID, strings.ToLower(given)) {
			found = append(found, trace.ID)
		}
	}
	return theOne(c, "trace", given, found)
}

// theOne returns the id that was meant by its beginning, unless there are several or none.
func theOne(c *cli.Context, what, given string, found []string) (string, error) {
	slices.Sort(found)
	switch found = slices.Compact(found); len(found) {
	case 0:
		return "", wire.Errorf(wire.CodeNotFound, "No %s has an id that begins with %s.", what, given)
	case 1:
		return found[0], nil
	}
	return "", config.Usagef(c, "several %ss have an id that begins with %s; give more of it:\n  %s",
		what, given, strings.Join(found, "\n  "))
}

// timeOf returns the time in a UUIDv7.
func timeOf(id uuid.UUID) time.Time {
	return time.UnixMilli(int64(binary.BigEndian.Uint64(id[:]) >> 16)).UTC()
}
