package words

import (
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
