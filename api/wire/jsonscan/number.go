package jsonscan

import (
	"math"
	"strconv"
)

// Magnitude returns the smallest n for which a JSON number is closer to zero than 10^n. Of
// zero it is math.MinInt. It costs a look at each byte: strconv takes some 20 us for
// a number like 5e-324, whose 6 bytes a caller may repeat.
func Magnitude[T ~string | ~[]byte](number T) int {
	i, magnitude, significant, behind := 0, 0, false, false
	for ; i < len(number) && number[i] != 'e' && number[i] != 'E'; i++ {
		switch c := number[i]; {
		case c == '.':
			behind = true
		// It is a sign.
		case c < '0' || c > '9':
		case !significant && c == '0':
			if behind {
				magnitude--
			}
		default:
			significant = true
			if !behind {
				magnitude++
			}
		}
	}
	if !significant {
		return math.MinInt
	}

	return magnitude + exponent(string(number[i:]))
}

// exponent returns the exponent of a number, which begins with an e, or 0. Of one that no number
// of a body makes up for, it returns so large a one.
func exponent(text string) int {
	if len(text) < 2 {
		return 0
	}
	n, err := strconv.Atoi(text[1:])
	if err != nil || n > math.MaxInt32 || n < -math.MaxInt32 {
		n = math.MaxInt32
		if text[1] == '-' {
			n = -n
		}
	}

	return n
}

// The magnitudes of a double: below the least it has fewer digits, beyond the most it is
// infinite.
const (
	magnitudeLeast = -306
	magnitudeMost  = 308
)

// IsFinite reports whether a double holds a JSON number, perhaps with fewer digits.
func IsFinite[T ~string | ~[]byte](number T) bool {
	switch n := Magnitude(number); {
	case n <= magnitudeMost:
		return true
	case n > magnitudeMost+1:
		return false
	}
	_, err := strconv.ParseFloat(string(number), 64)

	return err == nil
}

// Count returns a JSON number that is whole, not negative and at most 2^53. ok is false for any
// other.
func Count[T ~string | ~[]byte](number T) (n int64, ok bool) {
	const most, digits = 1 << 53, 16
	if len(number) <= digits {
		if n, err := strconv.ParseInt(string(number), 10, 64); err == nil {
			return n, 0 <= n && n <= most
		}
	}
	switch magnitude := Magnitude(number); {
	case magnitude == math.MinInt:
		return 0, true
	case magnitude <= 0 || magnitude > digits || number[0] == '-':
		return 0, false
	}

	x, err := strconv.ParseFloat(string(number), 64)
	if err != nil || x > most || x != math.Trunc(x) {
		return 0, false
	}

	return int64(x), true
}

// Float is strconv.ParseFloat of a JSON number. One that is closer to zero than 1e-306 is zero, because
// strconv would take long for it.
func Float(number string) (float64, error) {
	if Magnitude(number) < magnitudeLeast {
		return 0, nil
	}

	return strconv.ParseFloat(number, 64)
}
