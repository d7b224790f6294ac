package requests

import (
	"time"

	"promptspool/cmd/promptspool/internal/print"
)

// How many bars a trend has; more parts than that go into one bar.
const (
	trendBarsMin = 8
	trendBarsMax = 24
)

// How the parts in one bar become one number.
func sum(parts []float64) (n float64) {
	for _, p := range parts {
		n += p
	}
	return n
}

func mean(parts []float64) float64 { return sum(parts) / float64(max(len(parts), 1)) }

// trend draws a series, the oldest on the left.
//
// A server leaves out parts without requests, so the time between two dates may be empty.
func trend(points map[string]float64, dates []string, bars int, join func([]float64) float64) string {
	if len(dates) == 0 {
		return ""
	}
	at := func(s string) time.Time {
		if t, err := time.Parse(time.RFC3339, s); err == nil {
			return t
		}
		t, _ := time.Parse(time.DateOnly, s)
		return t
	}

	first, last := at(dates[0]), at(dates[len(dates)-1])
	step := last.Sub(first)
	for i := 1; i < len(dates); i++ {
		step = min(step, at(dates[i]).Sub(at(dates[i-1])))
	}

	width := 1
	if step > 0 {
		width = int(min(last.Sub(first)/step+1, time.Duration(bars)))
	}

	parts := make([][]float64, width)
	for date, n := range points {
		i := 0
		if span := last.Sub(first); span > 0 {
			i = int(float64(at(date).Sub(first)) / float64(span) * float64(width-1))
		}
		i = min(max(i, 0), width-1)
		parts[i] = append(parts[i], n)
	}

	heights := make([]float64, width)
	for i := range parts {
		heights[i] = join(parts[i])
	}
	return print.Sparks(heights)
}
