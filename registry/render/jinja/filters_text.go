package jinja

import (
	"fmt"
	"regexp"
	"strings"
)

func filterIndent(x *run, s string, a arguments) any {
	width, ok := a.get(0, "width")
	blanks, isText := width.(string)
	if !ok || !isText {
		n := a.number(0, "width", 4)
		x.payTimes(1, int64(n))
		blanks = strings.Repeat(" ", max(n, 0))
	}

	return x.indent(s, blanks, a.truth(1, "first", false), a.truth(2, "blank", false))
}

// formatPlace matches the place of a value in a format, such as %s, %d or %.2f, and in its group
// those that are supported. %% is a percent sign.
var formatPlace = regexp.MustCompile(`%(?:%|([-0]?\d{0,4}(?:\.\d{1,4})?[sdf])|(?s:.?))`)

// unsupportedPlace returns the first place of a format that is not supported, "" if all are.
func unsupportedPlace(source string) string {
	for _, m := range formatPlace.FindAllStringSubmatch(source, -1) {
		if m[0] != "%%" && m[1] == "" {
			return m[0]
		}
	}

	return ""
}

// filterFormat formats as Python's % does, by position.
func filterFormat(x *run, v any, a arguments) any {
	source := x.str(v)
	var b strings.Builder
	for next := 0; ; {
		m := formatPlace.FindStringIndex(source)
		if m == nil {
			break
		}
		b.WriteString(source[:m[0]])
		place := source[m[0]:m[1]]
		source = source[m[1]:]
		if place == "%%" {
			b.WriteByte('%')
			continue
		}

		// A width may make the text much longer than the value.
		text := x.formatted(place, a.must(next, "a value for each %"))
		x.pay(len(text))
		b.WriteString(text)
		next++
	}
	b.WriteString(source)

	return b.String()
}

func (x *run) formatted(place string, v any) string {
	if unsupportedPlace(place) != "" {
		fail("has %s in a format, which is not supported", place)
	}
	letter := place[len(place)-1]
	if letter == 's' {
		return fmt.Sprintf(place, x.str(v))
	}

	n, ok := toNumber(v)
	switch {
	case !ok:
		fail("formats %s as a number", typeName(v))
	case letter == 'f':
		return fmt.Sprintf(place, toFloat(n))
	}
	i, ok := n.(int64)
	if !ok {
		i = int64(n.(float64))
	}

	return fmt.Sprintf(place, i)
}
