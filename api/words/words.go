// Package words takes texts apart into words, and finds words, phrases and parts in them.
//
// Words are runs of letters, digits and marks in any script, and single characters where a script
// has no blanks between words. Case and accents do not count.
//
//	words.go   a text, word by word
//	phrase.go  words that follow each other
//	sought.go  what a search looks for, and where a text has it
package words

import (
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Folding is the number of what a Scanner makes of a text; that of 0.1.0 is 1. Each index of words stores
// it: an index of another number is not asked, and is rebuilt in the background. Any change of the words
// that a text has, of their hashes or of which are joined takes the next number.
const Folding = 1

// Scanner takes a text apart into its words. Not safe for concurrent use.
type Scanner struct {
	Hash       uint64 // of the word, folded
	Size       int    // bytes of the word, folded
	Start, End int    // where it is in the text
	Char       bool   // it is one character of a script without blanks
	Joined     bool   // one connector at most is between it and the word before

	text   string
	next   int // where to go on
	folded []byte
}

// Reset makes the scanner begin with a text, in the memory that it has.
func (w *Scanner) Reset(text string) { *w = Scanner{text: text, folded: w.folded} }

// Words are hashed by FNV-1a, because they are short.
const (
	hashOffset = 14695981039346656037
	HashPrime  = 1099511628211
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

// Scan goes to the next word, and reports whether there is one.
func (w *Scanner) Scan() bool {
	text, before, i := w.text, w.End, w.next
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

	w.Joined = w.Size > 0 && (i == before || i == before+1 && ascii[text[before]] == connector)
	w.Start, w.Char = i, false
	h := uint64(hashOffset)
	for ; i < len(text); i++ {
		c := ascii[text[i]]
		if c <= connector {
			break
		}
		h = (h ^ uint64(c)) * HashPrime
	}
	// Nearly all words are ASCII.
	if i < len(text) && text[i] >= utf8.RuneSelf {
		return w.scanOther(i)
	}
	w.Hash, w.Size, w.End, w.next = h, i-w.Start, i, i

	return true
}

// scanOther reads a word that has other characters than ASCII from i on.
func (w *Scanner) scanOther(i int) bool {
	text := w.text
	for i < len(text) {
		r, size := utf8.DecodeRuneInString(text[i:])
		if isChar(r) {
			// It is a word by itself, and ends the one before.
			if i == w.Start {
				w.Char = true
				i += size
			}
			break
		}
		if !IsWord(r) {
			break
		}
		i += size
	}
	w.End, w.next = i, i
	w.folded = fold(w.folded[:0], text[w.Start:i])
	w.Hash, w.Size = hashOffset, len(w.folded)
	for _, c := range w.folded {
		w.Hash = (w.Hash ^ uint64(c)) * HashPrime
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
