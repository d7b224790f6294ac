package jinja

import (
	"bytes"
	"net/url"
	"strings"
)

func filterCenter(x *run, s string, a arguments) any {
	if _, ok := a.get(0, "width"); !ok {
		a.list = []any{int64(80)}
	}

	return x.padded(s, "center", a)
}

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

// withoutTags removes <...> and <!-- -->, and shortens every run of whitespace to one
// space.
func withoutTags(s string) string {
	b := []byte(s)
	b = cutOut(b, "<!--", "-->")
	b = cutOut(b, "<", ">")

	return strings.Join(strings.Fields(htmlUnescaper.Replace(string(b))), " ")
}

// cutOut removes everything from begin to end, one stretch after the other, as Jinja
// does: what is left on both sides of a stretch may form the next begin. It works within
// b, in one pass.
func cutOut(b []byte, begin, end string) []byte {
	kept, rest := 0, 0 // b[:kept] stays, b[rest:] has not been looked at
	for {
		from := bytes.Index(b[rest:], []byte(begin))
		if from < 0 {
			break
		}
		length := bytes.Index(b[rest+from:], []byte(end))
		if length < 0 {
			break
		}
		kept += copy(b[kept:], b[rest:rest+from])
		rest += from + length + len(end)

		// Look again at what may be the first half of another begin.
		seam := min(kept, len(begin)-1)
		kept, rest = kept-seam, rest-seam
		copy(b[rest:], b[kept:kept+seam])
	}
	kept += copy(b[kept:], b[rest:])

	return b[:kept]
}

func filterURLEncode(x *run, v any, _ arguments) any {
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
