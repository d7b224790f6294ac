// Package number prints numbers, amounts and durations for people.
package number

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/dustin/go-humanize/english"

	"promptspool/api/wire"
)

// Latency prints seconds for a table.
func Latency(seconds *float64) string {
	if seconds == nil {
		return "–"
	}

	// A unit is left where its number would be rounded up to one of the next unit.
	ms, whole := *seconds*1000, int(math.Round(*seconds))
	switch {
	case ms > 0 && ms < 9.95:
		return significant(ms, 2) + " ms"
	case ms < 999.5:
		return fmt.Sprintf("%.0f ms", ms)
	case *seconds < 9.995:
		return fmt.Sprintf("%.2f s", *seconds)
	case *seconds < 59.95:
		return fmt.Sprintf("%.1f s", *seconds)
	case whole < 3600:
		return twoUnits(whole, 60, "min", "s")
	}

	return twoUnits(int(math.Round(*seconds/60)), 60, "h", "min")
}

// Span prints the time from the first of something to the last, which may be days.
func Span(d time.Duration) string {
	if d >= time.Hour {
		return Roughly(d)
	}

	return Latency(new(d.Seconds()))
}

// LatencyMS prints milliseconds for a table.
func LatencyMS(ms *float64) string {
	if ms == nil {
		return "unknown"
	}
	return Latency(new(*ms / 1000))
}

// twoUnits prints n small units, of which perLarge are one large unit.
func twoUnits(n, perLarge int, large, small string) string {
	return fmt.Sprintf("%d %s %02d %s", n/perLarge, large, n%perLarge, small)
}

// significant prints a number with so many significant digits, and without an exponent.
func significant(v float64, digits int) string {
	return strconv.FormatFloat(rounded(v, digits), 'f', -1, 64)
}

// rounded returns a number with so many significant digits.
func rounded(v float64, digits int) float64 {
	v, _ = strconv.ParseFloat(strconv.FormatFloat(v, 'g', digits, 64), 64)

	return v
}

// Tokens prints a number of tokens.
func Tokens(n *int64) string {
	if n == nil {
		return "–"
	}

	return Grouped(*n)
}

// Cost prints US dollars: a dollar and above with two decimals, smaller amounts with two
// significant digits.
func Cost(dollars *float64) string {
	switch {
	case dollars == nil:
		return "–"
	case *dollars == 0 || *dollars >= 1:
		return fmt.Sprintf("$%.2f", *dollars)
	}
	decimals := max(2, 1-int(math.Floor(math.Log10(math.Abs(*dollars)))))

	return "$" + strconv.FormatFloat(*dollars, 'f', decimals, 64)
}

// Dollars prints US dollars as Cost does.
func Dollars(v float64) string { return Cost(&v) }

// Grouped prints a number with commas between its thousands, as the terminal and the documentation do.
func Grouped(n int64) string { return humanize.Comma(n) }

// Quantity prints a number of things, such as "1 request" or "12 requests".
func Quantity(n int64, noun string) string {
	return Grouped(n) + " " + english.PluralWord(int(n), noun, "")
}

// Bytes prints a number of bytes.
func Bytes(n int64) string { return humanize.IBytes(uint64(max(n, 0))) }

// Percent prints a share in percent.
func Percent(share float64) string { return fmt.Sprintf("%.1f%%", share*100) }

// Roughly prints a duration in its largest unit.
func Roughly(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%.0f s", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%.0f min", d.Minutes())
	case d < 48*time.Hour:
		return fmt.Sprintf("%.0f h", d.Hours())
	}

	return fmt.Sprintf("%.0f days", d.Hours()/24)
}

// RoughlySeconds prints seconds in their largest unit.
func RoughlySeconds(seconds float64) string {
	return Roughly(time.Duration(seconds * float64(time.Second)))
}

// ClockOffset prints by how much a clock is ahead of ours.
func ClockOffset(seconds *float64) string {
	switch {
	case seconds == nil:
		return "–"
	case math.Abs(*seconds) < 0.05:
		return "in sync"
	case *seconds < 0:
		return fmt.Sprintf("%.1f s behind", -*seconds)
	}

	return fmt.Sprintf("%.1f s ahead", *seconds)
}

// Count prints a number on a chart's axis, or one that may have a fraction.
func Count(v float64) string {
	switch whole := math.Round(v); {
	case whole < 1e3:
		return significant(v, 4)
	case whole < 1e4:
		return Grouped(int64(whole))
	}
	// A prefix is left where its number would be rounded up to one of the next prefix.
	scaled, prefix := humanize.ComputeSI(rounded(v, 3))

	return significant(scaled, 3) + " " + prefix
}

// Brief prints a number in a column: in full below ten thousand, or else with three digits.
func Brief(n int64) string {
	if n < 1e4 {
		return Grouped(n)
	}
	scaled, prefix := humanize.ComputeSI(rounded(float64(n), 3))
	decimals := 3 - len(strconv.Itoa(int(scaled)))

	return strconv.FormatFloat(scaled, 'f', decimals, 64) + " " + prefix
}

// Seconds prints a latency on a chart's axis.
func Seconds(v float64) string {
	if v == 0 {
		return "0"
	}

	return strings.TrimSuffix(strings.TrimSuffix(Latency(&v), " 00 s"), " 00 min")
}

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
	"latency":     {"Latency", Seconds},
	"tokens":      {"Tokens per call", func(v float64) string { return Count(math.Round(v)) }},
}

// OfMetric prints how a metric differs between two versions.
func OfMetric(m wire.ComparedMetric) Metric {
	value, text := metrics[m.Metric].text, metrics[m.Metric].text
	switch {
	case m.IsShareOfTrue():
		value, text = wire.TrueShare, Percent
	case m.Metric == "score" && max(math.Abs(m.A), math.Abs(m.B)) <= 1:
		text = func(v float64) string { return strconv.FormatFloat(v, 'f', 3, 64) }
		value = text
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
	both, ofOne := m.CountA > 0 && m.CountB > 0, m.Method != "newcombe" && m.Method != "bootstrap"
	if both || m.CountA > 0 && ofOne {
		shown.A = value(m.A)
	}
	if both || m.CountB > 0 && ofOne {
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

// Measured prints what an alert has measured, in its unit.
func Measured(measure string, v *float64) string {
	switch {
	case v == nil:
		return "–"
	case measure == "cost":
		return Cost(v)
	case measure == "error_rate":
		return Percent(*v)
	case strings.HasPrefix(measure, "latency_"):
		return Latency(v)
	}
	return Count(*v)
}

// Measure prints the name of what an alert measures, such as "latency p95".
func Measure(measure string) string { return strings.ReplaceAll(measure, "_", " ") }

// Condition prints when an alert fires, such as "cost above $10.00 in 60 min, by customer".
func Condition(r wire.AlertRule) string {
	limit := Measured(r.Measure, r.Threshold)
	if r.IsChange() {
		limit = "by more than " + Count(*r.Threshold) + "%"
	}
	text := fmt.Sprintf("%s %s %s in %s min", Measure(r.Measure), r.When, limit, Grouped(int64(r.Window)))
	if r.Windows > 1 {
		text += fmt.Sprintf(", %d times in a row", r.Windows)
	}
	if r.By != "" {
		text += ", by " + r.Key()
	}
	return text
}
