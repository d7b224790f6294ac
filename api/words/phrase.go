package words

import (
	"bytes"
	"iter"
	"strings"
	"unicode/utf8"
)

// Phrase is a number of words that follow each other in a text, in any case and with any accents. Any
// blanks and signs may be between them; but two words that the phrase joins, by a sign like - or _ or
// by nothing, must be joined in the text as well.
type Phrase struct {
	words  []wanted
	prefix []byte // the last word begins with it; nil if it is that word
}

// wanted is a word of a phrase.
type wanted struct {
	hash   uint64
	joined bool
}

// ParsePhrase returns the phrase that a text stands for. With a * at its end, its last word may go
// on. ok is false if the text has no words.
func ParsePhrase(text string) (p Phrase, ok bool) {
	text, prefix := strings.CutSuffix(text, "*")
	w := Scanner{text: text}
	for w.Scan() {
		p.words = append(p.words, wanted{w.Hash, w.Joined})
	}
	if len(p.words) == 0 {
		return p, false
	}

	if prefix && w.End == len(text) {
		p.prefix = fold([]byte{}, text[w.Start:]) // an accent alone is "", not nil
		p.words = p.words[:len(p.words)-1]
	}

	return p, true
}

// In reports whether a text has the phrase.
func (p *Phrase) In(text string) bool {
	for range p.All(text) {
		return true
	}

	return false
}

// All returns where a text has the phrase, by the start. One place may overlap the next.
func (p *Phrase) All(text string) iter.Seq2[int, int] {
	return func(yield func(start, end int) bool) {
		for w := (Scanner{text: text}); w.Scan(); {
			if !p.matches(&w, 0) {
				continue
			}
			rest := w
			if end, ok := p.follows(&rest); ok && !yield(w.Start, end) {
				return
			}
		}
	}
}

// follows reports whether the rest of the phrase is after its first word, and where it ends.
func (p *Phrase) follows(w *Scanner) (end int, ok bool) {
	n := len(p.words)
	if p.prefix != nil {
		n++
	}
	for i := 1; i < n; i++ {
		if !w.Scan() || !p.matches(w, i) {
			return 0, false
		}
	}

	return w.End, true
}

// matches reports whether a word is that of a place in the phrase.
func (p *Phrase) matches(w *Scanner, i int) bool {
	if i == len(p.words) {
		if first := w.text[w.Start]; first < utf8.RuneSelf && len(p.prefix) > 0 && ascii[first] != p.prefix[0] {
			return false // most words
		}
		w.folded = fold(w.folded[:0], w.text[w.Start:w.End])
		return bytes.HasPrefix(w.folded, p.prefix)
	}

	return w.Hash == p.words[i].hash && (i == 0 || w.Joined || !p.words[i].joined)
}
