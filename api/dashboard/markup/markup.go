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
	"html"
	"html/template"
	"io"
	"slices"
	"strings"
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
