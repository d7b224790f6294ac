package templates

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"

	"promptspool/api/calls"
	"promptspool/api/dashboard/filter"
	"promptspool/api/dashboard/frame"
	"promptspool/api/dashboard/number"
	"promptspool/api/dashboard/textdiff"
	"promptspool/api/wire"
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

	source := func(version int) (wire.RawTemplate, error) {
		return p.templates.Source(c.Context(), c.Identity(), head.Name, wire.Selector{Version: version})
	}
	left, err := source(v.A)
	if err != nil {
		return err
	}
	right, err := source(v.B)
	if err != nil {
		return err
	}
	v.Rows = textdiff.Lines(versionText(left), versionText(right))
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
