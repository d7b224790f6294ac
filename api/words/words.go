// Package words takes texts apart into words, and finds words, phrases and parts in them.
//
// Words are runs of letters, digits and marks in any script, and single characters where a script
// has no blanks between words. Case, accents and invisible characters do not count.
//
//	words.go   a text, word by word
//	sought.go  what a search looks for, such as words that follow each other, and where a text has it
package words

import (
	"bytes"
	"cmp"
	"iter"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/xrash/smetrics"
	"golang.org/x/text/unicode/norm"
	"golang.org/x/text/unicode/rangetable"
)

// Folding is the number of what an index of words has of a call; that of 0.1.0 is 1. Each index stores it:
// one of another number is not asked, and is rebuilt in the background. Any change of the words that a text
// has, of their hashes, of which are joined, or of the texts that are read in bodies takes the next number.
const Folding = 3

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

// connectors has the characters that do so. The others are typed or written in place of those in ASCII:
// hyphens, apostrophes, and all of them in full width.
const connectors = "_-./:@#'+" + "‐‑‒–−\u05be" + "´ʻʼ‘’‛′\u05f3" + "＿－．／：＠＃＇＋"

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
	for _, c := range connectors {
		if c < utf8.RuneSelf {
			fold[c] = connector
		}
	}
	return fold
}()

// Scan goes to the next word, and reports whether there is one.
func (w *Scanner) Scan() bool {
	text, before, i := w.text, w.End, w.next
	for i < len(text) && ascii[text[i]] <= connector {
		if text[i] >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(text[i:])
			if !IsGap(r) && !isInvisible(r) {
				break
			}
			i += size - 1
		}
		i++
	}
	if i == len(text) {
		return false
	}

	switch between := text[before:i]; len(between) {
	case 0:
		w.Joined = before > 0
	case 1:
		w.Joined = ascii[between[0]] == connector && before > 0
	default:
		w.Joined = between[0]|between[len(between)-1] >= utf8.RuneSelf && before > 0 && connects(between)
	}

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
	w.End = i
	for i < len(text) && !w.Char {
		r, size := utf8.DecodeRuneInString(text[i:])
		char := isChar(r)
		// Such a character is a word by itself, and ends the one before.
		if char && i > w.Start || !char && IsGap(r) {
			break
		}
		i += size
		w.Char = char
		if char || !isInvisible(r) {
			w.End = i
		}
	}
	w.next = i
	w.folded = fold(w.folded[:0], text[w.Start:w.End])
	w.Hash, w.Size = hashOffset, len(w.folded)
	for _, c := range w.folded {
		w.Hash = (w.Hash ^ uint64(c)) * HashPrime
	}

	return true
}

// connects reports whether what is between two words is one connector at most.
func connects(between string) bool {
	sign := strings.TrimFunc(between, isInvisible)
	r, size := utf8.DecodeRuneInString(sign)

	return sign == "" || size == len(sign) && strings.ContainsRune(connectors, r)
}

// Kinds of characters. One table of each is faster to search than those that it is made of.
var (
	inWords   = rangetable.Merge(unicode.L, unicode.N, unicode.M, unicode.Cf)
	invisible = rangetable.Merge(unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point)
	unfolded  = rangetable.Merge(unicode.Mn, unicode.Me, invisible)
	chars     = rangetable.Merge(unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao,
		unicode.Khmer, unicode.Myanmar)
)

// IsGap reports whether a character ends a word. Invisible ones do not, and apostrophes do, though some
// are letters in Unicode.
func IsGap(r rune) bool { return !unicode.Is(inWords, r) || r == 'ʻ' || r == 'ʼ' }

// isInvisible reports whether a character is one like a soft hyphen, a joiner or a selector of an emoji's
// look, which are as if they were not there.
func isInvisible(r rune) bool { return r > unicode.MaxASCII && unicode.Is(invisible, r) }

// isChar reports whether a character is of a script that has no blanks between words.
func isChar(r rune) bool { return r >= 0x0e00 && unicode.Is(chars, r) }

// fold appends a word in lower case, without its accents and invisible characters. It is Unicode's full
// case folding: after NFKD that differs from the lower case of the upper case only in ß, and in the iota
// below Greek vowels, which is an accent here.
func fold(b []byte, word string) []byte {
	for _, r := range norm.NFKD.String(word) {
		if unicode.Is(unfolded, r) {
			continue
		}
		r = unicode.ToLower(unicode.ToUpper(r))
		if r == 'ß' {
			b = append(b, 's')
			r = 's'
		}
		b = utf8.AppendRune(b, r)
	}
	return b
}

// DidYouMean returns the end of a message about a value that is none of some: the closest one.
// It is empty if none is close.
func DidYouMean(value string, values []string) string {
	near := Closest(value, values)
	if len(near) == 0 {
		return ""
	}

	return "; did you mean " + near[0] + "?"
}

// closestMax bounds how many values Closest returns.
const closestMax = 3

// Closest returns the values closest to one, the closest first. These are the same in another case, then
// what begins alike, then what differs by a few letters. Blanks and punctuation do not count.
func Closest(value string, values []string) []string {
	value = plain(value)
	// A longer word may have more slips before it is another word.
	most := 1 + len(value)/4
	rank := make(map[string]int)
	for _, v := range values {
		lower := plain(v)
		if lower == value {
			rank[v] = 0
		} else if strings.HasPrefix(lower, value) || len(lower) > 2 && strings.HasPrefix(value, lower) {
			rank[v] = 1
		} else if d := slips(value, lower); d <= most {
			rank[v] = 1 + d
		}
	}

	var near []string
	for _, v := range values {
		if _, ok := rank[v]; ok {
			near = append(near, v)
		}
	}
	slices.SortStableFunc(near, func(a, b string) int { return cmp.Compare(rank[a], rank[b]) })

	return near[:min(len(near), closestMax)]
}

// slips counts the letters that differ. Two in each other's place are one slip.
func slips(a, b string) int {
	d := smetrics.WagnerFischer(a, b, 1, 1, 1)
	if d == 2 && slices.Equal(slices.Sorted(strings.SplitSeq(a, "")), slices.Sorted(strings.SplitSeq(b, ""))) {
		d = 1
	}

	return d
}

// plain returns the letters and digits of a text in lower case or, if it has none, the text.
func plain(text string) string {
	letters := strings.Map(func(c rune) rune {
		if unicode.IsLetter(c) || unicode.IsDigit(c) {
			return unicode.ToLower(c)
		}
		return -1
	}, text)

	return cmp.Or(letters, strings.ToLower(text))
}

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
