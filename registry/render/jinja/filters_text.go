package jinja

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"promptspool/registry/render/python"
)

var htmlEscaper = strings.NewReplacer(
	"&", "&amp;", "<", "&lt;", ">", "&gt;", "'", "&#39;", `"`, "&#34;")

var htmlUnescaper = strings.NewReplacer(
	"&lt;", "<", "&gt;", ">", "&#39;", "'", "&#34;", `"`, "&quot;", `"`, "&amp;", "&")

func filterEscape(x *run, s string, _ arguments) any {
	x.pay(4 * len(s))
	return htmlEscaper.Replace(s)
}

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

// Striptags removes comments first: they may contain tags.
var (
	htmlComment = regexp.MustCompile(`(?s)<!--.*?-->`)
	htmlTag     = regexp.MustCompile(`<[^>]*>`)
)

// withoutTags removes comments and tags, and shortens every run of whitespace to one space.
func withoutTags(s string) string {
	s = htmlTag.ReplaceAllLiteralString(htmlComment.ReplaceAllLiteralString(s, ""), "")

	return strings.Join(strings.Fields(htmlUnescaper.Replace(s)), " ")
}

func filterURLEncode(x *run, v any, _ arguments) any {
	// A string keeps its slashes, a form does not.
	d, ok := v.(*dictValue)
	if !ok {
		return strings.ReplaceAll(x.urlQuoted(x.str(v)), "%2F", "/")
	}

	form := func(v any) string { return strings.ReplaceAll(x.urlQuoted(x.str(v)), "%20", "+") }
	var pairs []string
	for i, key := range d.keys {
		pairs = append(pairs, form(key)+"="+form(d.values[i]))
	}

	return strings.Join(pairs, "&")
}

// urlQuoted escapes as Python's urllib.parse.quote does with safe="".
func (x *run) urlQuoted(s string) string {
	x.pay(3 * len(s))
	s = strings.ReplaceAll(url.QueryEscape(s), "+", "%20")
	return strings.ReplaceAll(s, "%7E", "~")
}

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
		// A width may make the text much longer than the value.
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
	// Before fmt sees them: it writes as many bytes as a width or a precision says.
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

	// The remaining letters are for numbers.
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
