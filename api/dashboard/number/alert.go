package number

import (
	"fmt"
	"strings"

	"promptspool/api/wire"
)

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
	text := fmt.Sprintf("%s %s %s in %d min", Measure(r.Measure), r.When, limit, r.Window)
	if r.Windows > 1 {
		text += fmt.Sprintf(", %d times in a row", r.Windows)
	}
	if r.By != "" {
		text += ", by " + r.Key()
	}
	return text
}
