package python

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
)

// numberBytesMax bounds the numbers that a spec applies to: writing one in another base
// takes time quadratic in its length.
const numberBytesMax = 10_000

var errCharacter = errors.New(
	"whose value is not a character's number, or whose format spec is not for characters")

var errGrouping = errors.New("whose format spec groups digits in a way that its type does not have")

// number writes a JSON number. Python reads one without fraction and exponent as an int,
// any other as a float.
func (s Spec) number(number string) (string, error) {
	switch {
	case len(number) > numberBytesMax:
		return "", fmt.Errorf("whose number is longer than %d digits", numberBytesMax)
	case s.kind == 's':
		return "", errors.New("whose format spec is for texts, and the value is a number")
	case IsInteger(number) && strings.IndexByte("\x00bcdnoxX", s.kind) >= 0:
		return s.integer(number)
	case strings.IndexByte("\x00eEfFgGn%", s.kind) >= 0:
		return s.float(ParseFloat(number))
	}

	return "", errors.New("whose format spec is for integers, and the value is a fraction")
}

func (s Spec) integer(number string) (string, error) {
	if s.precise {
		return "", errors.New("whose format spec has a precision, and the value is an integer")
	}
	n, ok := new(big.Int).SetString(number, 10)
	if !ok {
		return "", errors.New("whose value is not a number")
	}
	if s.kind == 'c' {
		return s.character(n)
	}

	base, groupSize := 10, 3
	switch s.kind {
	case 'b':
		base, groupSize = 2, 4
	case 'o':
		base, groupSize = 8, 4
	case 'x', 'X':
		base, groupSize = 16, 4
	}
	// Commas are for decimal digits only; the type n groups by the locale.
	if s.grouping != 0 && (s.kind == 'n' || s.grouping == ',' && base != 10) {
		return "", errGrouping
	}

	sign := s.signOf(n.Sign() < 0)
	if s.alternate && base != 10 {
		sign += "0" + string(s.kind)
	}
	text := n.Abs(n).Text(base)
	if s.kind == 'X' {
		text = strings.ToUpper(text)
	}

	return s.layout(sign, text, "", groupSize), nil
}

// character writes the character with this code point.
func (s Spec) character(n *big.Int) (string, error) {
	isCodePoint := n.IsInt64() && n.Int64() >= 0 && n.Int64() <= 0x10ffff &&
		(n.Int64() < 0xd800 || n.Int64() >= 0xe000)
	if s.sign != 0 || s.grouping != 0 || s.alternate || !isCodePoint {
		return "", errCharacter
	}

	return s.pad("", string(rune(n.Int64())), '>'), nil
}

func (s Spec) float(x float64) (string, error) {
	if s.precise && s.precision > WidthMax {
		return "", fmt.Errorf("whose format spec has a precision above %d", WidthMax)
	}
	if s.grouping != 0 && s.kind == 'n' {
		return "", errGrouping
	}

	// Signbit, not < 0: Python writes the sign of -0.0 too.
	sign := s.signOf(math.Signbit(x))
	x = math.Abs(x)
	if s.kind == '%' {
		x *= 100
	}
	text := s.floatText(x)
	if s.kind == '%' {
		text += "%"
	}

	// Only the digits before the point are grouped.
	whole := 0
	for whole < len(text) && text[whole] >= '0' && text[whole] <= '9' {
		whole++
	}

	return s.layout(sign, text[:whole], text[whole:], 3), nil
}

// floatText writes x, which is not negative, without sign, width and grouping.
func (s Spec) floatText(x float64) string {
	if math.IsInf(x, 1) {
		if s.kind == 'E' || s.kind == 'F' || s.kind == 'G' {
			return "INF"
		}
		return "inf"
	}

	precision := 6
	if s.precise {
		precision = s.precision
	}
	flags := "%"
	if s.alternate {
		flags = "%#"
	}

	switch s.kind {
	case 0:
		// Without a type and a precision, format writes what str does.
		if !s.precise {
			return FloatRepr(x)
		}
		return significant(x, max(precision, 1))
	case '%', 'f', 'F':
		return fmt.Sprintf(flags+".*f", precision, x)
	case 'e', 'E':
		return fmt.Sprintf(flags+".*"+string(s.kind), precision, x)
	case 'G':
		return fmt.Sprintf(flags+".*G", max(precision, 1), x)
	}

	return fmt.Sprintf(flags+".*g", max(precision, 1), x)
}

// significant writes x with so many significant digits, and at least one after the point.
// This is what Python does for a spec without a type.
func significant(x float64, precision int) string {
	scientific := strconv.FormatFloat(x, 'e', precision-1, 64)
	exponent := exponentOf(scientific)
	if exponent < -4 || exponent >= precision-1 {
		mantissa, tail, _ := strings.Cut(scientific, "e")
		return trimZeros(mantissa) + "e" + tail
	}

	text := trimZeros(strconv.FormatFloat(x, 'f', precision-1-exponent, 64))
	if IsInteger(text) {
		text += ".0"
	}

	return text
}

func trimZeros(decimal string) string {
	if IsInteger(decimal) {
		return decimal
	}
	return strings.TrimSuffix(strings.TrimRight(decimal, "0"), ".")
}

func (s Spec) signOf(negative bool) string {
	switch {
	case negative:
		return "-"
	case s.sign == '+' || s.sign == ' ':
		return string(s.sign)
	}
	return ""
}

// layout joins the sign, the digits (grouped) and what follows them, and fills up to the
// width. Zeros that fill are grouped like digits.
func (s Spec) layout(sign, digits, rest string, groupSize int) string {
	if s.grouping == 0 || digits == "" {
		return s.pad(sign, digits+rest, '>')
	}

	if s.zero && s.align == 0 || s.fill == '0' && s.align == '=' {
		// Counted before they are written: zero by zero, the digits would be copied
		// thousands of times.
		wanted := s.width - len(sign) - len(rest)
		n := len(digits)
		for n+(n-1)/groupSize < wanted {
			n++
		}
		digits = strings.Repeat("0", n-len(digits)) + digits
	}

	var b strings.Builder
	for i, d := range []byte(digits) {
		if i > 0 && (len(digits)-i)%groupSize == 0 {
			b.WriteByte(s.grouping)
		}
		b.WriteByte(d)
	}

	return s.pad(sign, b.String()+rest, '>')
}
