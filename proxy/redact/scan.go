package redact

import (
	"bytes"
	"strconv"
	"strings"

	"promptspool/api/wire/secrets"
)

// scans are the builtins to look for, with the action of each. One pass over a text finds all of them.
type scans map[kind]string

func (s scans) has(k kind) bool { return s[k] != "" }

// The things that a byte may begin or be part of, in the order of classes.
const (
	isDigit = 1 << iota
	isWord  // letter, digit, underscore
	isLocal // of an email before the @
	isHost  // of an email after the @
	isToken // of a key
	starts  // may begin something, or is an @
)

var classes = func() [256]uint8 {
	const digits, letters = "0123456789", "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

	beyondASCII, keys := make([]byte, 0, 128), []byte{}
	for c := range 256 {
		if c >= 0x80 {
			beyondASCII = append(beyondASCII, byte(c))
		}
		if secrets.BeginsKey(byte(c)) {
			keys = append(keys, byte(c))
		}
	}
	word := digits + letters + string(beyondASCII)

	return secrets.ByteKinds(
		digits,
		word+"_",
		word+"._%+-'",
		word+".-",
		digits+letters+"-._~+/=",
		digits+"@+(bB"+string(keys),
	)
}()

// next returns the first match of a builtin in text[from:]; end is 0 if there is none.
func (s scans) next(text []byte, from int) (k kind, start, end int) {
	for i := from; i < len(text); i++ {
		if classes[text[i]]&starts == 0 {
			continue
		}

		// An address is found from its @: most text has none, and is not read twice.
		if text[i] == '@' {
			if start, end := email(text, from, i); end > 0 && s.has("email") {
				return "email", start, end
			}
			continue
		}
		inWord := i > 0 && classes[text[i-1]]&isWord != 0
		if inWord {
			continue
		}

		if classes[text[i]]&isDigit != 0 || text[i] == '+' || text[i] == '(' {
			if k, end := s.number(text, i); end > 0 {
				return k, i, end
			} else if end < 0 {
				// A number that is neither is skipped.
				i = -end - 1
			}
			continue
		}
		if start, end := bearer(text, i); end > 0 && s.has("bearer_token") {
			return "bearer_token", start, end
		}
		if end := provider(text, i); end > 0 && s.has("provider_key") {
			return "provider_key", i, end
		}
	}
	return "", 0, 0
}

// email finds the address around the @ at i, whose local part does not begin before from.
// The limits of RFC 5321, 64 and 255 bytes, also bound the time.
func email(text []byte, from, i int) (start, end int) {
	// Back from the @, but not into what an earlier match has taken.
	start = i
	for start > from && start > i-64 && classes[text[start-1]]&isLocal != 0 {
		start--
	}
	// Punctuation of the sentence around the address is not a part of it.
	for start < i && (text[start] == '.' || text[start] == '\'' || text[start] == '-') {
		start++
	}

	end = i + 1
	for end < len(text) && end < i+256 && classes[text[end]]&isHost != 0 {
		end++
	}
	for end > i+1 && (text[end-1] == '.' || text[end-1] == '-') {
		end--
	}

	// The domain has a dot, and a top level of at least two characters that is not a
	// number.
	dot := bytes.LastIndexByte(text[i+1:end], '.')
	if start == i || dot < 1 || end-(i+1+dot+1) < 2 || classes[text[i+1+dot+1]]&isDigit != 0 {
		return 0, 0
	}

	return start, end
}

// number looks at digits with single separators from i on. They are a card if isCard says
// so, and a phone number if they are written like one. If they are neither, end is minus
// the end of the digits. A card may have wider gaps between its groups, and other digits
// after it, such as a date.
func (s scans) number(text []byte, i int) (k kind, end int) {
	var digits [20]byte
	n, groups := 0, 1
	// The end of the longest card so far, and the end and the number of digits before the first
	// wide gap.
	j, card := i, 0
	single, singleN := 0, 0
	if text[j] == '+' || text[j] == '(' {
		j++
	}

	plus := text[i] == '+'
	for j < len(text) {
		if classes[text[j]]&isDigit != 0 {
			// More digits than any card or phone number has: all
			// of them are skipped together.
			if n == len(digits) {
				for j < len(text) && classes[text[j]]&isWord != 0 {
					j++
				}
				if single == 0 {
					single = j
				}
				break
			}
			digits[n] = text[j]
			n++
			j++
			end = j
			continue
		}

		// The digits after it may belong to something else, so a card counts wherever it
		// may end.
		if end > 0 && classes[text[j]]&isWord == 0 && s.has("card") && isCard(digits[:n]) {
			card = end
		}
		gap, wide := separators(text[j:])
		if gap == 0 {
			break
		}

		if wide && single == 0 {
			single, singleN = end, n
		}
		if single == 0 {
			groups++
		}
		j += gap
	}

	// The longest card wins.
	if j == len(text) && s.has("card") && isCard(digits[:n]) {
		card = end
	}
	if card > 0 {
		return "card", card
	}

	if single > 0 {
		end, n = single, singleN
	}
	if end < len(text) && (classes[text[end]]&isWord != 0) || end == 0 {
		return "", -max(end, i+1)
	}
	if s.has("phone") && isPhone(text[i:end], n, plus, groups) {
		return "phone", end
	}
	return "", -end
}

// separators counts the separators that a text begins with, if a digit follows. wide:
// only a card has so many.
func separators(text []byte) (gap int, wide bool) {
	for gap < 3 && gap < len(text) && strings.IndexByte(" -.()/", text[gap]) >= 0 {
		gap++
	}
	if gap == 0 || gap == len(text) || classes[text[gap]]&isDigit == 0 {
		return 0, false
	}
	if gap > 1 && !bytes.ContainsAny(text[:gap], "()") {
		return gap, true
	}
	return gap, false
}

// isPhone reports whether digits are written as a phone number: with a plus, or in at
// least three groups, the first no longer than an area code. Dates, times and IP
// addresses are not.
func isPhone(text []byte, digits int, plus bool, groups int) bool {
	if plus {
		return digits >= 8 && digits <= 15
	}
	// Without a plus digits alone prove little: the way they are grouped must fit.
	if digits < 10 || digits > 12 || groups < 3 || bytes.Count(text, []byte(".")) == 3 {
		return false
	}
	first := bytes.IndexAny(bytes.TrimLeft(text, "("), " -.)/")
	return first >= 1 && first <= 3 && bytes.IndexByte(text, '/') < 0
}

// isCard checks the issuers' ranges (ISO/IEC 7812), their lengths, and the Luhn check
// digit.
func isCard(digits []byte) bool {
	if len(digits) < 13 || len(digits) > 19 {
		return false
	}

	four, _ := strconv.Atoi(string(digits[:4]))
	two := four / 100
	switch n := len(digits); {
	case digits[0] == '4' && (n == 13 || n == 16 || n == 19):
	case (two >= 51 && two <= 55 || four >= 2221 && four <= 2720) && n == 16:
	case (two == 34 || two == 37) && n == 15:
	case (four == 6011 || two == 65 || four/10 >= 644 && four/10 <= 649 || two == 62 || two == 35) && n >= 16:
	case (two == 30 || two == 36 || two == 38 || two == 39) && n == 14:
	default:
		return false
	}
	// Luhn: most numbers of this length and beginning are not a card's.
	sum := 0
	for i := range digits {
		x := int(digits[len(digits)-1-i] - '0')
		if i%2 == 1 {
			x *= 2
			if x > 9 {
				x -= 9
			}
		}
		sum += x
	}

	return sum%10 == 0
}

// bearer finds the token after the word Bearer (RFC 6750), in upper or lower case.
func bearer(text []byte, i int) (start, end int) {
	const word = "bearer"
	if len(text)-i < len(word)+9 || text[i]|0x20 != 'b' ||
		!bytes.EqualFold(text[i:i+len(word)], []byte(word)) {
		return 0, 0
	}

	start = i + len(word)
	for start < len(text) && strings.IndexByte(" \t:", text[start]) >= 0 {
		start++
	}
	end = token(text, start)
	// "bearers", or the word in prose.
	if start == i+len(word) || end-start < 8 {
		return 0, 0
	}
	return start, end
}

func token(text []byte, i int) int {
	for i < len(text) && classes[text[i]]&isToken != 0 {
		i++
	}
	return i
}

// provider returns the end of a provider's key that begins at i; 0 if there is none.
func provider(text []byte, i int) (end int) {
	// By the same table as the masking of keys, which servers do on arrival.
	least := secrets.KeyLength(text[i:])
	if least == 0 {
		return 0
	}
	if end := token(text, i); end-i >= least {
		return end
	}
	return 0
}
