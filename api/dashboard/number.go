package dashboard

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize/english"
)

// latency prints seconds for a table.
func latency(seconds *float64) string {
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

// latencyMS prints milliseconds for a table.
func latencyMS(ms *float64) string {
	if ms == nil {
		return "unknown"
	}
	seconds := *ms / 1000

	return latency(&seconds)
}

// twoUnits prints n small units, of which perLarge are one large unit.
func twoUnits(n, perLarge int, large, small string) string {
	return fmt.Sprintf("%d %s %02d %s", n/perLarge, large, n%perLarge, small)
}

// significant prints a number with so many significant digits, and without an exponent.
func significant(v float64, digits int) string {
	rounded, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'g', digits, 64), 64)

	return strconv.FormatFloat(rounded, 'f', -1, 64)
}

// tokens prints a number of tokens.
func tokens(n *int64) string {
	if n == nil {
		return "–"
	}

	return grouped(*n)
}

// cost prints US dollars: a dollar and above with two decimals, smaller amounts with two
// significant digits.
func cost(dollars *float64) string {
	switch {
	case dollars == nil:
		return "–"
	case *dollars == 0 || *dollars >= 1:
		return fmt.Sprintf("$%.2f", *dollars)
	}
	decimals := max(2, 1-int(math.Floor(math.Log10(math.Abs(*dollars)))))

	return "$" + strconv.FormatFloat(*dollars, 'f', decimals, 64)
}

func dollars(v float64) string { return cost(&v) }

// grouped prints a number with a thin space between its thousands.
func grouped(n int64) string {
	digits := strconv.FormatInt(n, 10)
	if n < 0 {
		return digits
	}

	head := len(digits) % 3
	out := digits[:head]
	for i := head; i < len(digits); i += 3 {
		// A narrow blank that breaks no line, since a comma is a decimal point to some.
		if out != "" {
			out += "\u202f"
		}
		out += digits[i : i+3]
	}

	return out
}

// quantity prints a number of things, such as "1 request" or "12 requests".
func quantity(n int64, noun string) string {
	return grouped(n) + " " + english.PluralWord(int(n), noun, "")
}

func percent(share float64) string { return fmt.Sprintf("%.1f%%", share*100) }

// roughly prints a duration in its largest unit.
func roughly(d time.Duration) string {
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

func roughSeconds(seconds float64) string {
	return roughly(time.Duration(seconds * float64(time.Second)))
}

// clockOffset prints by how much a clock is ahead of ours.
func clockOffset(seconds *float64) string {
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

// count prints a number on a chart's axis.
func count(v float64) string {
	switch {
	case v >= 1e12:
		return significant(v/1e12, 3) + " T"
	case v >= 1e9:
		return significant(v/1e9, 3) + " G"
	case v >= 1e6:
		return significant(v/1e6, 3) + " M"
	case v >= 1e4:
		return significant(v/1e3, 3) + " k"
	}

	return significant(v, 4)
}

// seconds prints a latency on a chart's axis.
func seconds(v float64) string {
	if v == 0 {
		return "0"
	}

	return strings.TrimSuffix(strings.TrimSuffix(latency(&v), " 00 s"), " 00 min")
}
