// Package markup turns logged texts into HTML: Markdown, JSON, code and plain text, with
// marks in them.
//
// Nothing in a text becomes HTML by itself. A Markdown text may contain no HTML, its
// links lead only to other sites or mail addresses, and its images are links.
//
// A text costs time and memory in proportion to its bytes. The parser of Markdown does not
// promise that, so texts that would be dear are recognised first, and stay plain.
package markup

import (
	"bytes"
	"cmp"
	"encoding/json"
	"html"
	"html/template"
	"io"
	"slices"
	"strings"

	"promptspool/api/wire/jsonscan"
)

// Mark is a range of a text that is marked. The marks of a text are in order, and do not
// overlap.
type Mark struct {
	From, To int    // in bytes
	Variable string // whose value it is; "" for what a search found
}

// Plain returns a text as it is.
func Plain(text string, marks []Mark) template.HTML {
	var b strings.Builder
	w := writer{&b, text, marks}
	w.write(0, len(text), escape)

	return template.HTML(b.String())
}

// escape writes a piece of text as HTML.
func escape(w io.Writer, text string) { _, _ = io.WriteString(w, html.EscapeString(text)) }

// writer writes pieces of a text with its marks.
type writer struct {
	out   io.Writer
	text  string
	marks []Mark
}

// write writes text[from:to], each piece between the ends of marks by itself.
func (w *writer) write(from, to int, piece func(io.Writer, string)) {
	first, _ := slices.BinarySearchFunc(w.marks, from, func(m Mark, from int) int {
		if m.To <= from {
			return -1
		}
		return 1
	})

	for _, m := range w.marks[first:] {
		if m.From >= to {
			break
		}
		begin, end := max(m.From, from), min(m.To, to)
		piece(w.out, w.text[from:begin])
		w.open(m, begin > m.From)
		piece(w.out, w.text[begin:end])
		_, _ = io.WriteString(w.out, "</mark>")
		from = end
	}
	piece(w.out, w.text[from:to])
}

// open opens a piece of a mark. Pieces after the first are not counted as hits.
func (w *writer) open(m Mark, rest bool) {
	tag := `<mark class="hit">`
	switch {
	case rest && m.Variable == "":
		tag = `<mark class="hit rest">`
	case m.Variable != "":
		tag = `<mark title="` + html.EscapeString(m.Variable) + `">`
	}
	_, _ = io.WriteString(w.out, tag)
}

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
