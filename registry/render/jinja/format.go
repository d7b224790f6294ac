package jinja

import (
	"fmt"
	"strings"

	"promptspool/registry/render/python"
)

// formatPercent formats as Python's % does, by position or by name. It is the filter
// format, too.
func formatPercent(x *run, v any, a arguments) any {
	source := x.str(v)
	var b strings.Builder
	next := 0
	for {
		i := strings.IndexByte(source, '%')
		if i < 0 {
			break
		}
		b.WriteString(source[:i])
		source = source[i+1:]
		if strings.HasPrefix(source, "%") {
			b.WriteByte('%')
			source = source[1:]
			continue
		}

		var value any
		if strings.HasPrefix(source, "(") {
			name, rest, ok := strings.Cut(source[1:], ")")
			if !ok {
				fail("has a %%( in a format that no ) closes")
			}
			source = rest
			value = a.must(len(a.list), name)
		} else {
			value = a.must(next, "a value for each %")
			next++
		}

		isLetter := func(r rune) bool { return !strings.ContainsRune("0123456789.-+ #", r) }
		end := strings.IndexFunc(source, isLetter)
		if end < 0 {
			fail("has a %% in a format that nothing follows")
		}
		text := x.percent(source[:end], source[end], value)
		x.pay(len(text))
		b.WriteString(text)
		source = source[end+1:]
	}
	b.WriteString(source)

	return b.String()
}

// percent formats one value. flags is what is written between % and the letter.
func (x *run) percent(flags string, letter byte, v any) string {
	notDigit := func(r rune) bool { return r < '0' || r > '9' }
	for _, n := range strings.FieldsFunc(flags, notDigit) {
		if len(n) > 4 {
			fail("has a format with a width above %d", python.WidthMax)
		}
	}

	switch letter {
	case 's':
		return fmt.Sprintf("%"+flags+"s", x.str(v))
	case 'r':
		return fmt.Sprintf("%"+flags+"s", x.repr(v))
	}

	n, ok := toNumber(v)
	if !ok {
		fail("formats %s as a number", typeName(v))
	}
	switch letter {
	case 'd', 'i', 'x', 'X', 'o':
		i, ok := n.(int64)
		if !ok {
			i = int64(n.(float64))
		}
		if letter == 'i' {
			letter = 'd'
		}
		return fmt.Sprintf("%"+flags+string(letter), i)
	case 'f', 'F', 'e', 'E', 'g', 'G':
		return fmt.Sprintf("%"+flags+string(letter), toFloat(n))
	}

	fail("has %%%c in a format, which is not known", letter)
	return ""
}
