package number

import (
	"math"
	"strconv"

	"promptspool/api/wire"
)

// Metric is a metric of a comparison in words. Unknown texts are dashes.
type Metric struct{ Title, A, B, Difference, Interval, Verdict string }

// metrics are the titles of metrics and how their values are printed.
var metrics = map[string]struct {
	title string
	text  func(float64) string
}{
	"score":       {"", func(v float64) string { return strconv.FormatFloat(v, 'f', 1, 64) }},
	"errors":      {"Errors", Percent},
	"cost":        {"Cost per 1,000 calls", func(v float64) string { return Dollars(1000 * v) }},
	"latency_p50": {"Latency p50", Seconds},
	"latency_p95": {"Latency p95", Seconds},
	"tokens":      {"Tokens per call", func(v float64) string { return Count(math.Round(v)) }},
}

// OfMetric prints how a metric differs between two versions.
func OfMetric(m wire.ComparedMetric) Metric {
	value, text := metrics[m.Metric].text, metrics[m.Metric].text
	if m.IsShareOfTrue() {
		value, text = wire.TrueShare, Percent
	}
	signed := func(v float64) string {
		size, sign := text(math.Abs(v)), "+"
		switch {
		case size == text(0): // also one that is rounded to it
			return size
		case v < 0:
			sign = "−"
		}
		return sign + size
	}

	// Of a version alone, only means are known.
	shown := Metric{metrics[m.Metric].title + m.Name, "–", "–", "–", "–", verdict(m)}
	both := m.CountA > 0 && m.CountB > 0
	if both || m.CountA > 0 && m.Method == "welch" {
		shown.A = value(m.A)
	}
	if both || m.CountB > 0 && m.Method == "welch" {
		shown.B = value(m.B)
	}
	if both {
		shown.Difference = signed(m.Difference)
	}
	if m.Low != nil {
		shown.Interval = signed(*m.Low) + " to " + signed(*m.High)
	}

	return shown
}

// verdict returns the verdict on a metric in words.
func verdict(m wire.ComparedMetric) string {
	switch {
	case m.Verdict == "":
		return "–"
	case m.Verdict == wire.VerdictNoDifference && m.Needed == 0:
		return "no difference shown"
	case m.Verdict == wire.VerdictNoDifference:
		return "no difference shown (" + more(m) + " would tell)"
	case m.Verdict == wire.VerdictTooFew:
		return "too few: " + more(m)
	case m.Verdict == wire.VerdictDifferent && m.Difference < 0:
		return "lower"
	case m.Verdict == wire.VerdictDifferent:
		return "higher"
	}

	return m.Verdict
}

// more returns how many more values are needed.
func more(m wire.ComparedMetric) string {
	of := " more calls of each"
	if m.Name != "" {
		of = " more scores of each"
	}

	return Grouped(m.Needed) + of
}
