package words

import (
	"bytes"
	"iter"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Sought yields where a text has what a search looks for, by the start, in bytes. One place may
// overlap the next.
type Sought func(text string) iter.Seq2[int, int]

// Seek returns what an operator of a filter looks for in texts. It is nil if that has no place in
// them.
func Seek(operator, value string) Sought {
	p := part{strings.ToLower(value), operator == "starts_with", operator == "ends_with"}
	switch operator {
	case "matches":
		if phrase, ok := ParsePhrase(value); ok {
			return phrase.All
		}
	case "is", "eq":
		p.begins, p.ends = true, true
		fallthrough
	case "contains", "starts_with", "ends_with":
		if value != "" {
			return p.all
		}
	}

	return nil
}

// part is a part of a text in any case.
type part struct {
	low          string // in lower case
	begins, ends bool   // it is where the text does
}

// all returns where a text has the part. No place overlaps the next.
func (p part) all(text string) iter.Seq2[int, int] {
	return func(yield func(start, end int) bool) {
		low := strings.ToLower(text)
		at, lowAt := 0, 0
		// A letter may be longer or shorter in lower case.
		goTo := func(place int) int {
			for lowAt < place {
				r, size := utf8.DecodeRuneInString(text[at:])
				at += size
				lowAt += utf8.RuneLen(unicode.ToLower(r))
			}
			return at
		}

		for {
			n := strings.Index(low[lowAt:], p.low) + lowAt
			if p.ends {
				n = len(low) - len(p.low)
			}
			isThere := n >= lowAt && strings.HasPrefix(low[n:], p.low)
			if !isThere || p.begins && n > 0 || !yield(goTo(n), goTo(n+len(p.low))) || p.begins || p.ends {
				return
			}
		}
	}
}

// Around returns a place in a text with about width characters on each side. They are cut at words,
// with … where something is cut, and have one blank for each run of them.
func Around(text string, start, end, width int) (before, match, after string) {
	return Tail(text[:start], width), Head(text[start:end], 2*width), Head(text[end:], width)
}

// Head returns about the first width characters of a text; see Around.
func Head(text string, width int) string {
	end := min(utf8.UTFMax*width, len(text))
	for end < len(text) && !utf8.RuneStart(text[end]) {
		end--
	}
	kept := []rune(strings.TrimRight(foldBlanks(text[:end]), " "))
	if end == len(text) && len(kept) <= width {
		return string(kept)
	}

	// Where there are no blanks, it is cut anywhere.
	head := string(kept[:min(width, len(kept))])
	if blank := strings.LastIndexByte(head, ' '); blank > 0 {
		head = head[:blank]
	}

	return head + "…"
}

// Tail returns about the last width characters of a text; see Around.
func Tail(text string, width int) string {
	from := max(len(text)-utf8.UTFMax*width, 0)
	for from > 0 && !utf8.RuneStart(text[from]) {
		from--
	}
	kept := []rune(strings.TrimLeft(foldBlanks(text[from:]), " "))
	if from == 0 && len(kept) <= width {
		return string(kept)
	}

	tail := string(kept[max(len(kept)-width, 0):])
	if _, rest, _ := strings.Cut(tail, " "); rest != "" {
		tail = rest
	}

	return "…" + tail
}

// foldBlanks makes one blank of each run of them.
func foldBlanks(text string) string {
	blank := false
	return strings.Map(func(r rune) rune {
		was := blank
		switch blank = unicode.IsSpace(r); {
		case blank && was:
			return -1
		case blank:
			return ' '
		}
		return r
	}, text)
}

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
		// An accent alone is "", not nil.
		p.prefix = fold([]byte{}, text[w.Start:])
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
