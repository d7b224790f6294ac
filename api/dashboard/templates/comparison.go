package templates

import (
	"math"

	"promptspool/api/dashboard/filter"
	"promptspool/api/dashboard/frame"
	"promptspool/api/dashboard/number"
	"promptspool/api/wire"
)

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
