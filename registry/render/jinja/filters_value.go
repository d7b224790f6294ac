package jinja

import (
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"promptspool/registry/render/language"
)

func filterAbs(x *run, v any, _ arguments) any {
	n, ok := toNumber(v)
	if !ok {
		fail("takes abs of %s", typeName(v))
	}

	if i, ok := n.(int64); ok {
		if i < 0 {
			return x.subtract(0, i)
		}
		return i
	}

	return math.Abs(n.(float64))
}

func filterDefault(x *run, v any, a arguments) any {
	_, isUndefined := v.(*undefined)
	if !isUndefined && (!a.truth(1, "boolean", false) || x.truth(v)) {
		return v
	}

	other, ok := a.get(0, "default_value")
	if !ok {
		return ""
	}

	return other
}

func filterString(x *run, v any, _ arguments) any { return x.str(v) }

func filterToJSON(x *run, v any, a arguments) any { return x.toJSON(v, a.number(0, "indent", 0)) }

func filterFloat(x *run, v any, a arguments) any {
	// A number needs no parsing; what cannot be read gives the default.
	if n, ok := toNumber(v); ok {
		return toFloat(n)
	}
	if s, ok := v.(string); ok {
		x.read(len(s))
		if f, ok := parseFloat(withoutUnderscores(s)); ok {
			return f
		}
	}

	if other, ok := a.get(0, "default"); ok {
		return other
	}

	return 0.0
}

// parseFloat reads what Python's float() does: Go's hexadecimal form is not part of it.
func parseFloat(s string) (float64, bool) {
	f, err := strconv.ParseFloat(s, 64)
	return f, err == nil && !strings.ContainsAny(s, "xXpP")
}

func withoutUnderscores(s string) string { return strings.ReplaceAll(strings.TrimSpace(s), "_", "") }

func filterInt(x *run, v any, a arguments) any {
	switch v := v.(type) {
	case int64, bigInteger:
		return v
	case bool:
		n, _ := toNumber(v)
		return n
	case float64:
		if math.Abs(v) < 1<<63 {
			return int64(v)
		}
	case string:
		x.read(len(v))
		if n, ok := parseInt(withoutUnderscores(v)); ok {
			return n
		}
	}

	if other, ok := a.get(0, "default"); ok {
		return other
	}

	return int64(0)
}

// parseInt reads an integer, or else a float, which it truncates.
func parseInt(s string) (int64, bool) {
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return n, true
	}
	if f, ok := parseFloat(s); ok && math.Abs(f) < 1<<63 {
		return int64(f), true
	}

	return 0, false
}

func filterLength(x *run, v any, _ arguments) any {
	switch v := v.(type) {
	case string:
		x.read(len(v))
		return int64(utf8.RuneCountInString(v))
	case *listValue:
		return int64(len(v.items))
	case *dictValue:
		return int64(len(v.keys))
	case *undefined:
		// Reports it as missing.
		x.str(v)
		return int64(0)
	}

	fail("takes the length of %s", typeName(v))
	return nil
}

func filterRound(x *run, v any, a arguments) any {
	n, ok := toNumber(v)
	if !ok {
		fail("rounds %s", typeName(v))
	}
	precision := a.number(0, "precision", 0)
	if precision > 300 || precision < -300 {
		fail("rounds to %d digits", precision)
	}

	// 10 to the power of 300 is still finite; the check above keeps it so.
	f, scale := toFloat(n), math.Pow(10, float64(precision))
	switch method := a.text(1, "method", "common"); method {
	case "ceil":
		return math.Ceil(f*scale) / scale
	case "floor":
		return math.Floor(f*scale) / scale
	case "common":
	default:
		fail("rounds by %q; it may be common, ceil or floor", language.Shorten(method))
	}

	if _, isInt := n.(int64); isInt && precision >= 0 {
		return n
	}
	if precision < 0 {
		return math.RoundToEven(f*scale) / scale
	}

	// Through decimal, as Python rounds: f*scale would round a binary fraction that is
	// slightly off.
	rounded, _ := strconv.ParseFloat(strconv.FormatFloat(f, 'f', precision, 64), 64)

	return rounded
}
