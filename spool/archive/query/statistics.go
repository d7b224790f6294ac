package query

import (
	"errors"

	"promptspool/api/wire"
)

// Statistics returns what Analyze and TemplateStatistics make of rows. It defines the
// meaning of both.
func Statistics(rows []wire.Row, q wire.StatisticsQuery) (wire.Analytics, wire.TemplateStatistics, error) {
	a, v := NewAnalytics(q), NewTemplateVersions(q)
	for i := range rows {
		if err := errors.Join(a.Add(&rows[i]), v.Add(&rows[i])); err != nil {
			return wire.Analytics{}, wire.TemplateStatistics{}, err
		}
	}

	return a.Answer(), v.Answer(), nil
}
