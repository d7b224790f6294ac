package dashboard

import (
	"fmt"
	"math"
	"strconv"
	"time"
)

// latency prints seconds for a table.
func latency(seconds *float64) string {
	switch {
	case seconds == nil:
		return "–"
	case *seconds < 1:
		return fmt.Sprintf("%.0f ms", *seconds*1000)
	case *seconds < 60:
		return fmt.Sprintf("%.2f s", *seconds)
	}
	return fmt.Sprintf("%.0f min %02.0f s", float64(int(*seconds)/60), float64(int(*seconds)%60))
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
		return "right"
	}
	return fmt.Sprintf("%+.1f s", *seconds)
}
