package dashboard

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/dustin/go-humanize/english"
)

// latency prints seconds for a table.
func latency(seconds *float64) string {
	if seconds == nil {
		return "–"
	}

	// Each unit is left where its number would be rounded to one of the next unit.
	ms, whole := *seconds*1000, int(math.Round(*seconds))
	switch {
	case ms > 0 && ms < 9.95:
		return significant(ms, 2) + " ms"
	case ms < 999.5:
		return fmt.Sprintf("%.0f ms", ms)
	case *seconds < 59.995:
		return fmt.Sprintf("%.2f s", *seconds)
	case whole < 3600:
		return units(whole, 60, "min", "s")
	}
	return units(int(math.Round(*seconds/60)), 60, "h", "min")
}

// units prints a whole number of small units, so many of which are a large one.
func units(n, of int, large, small string) string {
	if n%of == 0 {
		return fmt.Sprintf("%d %s", n/of, large)
	}
	return fmt.Sprintf("%d %s %02d %s", n/of, large, n%of, small)
}

// significant prints a number with so many digits that count, without an exponent.
func significant(v float64, digits int) string {
	rounded, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'g', digits, 64), 64) // it reads what it wrote
	return strconv.FormatFloat(rounded, 'f', -1, 64)
}

// tokens prints a count of tokens.
func tokens(n *int64) string {
	if n == nil {
		return "–"
	}
	return grouped(*n)
}

// cost prints US dollars: cents and above with two decimals, less with as many as tell something.
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

// grouped prints a number with a thin space between its thousands.
func grouped(n int64) string {
	digits := strconv.FormatInt(n, 10)
	head := len(digits) % 3
	if n < 0 || head == 0 && len(digits) == 0 {
		return digits
	}
	out := digits[:head]
	for i := head; i < len(digits); i += 3 {
		if out != "" {
			out += "\u202f"
		}
		out += digits[i : i+3]
	}
	return out
}

// quantity prints a number of things: "1 request", "12 requests".
func quantity(n int64, noun string) string {
	return grouped(n) + " " + english.PluralWord(int(n), noun, "")
}

// spanned prints a stretch of time, roughly.
func spanned(d time.Duration) string {
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

// ahead prints by how much a clock is off.
func ahead(seconds *float64) string {
	switch {
	case seconds == nil:
		return "–"
	case math.Abs(*seconds) < 0.05:
		return "in sync"
	}
	if *seconds < 0 {
		return fmt.Sprintf("%.1f s behind", -*seconds)
	}

	return fmt.Sprintf("%.1f s ahead", *seconds)
}
