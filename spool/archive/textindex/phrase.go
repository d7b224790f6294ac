package textindex

import (
	"bytes"
	"slices"
)

// Phrase is a number of words that follow each other in a text, in any case and with any accents. Any
// blanks and signs may be between them; but two words that the phrase joins, by a sign like - or _ or
// by nothing, must be joined in the text as well.
type Phrase struct {
	words  []wanted
	prefix []byte // the last word begins with it; nil if it is that word
	terms  []Term
}

// wanted is a word of a phrase.
type wanted struct {
	hash   uint64
	joined bool
}

// NewPhrase returns the phrase of a text. With prefix set, its last word may go on. ok is false if
// the text has no words.
func NewPhrase(text string, prefix bool) (p Phrase, ok bool) {
	w := words{text: text}
	var ends []int // of terms, by word
	for t := new(terms); w.scan(); {
		p.words = append(p.words, wanted{w.hash, w.joined})
		p.terms = t.of(&w, p.terms)
		ends = append(ends, len(p.terms))
	}
	if len(p.words) == 0 {
		return p, false
	}

	// No index has the hash of a part of a word.
	if prefix && w.end == len(text) {
		last := len(p.words) - 1
		p.prefix = fold(nil, text[w.start:w.end])
		p.words = p.words[:last]
		p.terms = p.terms[:slices.Concat([]int{0}, ends)[last]]
	}
	slices.Sort(p.terms)
	p.terms = slices.Compact(p.terms)

	return p, true
}

// Terms returns the terms that each text with the phrase has, in order. A phrase of a single
// character, or of the beginning of a word, has none.
func (p *Phrase) Terms() []Term { return p.terms }

// Find returns where a text first has the phrase, from a place on. ok is false if it does not.
func (p *Phrase) Find(text string, from int) (start, end int, ok bool) {
	for w := (words{text: text, next: from}); w.scan(); {
		if p.matches(&w, 0) {
			start, rest := w.start, w
			if end, ok := p.follows(&rest); ok {
				return start, end, true
			}
		}
	}

	return 0, 0, false
}

// follows reports whether the rest of the phrase is after its first word, and where it ends.
func (p *Phrase) follows(w *words) (end int, ok bool) {
	n := len(p.words)
	if p.prefix != nil {
		n++
	}
	for i := 1; i < n; i++ {
		if !w.scan() || !p.matches(w, i) {
			return 0, false
		}
	}

	return w.end, true
}

// matches reports whether a word is that of a place in the phrase.
func (p *Phrase) matches(w *words, i int) bool {
	if i == len(p.words) {
		w.folded = fold(w.folded[:0], w.text[w.start:w.end])
		return bytes.HasPrefix(w.folded, p.prefix)
	}

	return w.hash == p.words[i].hash && (i == 0 || w.joined || !p.words[i].joined)
}
