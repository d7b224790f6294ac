package redact

import (
	"bytes"
	"strconv"
)

// edit replaces a part of a text. The edits of a text are in order and do not overlap.
type edit struct {
	from, to int
	text     string
}

// edited returns a copy of text with the edits applied.
func edited(text []byte, edits []edit) []byte {
	size := len(text)
	for _, e := range edits {
		size += len(e.text) - (e.to - e.from)
	}

	out, copied := make([]byte, 0, size), 0
	for _, e := range edits {
		out = append(append(out, text[copied:e.from]...), e.text...)
		copied = e.to
	}
	return append(out, text[copied:]...)
}

// pieces is a text that arrived in pieces.
type pieces struct {
	text    []byte // may alias the body, so it is never changed in place
	ends    []int  // of each piece in text
	changed bool
}

// edit applies edits of the whole text. The replacement of something that spans pieces
// goes into the first one.
func (p *pieces) edit(edits []edit) {
	if len(edits) == 0 {
		return
	}

	// By how much the edits before an end grew the text, and the edit after them.
	grown, next := 0, 0
	for i, end := range p.ends {
		// Every edit that ends in this piece moves its end, and those of all later ones.
		for next < len(edits) && edits[next].to <= end {
			grown += len(edits[next].text) - (edits[next].to - edits[next].from)
			next++
		}
		p.ends[i] = end + grown
		// The edit continues in the next piece: this one ends after the whole
		// replacement.
		if next < len(edits) && edits[next].from < end {
			p.ends[i] = edits[next].from + grown + len(edits[next].text)
		}
	}
	p.text, p.changed = edited(p.text, edits), true
}

// escape is a character that is written as \u00XX, maybe with more backslashes, where
// JSON is inside a text.
type escape struct {
	at       int // in the text without escapes
	from, to int // in the text as it is
}

// unescape reads the printable ASCII characters that are written as escapes. Where there
// are none, it returns text itself.
func unescape(text []byte) ([]byte, []escape) {
	if !bytes.Contains(text, []byte(`\u00`)) {
		return text, nil
	}

	var out []byte
	var escapes []escape
	copied := 0
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' {
			continue
		}
		from := i
		// JSON in a text in a text has an escape's backslash doubled each time.
		for i+1 < len(text) && text[i+1] == '\\' {
			i++
		}
		c, ok := hexadecimal(text[i+1:])
		if !ok {
			continue
		}

		out = append(out, text[copied:from]...)
		copied = i + 1 + len("u00XX")
		escapes = append(escapes, escape{len(out), from, copied})
		out = append(out, c)
		i = copied - 1
	}
	return append(out, text[copied:]...), escapes
}

// hexadecimal reads u00XX.
func hexadecimal(text []byte) (byte, bool) {
	if len(text) < 5 || string(text[:3]) != "u00" {
		return 0, false
	}
	c, err := strconv.ParseUint(string(text[3:5]), 16, 8)
	return byte(c), err == nil && c >= ' ' && c < 0x7f
}

// places brings edits of a text without escapes to where they are in the text with them.
func places(edits []edit, escapes []escape) {
	next, before := 0, escape{at: -1}
	place := func(at int) int {
		// Edits and escapes are both in order, so one pass over the escapes is enough for
		// all.
		for next < len(escapes) && escapes[next].at < at {
			before = escapes[next]
			next++
		}
		// An escape is replaced as a whole, with its backslashes.
		if next < len(escapes) && escapes[next].at == at {
			return escapes[next].from
		}
		return before.to + at - before.at - 1
	}
	for i := range edits {
		edits[i].from = place(edits[i].from)
		edits[i].to = place(edits[i].to)
	}
}
