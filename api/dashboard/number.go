package dashboard

import (
	"fmt"
	"strconv"
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
	return "$" + strconv.FormatFloat(*dollars, 'g', 2, 64)
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
