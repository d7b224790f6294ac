package templates

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"promptspool/api/calls"
	"promptspool/api/dashboard/address"
	"promptspool/api/dashboard/conversation"
	"promptspool/api/dashboard/filter"
	"promptspool/api/dashboard/frame"
	"promptspool/api/dashboard/markup"
	"promptspool/api/dashboard/number"
	"promptspool/api/dashboard/textdiff"
	"promptspool/api/wire"
	"promptspool/api/wire/jsonscan"
)

// compareView is what the comparison of two versions shows.
type compareView struct {
	templateHead
	A, B   int
	Rows   []textdiff.Row // nil if the versions are equal
	Select []int          // the versions to choose from, newest first
	Calls  *comparison    // nil for a version with itself
	Span   string
	Times  []filter.TimeChoice
	Label  string // that is about to be moved from A to B, or ""
}

// comparedMax bounds the versions that a form offers. The address can name older ones.
const comparedMax = 200

func (p *pages) comparePage(c *frame.Exchange, head templateHead) (err error) {
	v := compareView{
		templateHead: head,
		Select:       head.latestVersions(comparedMax),
		Span:         c.FormValue("span"),
		Times:        filter.Times,
		Label:        c.FormValue("label"),
	}
	v.A, err = versionParam(c, "a", max(1, head.Latest()-1))
	if err != nil {
		return err
	}
	v.B, err = versionParam(c, "b", head.Latest())
	if err != nil {
		return err
	}

	var texts [2]string
	for i, version := range []int{v.A, v.B} {
		selector := wire.Selector{Version: version}
		raw, err := p.templates.Source(c.Context(), c.Identity(), head.Name, selector)
		if err != nil {
			return err
		}
		texts[i] = versionText(raw)
	}
	v.Rows = textdiff.Lines(texts[0], texts[1])
	if v.A != v.B {
		f := c.Filter(nil).During(v.Span)
		v.Calls, err = p.compareVersions(c, f, head.Name, v.A, v.B)
		if err != nil {
			return err
		}
	}

	title := fmt.Sprintf("%s v%d and v%d · Compare", head.Name, v.A, v.B)

	return c.Show(http.StatusOK, "compare", title, "templates", v)
}

// versionText returns a version as lines of text: its messages, then everything else as
// JSON.
func versionText(raw wire.RawTemplate) string {
	var b strings.Builder
	b.WriteString(transcript(blueprintMessages(raw.Blueprint)))

	var blueprint, metadata map[string]json.RawMessage
	// The registry has checked both.
	_ = json.Unmarshal(raw.Blueprint, &blueprint)
	_ = json.Unmarshal(raw.Metadata, &metadata)

	// The messages are compared as texts, so the rest must say what their formats are.
	var messages []struct {
		Format json.RawMessage `json:"template_format"`
	}
	_ = json.Unmarshal(blueprint["messages"], &messages)
	var formats []json.RawMessage
	for i, m := range messages {
		if m.Format != nil {
			formats = append(formats, encoded("message "+strconv.Itoa(i+1)+": "+jsonText(m.Format)))
		}
	}
	if formats != nil {
		blueprint["formats"] = encoded(formats)
	}

	addSection(&b, "template", without(blueprint, "type", "messages", "content", "input_variables"))
	addSection(&b, "metadata", without(metadata))

	return b.String()
}

// transcript returns messages as lines of text, each under its role.
func transcript(messages []calls.Message) string {
	var b strings.Builder
	for _, m := range messages {
		var texts []string
		for _, p := range m.Parts {
			texts = append(texts, p.Text)
		}
		for _, call := range m.ToolCalls {
			texts = append(texts, "calls "+call.Name+" "+call.Arguments)
		}

		addSection(&b, strings.TrimSpace(m.Role+" "+m.Name), strings.Join(texts, "\n"))
	}

	return b.String()
}

func addSection(b *strings.Builder, title, text string) {
	if text == "" {
		return
	}

	if b.Len() > 0 {
		b.WriteString("\n\n")
	}
	b.WriteString("# " + title + "\n" + text)
}

// comparison is how two versions differ by their calls, as the component shows it.
type comparison struct {
	wire.VersionComparison
	Rows []comparedRow // nil unless both have calls
	Max  int64         // calls of each version that are compared
}

// comparedRow is a metric of a comparison.
type comparedRow struct {
	wire.ComparedMetric
	Shown number.Metric

	// The interval in a drawing from 0 to 100, in whose middle there is no difference.
	From, At, To float64
}

// compareVersions compares two versions by the calls that a filter finds.
func (p *pages) compareVersions(c *frame.Exchange, f filter.Filter, name string, a, b int) (*comparison, error) {
	group, err := f.Group()
	if err != nil {
		return nil, err
	}
	q := wire.PartsQuery{Template: name, Compare: []int{a, b}}
	q.FilterGroup, q.Zone = group, f.Zone().String()
	answer, err := p.records.Statistics(c.Context(), c.Identity(), q)
	if err != nil {
		return nil, err
	}

	v := &comparison{VersionComparison: *answer.Comparison, Max: wire.ComparedMax}
	for _, m := range v.Metrics {
		if v.A.Requests > 0 && v.B.Requests > 0 && m.CountA+m.CountB > 0 {
			v.Rows = append(v.Rows, newComparedRow(m))
		}
	}

	return v, nil
}

func newComparedRow(m wire.ComparedMetric) comparedRow {
	row := comparedRow{ComparedMetric: m, Shown: number.OfMetric(m)}
	if m.Low == nil {
		return row
	}

	reach := max(math.Abs(*m.Low), math.Abs(*m.High))
	place := func(v float64) float64 {
		if reach == 0 {
			return 50
		}
		return math.Round(50 + 46*v/reach)
	}
	row.From, row.At, row.To = place(*m.Low), place(m.Difference), place(*m.High)

	return row
}

const backtestsPerPage = 6

// backtestView is what a backtest shows: past requests of a template, and what another
// version would have sent for them.
type backtestView struct {
	templateHead
	With   int // the version to test
	Sent   int // the version that the requests were sent with; 0 for any
	Select []int
	Rows   []backtestRow // those that change first
	Differ int           // how many of them
	Older  string        // the addresses of pages
	First  string

	Command string // tries the version on these requests
}

type backtestRow struct {
	RequestID  string
	AcceptedAt time.Time
	Version    *int
	Variables  string
	Response   string // the beginning of the original response
	Scores     []wire.Score
	Price      *float64
	LatencyMS  *float64
	Diff       []textdiff.Row // nil if the same would be sent
	History    int            // messages that the app added to the template's own; they are not compared
	Fault      string         // why the version could not be rendered
	Warning    string
}

// changed returns 1 if another text would be sent, or none can be, and else 0.
func (r *backtestRow) changed() int {
	if r.Diff == nil && r.Fault == "" {
		return 0
	}
	return 1
}

func (p *pages) backtestPage(c *frame.Exchange, head templateHead) (err error) {
	v := backtestView{templateHead: head, Select: head.latestVersions(comparedMax)}
	v.With, err = versionParam(c, "v", head.Latest())
	if err != nil {
		return err
	}
	v.Sent, err = versionParam(c, "sent", 0)
	if err != nil {
		return err
	}

	sent, line := "", ""
	if v.Sent > 0 {
		sent = strconv.Itoa(v.Sent)
		line = "version:" + sent
	}
	v.Command = experimentCommand(head, v.With, line)

	page, err := requestsOf(c, head.Name, v.Sent).List(c.Context(), p.records, c.Identity(),
		wire.Search{PerPage: backtestsPerPage, Cursor: c.FormValue("cursor")})
	if err != nil {
		return err
	}
	for _, found := range page.Items {
		row, err := p.backtest(c, &v, found.RequestID)
		if wire.IsCode(err, wire.CodeNotFound) && len(v.Rows) > 0 {
			// The request was deleted since the search.
			continue
		}
		if err != nil {
			return err
		}
		v.Rows = append(v.Rows, row)
	}
	slices.SortStableFunc(v.Rows, func(a, b backtestRow) int { return b.changed() - a.changed() })
	for i := range v.Rows {
		v.Differ += v.Rows[i].changed()
	}

	link := func(cursor string) string {
		return address.Template("/template/backtest", head.Name,
			"v", strconv.Itoa(v.With), "sent", sent, "cursor", cursor)
	}
	if c.FormValue("cursor") != "" {
		v.First = link("")
	}
	if page.NextCursor != nil {
		v.Older = link(*page.NextCursor)
	}

	return c.Show(http.StatusOK, "backtest", head.Name+" · Backtest", "templates", v)
}

// backtest renders version v.With with the variables of one request, and compares the
// messages with those that were sent.
func (p *pages) backtest(c *frame.Exchange, v *backtestView, id string) (backtestRow, error) {
	r, err := p.records.Request(c.Context(), c.Identity(), id)
	if err != nil {
		return backtestRow{}, err
	}

	sent := calls.Read(r.Request)
	row := backtestRow{
		RequestID:  r.RequestID,
		AcceptedAt: r.AcceptedAt,
		Response:   truncate(transcript(sent.Output)),
		Scores:     r.Scores,
		Price:      r.Price,
		LatencyMS:  r.LatencyMS,
	}

	variables := map[string]json.RawMessage{}
	if r.Prompt != nil {
		row.Version = r.Prompt.Version
		if raw := string(r.Prompt.InputVariables); raw != "" && raw != "null" {
			row.Variables = shownVariables(raw)
			if json.Unmarshal(r.Prompt.InputVariables, &variables) != nil {
				row.Fault = "Its variables are not an object."
				return row, nil
			}
		}
	}

	// For any model: only the messages are compared.
	rendered, err := p.templates.Fetch(c.Context(), c.Identity(), v.Name, wire.TemplateFetch{
		Selector:  wire.Selector{Version: v.With},
		Provider:  plainProvider,
		Model:     "any",
		Variables: variables,
	})
	if wire.IsCode(err, wire.CodeInvalid) {
		row.Fault = wire.AsError(err).Message
		return row, nil
	}
	if err != nil {
		return row, err
	}

	row.Warning = wire.OrZero(rendered.Warning)
	now := calls.Read(encoded(map[string]any{"kwargs": rendered.LLMKwargs}))
	own := ownMessages(sent.Input, now.Input)
	row.History = len(sent.Input) - len(own)
	row.Diff = textdiff.Lines(truncate(transcript(own)), truncate(transcript(now.Input)))

	return row, nil
}

// alignedMax bounds the comparisons of messages with each other.
const alignedMax = 100_000

// ownMessages returns those of the sent messages that stand for the template's own: apps add what was
// said before, and the answers of tools. If none stands for any, all do.
func ownMessages(sent, template []calls.Message) []calls.Message {
	if len(sent) <= len(template) || len(sent)*len(template) > alignedMax {
		return sent
	}
	says := make([]string, len(sent))
	for i := range sent {
		says[i] = conversation.MessageText(&sent[i])
	}

	// From the end, for the newest messages are what the template was filled in with. Each of its
	// messages is the last one that says the same, or else the last one in its role.
	var own []calls.Message
	end := len(sent)
	for i := len(template) - 1; i >= 0; i-- {
		wanted, at := conversation.MessageText(&template[i]), -1
		for j := end - 1; j >= i; j-- {
			if sent[j].Role != template[i].Role {
				continue
			}
			if says[j] == wanted {
				at = j
				break
			}
			// Of instructions, the first counts.
			if at < 0 || isInstruction(sent[j].Role) {
				at = j
			}
		}
		if at >= 0 {
			end = at
			own = append(own, sent[at])
		}
	}
	slices.Reverse(own)
	if len(own) == 0 {
		return sent
	}

	return own
}

func isInstruction(role string) bool { return role == "system" || role == "developer" }

// listedBytesMax bounds a text that is shown among many.
const listedBytesMax = 4 << 10

func truncate(s string) string {
	if len(s) <= listedBytesMax {
		return s
	}

	return strings.ToValidUTF8(s[:listedBytesMax], "") + "\n… (cut)"
}

// shownVariables indents variables, unless they are long.
func shownVariables(raw string) string {
	if laid := markup.Indent(raw); len(raw) < listedBytesMax && laid != "" {
		return laid
	}

	return truncate(raw)
}

// shownFinding is a finding with the name that the form shows for its place.
type shownFinding struct {
	Field   string // of the form, such as "text-1"; "" if it is not about one
	Line    int    // in the field
	Place   string // such as "Message 2, line 1, column 7"
	Message string
}

// textPath matches the path of a finding in a text: the index of the message, and that of
// the block.
var textPath = regexp.MustCompile(`^(?:messages\[(\d+)\]\.)?(content\[(\d+)\])\.`)

// shownFindings names the places of findings.
func shownFindings(findings []wire.Finding) []shownFinding {
	shown := make([]shownFinding, len(findings))
	for i, f := range findings {
		shown[i] = shownFinding{Place: f.Path, Message: f.Message}

		m := textPath.FindStringSubmatch(f.Path)
		if m == nil {
			continue
		}

		// A completion has no messages. Its text is in the form's first one.
		index, name := 0, "Text"
		if m[1] != "" {
			index, _ = strconv.Atoi(m[1])
			name = fmt.Sprintf("Message %d", index+1)
		}
		if m[3] != "0" {
			name += ", " + m[2]
		} else {
			shown[i].Line = f.Line
		}

		shown[i].Field = "text-" + strconv.Itoa(index)
		shown[i].Place = fmt.Sprintf("%s, line %d, column %d", name, f.Line, f.Column)
	}

	return shown
}

// FindingsAt returns the findings about a field of the form, such as "text-1".
func (v editView) FindingsAt(field string) (at []shownFinding) {
	findings := v.Refused
	if len(findings) == 0 {
		findings = v.Preview.Findings
	}
	for _, f := range findings {
		if f.Field == field {
			at = append(at, f)
		}
	}

	return at
}

// keywords are those of JSON Schema whose values are checked, with the kinds of these.
var keywords = map[string]string{
	"type": "type", "required": "strings", "enum": "values",
	"title": "string", "description": "string", "format": "string", "pattern": "string", "$ref": "string",
	"properties": "schemas", "patternProperties": "schemas", "$defs": "schemas", "definitions": "schemas",
	"items": "schema", "additionalProperties": "schema", "contains": "schema", "not": "schema",
	"anyOf": "list", "oneOf": "list", "allOf": "list", "prefixItems": "list",
}

// kinds are those of values: the bytes with which one may begin, the kind of the values in it, and what
// a message calls it.
var kinds = map[string]struct{ begins, each, name string }{
	"type":    {`"[`, "type", "a type or a list of types"},
	"string":  {`"`, "", "a string"},
	"strings": {`[`, "string", "a list of strings"},
	"values":  {`[`, "", "a list of values"},
	"schema":  {`{tf`, "", `a schema, such as {"type": "string"}`},
	"schemas": {`{`, "schema", "an object with a schema for each name"},
	"list":    {`[`, "schema", "a list of schemas"},
}

var schemaTypes = strings.Fields("string number integer boolean object array null")

// schemaCheck walks through the parameters of a tool, which are a JSON Schema.
type schemaCheck struct {
	tool     int
	text     []byte
	findings []shownFinding
}

// schemaFindingsMax bounds what is reported about one tool.
const schemaFindingsMax = 10

// schemaFindings returns what of the parameters of tools no provider accepts. Text that is not JSON is
// left to publish.
func (d *draft) schemaFindings() (findings []shownFinding) {
	for i, t := range d.Tools {
		c := schemaCheck{tool: i, text: []byte(t.Parameters)}
		if jsonscan.Valid(c.text) {
			c.value("schema", jsonscan.SkipSpace(c.text, 0))
		}
		findings = append(findings, c.findings[:min(len(c.findings), schemaFindingsMax)]...)
	}

	return findings
}

// value checks the value at a byte, which must be of a kind.
func (c *schemaCheck) value(kind string, at int) {
	k, first := kinds[kind], c.text[at]

	switch {
	case !strings.ContainsRune(k.begins, rune(first)):
		c.report(at, "must be "+k.name)
	case kind == "type" && first == '"':
		name := jsonscan.Unquote(c.text[at:jsonscan.SkipValue(c.text, at)])
		if !slices.Contains(schemaTypes, name) {
			c.report(at, fmt.Sprintf("%q is not one of the types %s", name, strings.Join(schemaTypes, ", ")))
		}
	case first == '{' || first == '[':
		for m := jsonscan.Enter(c.text, at); m.Next(); m.At = jsonscan.SkipValue(c.text, m.At) {
			within := k.each
			if kind == "schema" {
				within = keywords[jsonscan.Unquote(m.Name)]
			}
			if within != "" {
				c.value(within, m.At)
			}
		}
	}
}

func (c *schemaCheck) report(at int, message string) {
	line, column := jsonscan.Position(c.text, at)
	c.findings = append(c.findings, shownFinding{
		Field:   "parameters-" + strconv.Itoa(c.tool),
		Line:    line,
		Place:   fmt.Sprintf("Tool %d, parameters, line %d, column %d", c.tool+1, line, column),
		Message: message,
	})
}
