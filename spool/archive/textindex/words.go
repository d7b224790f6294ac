package textindex

import (
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// words takes a text apart: into runs of letters, digits and marks, and each character of a
// script that has no blanks between words. Case and accents do not count.
type words struct {
	text string
	next int // where to go on

	hash       uint64 // of the word, folded
	size       int    // bytes of the word, folded
	start, end int    // where it is in the text
	char       bool   // it is one character of a script without blanks
	joined     bool   // one connector at most is between it and the word before

	folded []byte
}

// FNV-1a: words are short.
const (
	hashOffset = 14695981039346656037
	hashPrime  = 1099511628211
)

const connector = 1 // in ascii: it joins the parts of a name, a number, a date or an address

// ascii has the lower case of what words are made of, connector, or 0 for all else.
var ascii = func() (fold [256]byte) {
	for c := range fold[:utf8.RuneSelf] {
		switch {
		case 'a' <= c && c <= 'z' || '0' <= c && c <= '9':
			fold[c] = byte(c)
		case 'A' <= c && c <= 'Z':
			fold[c] = byte(c + 'a' - 'A')
		}
	}
	for _, c := range "_-./:@#'+" {
		fold[c] = connector
	}
	return fold
}()

// scan goes to the next word, and reports whether there is one.
func (w *words) scan() bool {
	text, before, i := w.text, w.end, w.next
	for i < len(text) && ascii[text[i]] <= connector {
		if text[i] >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(text[i:])
			if IsWord(r) {
				break
			}
			i += size - 1
		}
		i++
	}
	if i == len(text) {
		return false
	}

	w.joined = w.size > 0 && (i == before || i == before+1 && ascii[text[before]] == connector)
	w.start, w.char = i, false
	h := uint64(hashOffset)
	for ; i < len(text); i++ {
		c := ascii[text[i]]
		if c <= connector {
			break
		}
		h = (h ^ uint64(c)) * hashPrime
	}
	// Nearly all words are ASCII.
	if i < len(text) && text[i] >= utf8.RuneSelf {
		return w.scanOther(i)
	}
	w.hash, w.size, w.end, w.next = h, i-w.start, i, i

	return true
}

// scanOther reads a word that has other characters than ASCII from i on.
func (w *words) scanOther(i int) bool {
	text := w.text
	for i < len(text) {
		r, size := utf8.DecodeRuneInString(text[i:])
		if isChar(r) {
			// It is a word by itself, and ends the one before.
			if i == w.start {
				w.char = true
				i += size
			}
			break
		}
		if !IsWord(r) {
			break
		}
		i += size
	}
	w.end, w.next = i, i
	w.folded = fold(w.folded[:0], text[w.start:i])
	w.hash, w.size = hashOffset, len(w.folded)
	for _, c := range w.folded {
		w.hash = (w.hash ^ uint64(c)) * hashPrime
	}

	return true
}

// IsWord reports whether a character is part of a word.
func IsWord(r rune) bool { return unicode.In(r, unicode.L, unicode.N, unicode.M) }

// isChar reports whether a character is of a script that has no blanks between words.
func isChar(r rune) bool {
	return r >= 0x0e00 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao,
		unicode.Khmer, unicode.Myanmar)
}

// fold appends a word without its accents, in lower case.
func fold(b []byte, word string) []byte {
	for _, r := range norm.NFKD.String(word) {
		switch r = unicode.ToLower(r); {
		case unicode.Is(unicode.Mn, r):
			continue
		case r == 'ς': // at the end of a word; in upper case both are Σ
			r = 'σ'
		}
		b = utf8.AppendRune(b, r)
	}
	return b
}
