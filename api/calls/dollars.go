package calls

import (
	"errors"
	"strconv"
	"strings"
)

// Dollars is an exact amount of US dollars, in billionths of one. Up to nine billion
// dollars fit.
type Dollars int64

// dollar is one dollar.
const dollar Dollars = 1_000_000_000

// String returns the amount in decimal, without trailing zeros: 0.00000275.
func (d Dollars) String() string {
	sign := ""
	n := uint64(d)
	if d < 0 {
		// As unsigned, because the smallest int64 has no positive counterpart.
		sign, n = "-", -n
	}

	s := sign + strconv.FormatUint(n/uint64(dollar), 10)
	if rest := n % uint64(dollar); rest > 0 {
		// They have leading zeros.
		digits := strconv.FormatUint(rest+uint64(dollar), 10)[1:]
		s += "." + strings.TrimRight(digits, "0")
	}

	return s
}

// Float returns the nearest floating-point number of dollars, for statistics and filters.
func (d Dollars) Float() float64 { return float64(d) / float64(dollar) }

// MarshalJSON writes a number of dollars.
func (d Dollars) MarshalJSON() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalJSON reads a number of dollars, rounded to billionths.
func (d *Dollars) UnmarshalJSON(raw []byte) error {
	if string(raw) == "null" {
		return nil
	}
	parsed, err := ParseDollars(string(raw))
	*d = parsed

	return err
}

var errDollars = errors.New("is not an amount of dollars below 9,000,000,000")

// ParseDollars reads a number of dollars, written as in JSON. It rounds half away from
// zero to billionths.
func ParseDollars(s string) (Dollars, error) {
	n, err := ParseDecimal(s, 9)
	if err != nil || n >= 9e18 || n <= -9e18 {
		return 0, errDollars
	}

	return Dollars(n), nil
}

var errDecimal = errors.New("is not a decimal number of a usual size")

// ParseDecimal reads a decimal number and returns it times 10 to the power of places.
//
// It takes an exponent, and rounds half away from zero, without any binary fraction.
func ParseDecimal(s string, places int) (int64, error) {
	sign := int64(1)
	if rest, minus := strings.CutPrefix(s, "-"); minus {
		s, sign = rest, -1
	}

	mantissa, exponent, hasExponent := strings.Cut(strings.ToLower(s), "e")
	shift := 0
	if hasExponent {
		var err error
		shift, err = strconv.Atoi(exponent)
		// So many zeros may be written below, so their number is bounded.
		if err != nil || shift > 400 || shift < -400 {
			return 0, errDecimal
		}
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := whole + fraction
	if digits == "" || strings.Trim(digits, "0123456789") != "" || len(digits) > 400 {
		return 0, errDecimal
	}

	// The result is the first cut digits; the next one decides on rounding.
	cut := len(whole) + shift + places
	if cut < 0 {
		return 0, nil
	}
	digits += strings.Repeat("0", max(cut+1-len(digits), 0))
	n, err := strconv.ParseInt("0"+digits[:cut], 10, 64)
	if err != nil || n > 1<<62 {
		return 0, errDecimal
	}
	if digits[cut] >= '5' {
		n++
	}

	return sign * n, nil
}
