package query

import (
	"math"
	"strconv"
	"strings"
	"time"

	"promptspool/api/wire"
)

// Measure is a number that a set of rows has, such as its cost: one of wire.AlertMeasures.
type Measure string

// MeasuredColumns are the columns that Measure.Add looks at.
var MeasuredColumns = tallyColumns

// Measured adds up rows for a Measure. The zero value has none.
type Measured struct {
	Requests int64 // rows

	total   int64 // errors, billionths of a dollar or tokens
	latency histogram
	scored  int64 // rows with the score
	scores  fixed
}

// Add counts a row.
func (m Measure) Add(s *Measured, row *wire.Row) {
	s.Requests++
	name, ofScore := strings.CutPrefix(string(m), wire.ScoreSort)
	switch {
	case ofScore:
		s.addScore(row, name)
	case m == "cost" && row.Price != nil:
		s.total = plus(s.total, nanos(*row.Price))
	case m == "tokens":
		s.total = plus(s.total, plus(wire.OrZero(row.InputTokens), wire.OrZero(row.OutputTokens)))
	case m == "error_rate" && row.Status != "SUCCESS":
		s.total++
	case strings.HasPrefix(string(m), latencyPrefix) && row.Latency != nil:
		s.latency.add(time.Duration(math.Round(*row.Latency*1e9)), 1)
	}
}

// addScore counts a row's number or boolean of a name: the mean of its authors.
func (s *Measured) addScore(row *wire.Row, name string) {
	if len(row.Scores) == 0 {
		return
	}
	for _, j := range judge(nil, row.Scores) {
		if j.name == name && j.kind != wire.ScoreCategory {
			s.scores.add(j.exact, 1)
			s.scored++
		}
	}
}

const latencyPrefix = "latency_p"

// Value returns the number; nil if no row has what is measured. Sums of no rows are 0.
func (m Measure) Value(s *Measured) *float64 {
	percent, ofLatency := strings.CutPrefix(string(m), latencyPrefix)
	switch {
	case m == "requests":
		return new(float64(s.Requests))
	case m == "cost":
		return new(dollars(s.total))
	case m == "tokens":
		return new(float64(s.total))
	case m == "error_rate" && s.Requests > 0:
		return new(float64(s.total) / float64(s.Requests))
	case ofLatency:
		q, _ := strconv.ParseFloat(percent, 64)
		return s.latency.quantile(q / 100)
	case s.scored > 0:
		return new(s.scores.float() / float64(s.scored))
	}

	return nil
}
