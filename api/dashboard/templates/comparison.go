package templates

import (
	"math"
	"strconv"

	"promptspool/api/dashboard/filter"
	"promptspool/api/dashboard/frame"
	"promptspool/api/dashboard/number"
	"promptspool/api/wire"
)

// comparison is how two versions differ by their calls, as the component shows it.
type comparison struct {
	A, B wire.ComparedCalls
	Rows []comparedRow // nil unless both have calls
	Max  int64         // calls of each version that are compared
}

// comparedRow is a metric of a comparison. A text is "" if it is not known.
type comparedRow struct {
	wire.ComparedMetric
	Title, A, B, Difference, Low, High string

	// The interval in a drawing from 0 to 100, in whose middle there is no difference.
	From, At, To float64
}

// compareVersions compares two versions by the calls that a filter finds.
func (p *pages) compareVersions(c *frame.Exchange, f filter.Filter, name string, a, b int) (*comparison, error) {
	group, err := f.Group()
	if err != nil {
		return nil, err
	}
	answer, err := p.records.CompareVersions(c.Context(), c.Identity(), wire.ComparisonQuery{
		Template: name, VersionA: a, VersionB: b, FilterGroup: group,
	})
	if err != nil {
		return nil, err
	}

	v := &comparison{A: answer.A, B: answer.B, Max: wire.ComparedMax}
	for _, m := range answer.Metrics {
		if v.A.Requests > 0 && v.B.Requests > 0 && m.CountA+m.CountB > 0 {
			v.Rows = append(v.Rows, newComparedRow(m))
		}
	}

	return v, nil
}

// metricTexts are the titles of metrics and how their values are printed.
var metricTexts = map[string]struct {
	title string
	text  func(float64) string
}{
	"score":       {"", func(v float64) string { return strconv.FormatFloat(v, 'f', 1, 64) }},
	"errors":      {"Errors", number.Percent},
	"cost":        {"Cost per 1,000 calls", func(v float64) string { return number.Dollars(1000 * v) }},
	"latency_p50": {"Latency p50", number.Seconds},
	"latency_p95": {"Latency p95", number.Seconds},
	"tokens":      {"Tokens per call", func(v float64) string { return number.Count(math.Round(v)) }},
}

func newComparedRow(m wire.ComparedMetric) comparedRow {
	texts := metricTexts[m.Metric]
	row := comparedRow{ComparedMetric: m, Title: texts.title + m.Name}
	value := texts.text
	if m.IsShareOfTrue() {
		value, texts.text = wire.TrueShare, number.Percent
	}
	if m.CountA > 0 {
		row.A = value(m.A)
	}
	if m.CountB > 0 {
		row.B = value(m.B)
	}
	signed := func(v float64) string {
		switch {
		case v < 0:
			return "−" + texts.text(-v)
		case v > 0:
			return "+" + texts.text(v)
		}
		return texts.text(0)
	}
	if m.CountA > 0 && m.CountB > 0 {
		row.Difference = signed(m.B - m.A)
	}
	if m.Low == nil {
		return row
	}

	row.Low, row.High = signed(*m.Low), signed(*m.High)
	reach := max(math.Abs(*m.Low), math.Abs(*m.High))
	place := func(v float64) float64 {
		if reach == 0 {
			return 50
		}
		return math.Round(50 + 46*v/reach)
	}
	row.From, row.At, row.To = place(*m.Low), place(m.B-m.A), place(*m.High)

	return row
}
