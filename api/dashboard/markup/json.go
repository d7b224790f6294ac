package markup

import (
	"bytes"
	"cmp"
	"encoding/json"
	"html/template"
	"strings"

	"promptspool/api/wire/jsonscan"
)

// LayOut is Indent but for what would become much longer by it: what is nested deeply is mostly
// indentation.
func LayOut(text string) (string, bool) {
	if laidOutBytes([]byte(text)) > 8*len(text)+4096 {
		return "", false
	}
	laid := Indent(text)

	return laid, laid != ""
}

// Pretty returns JSON for people: indented, if it is an object or an array.
func Pretty(raw json.RawMessage) string { return cmp.Or(Indent(string(raw)), string(raw)) }

// Indent indents a JSON object or array. It returns "" for anything else.
func Indent(text string) string {
	var b bytes.Buffer
	text = strings.TrimSpace(text)
	if text == "" || text[0] != '{' && text[0] != '[' || json.Indent(&b, []byte(text), "", "  ") != nil {
		return ""
	}

	return b.String()
}

// laidOutBytes returns about how many bytes a JSON text has with its indentation.
func laidOutBytes(text []byte) int {
	size, depth := len(text), 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			i = jsonscan.SkipString(text, i) - 1
			continue
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		case ',':
		default:
			continue
		}
		size += 1 + 2*max(depth, 0)
	}

	return size
}

// JSON returns a JSON text in colours.
func JSON(text string, marks []Mark) template.HTML {
	var b strings.Builder
	w := writer{&b, text, marks}
	languages["json"].scan(text, func(kind string, from, to int) { w.token(kind, from, to) })

	return template.HTML(b.String())
}

// token writes a piece of code of a kind.
func (w *writer) token(kind string, from, to int) {
	if kind == "" {
		w.write(from, to, escape)
		return
	}

	// The kinds are our own words.
	_, _ = w.out.Write([]byte(`<span class="` + kind + `">`))
	w.write(from, to, escape)
	_, _ = w.out.Write([]byte(`</span>`))
}
