package secrets

import "bytes"

// keyShape is how the keys of one issuer begin, and their minimum length.
type keyShape struct {
	prefix string
	least  int
	always bool // masked in every body; others only where an operator's redaction rules ask for it
}

// keyShapes are the well-known keys, by their first byte. Redaction shares them.
var keyShapes = [256][]keyShape{
	's': {{"sk-", 20, true}, {"sk_live_", 20, true}, {"sk_test_", 20, true}},
	'p': {{"pl_", 20, true}, {"ps_", 32, true}, {"pplx-", 24, true}, {"pk-lf-", 24, false}},
	'g': {
		{"gsk_", 24, true}, {"ghp_", 30, true}, {"gho_", 30, true}, {"ghs_", 30, true}, {"ghu_", 30, true},
		{"ghr_", 30, true}, {"github_pat_", 30, true}, {"glpat-", 20, true},
	},
	'A': {{"AIza", 35, true}, {"AKIA", 20, true}, {"ASIA", 20, true}},
	'h': {{"hf_", 24, true}},
	'r': {{"r8_", 24, true}},
	'x': {
		{"xai-", 24, true}, {"xoxb-", 24, true}, {"xoxp-", 24, true}, {"xoxa-", 24, true},
		{"xoxs-", 24, true}, {"xapp-", 24, true},
	},
	'n': {{"nvapi-", 24, true}},
	'l': {{"ls__", 24, true}, {"lsv2_", 24, true}},
	'k': {{"key-", 24, false}},
}

// KeyLength returns the minimum length of the well-known keys that begin as text does; 0
// if none does.
func KeyLength(text []byte) int {
	if shape := shapeOf(text); shape != nil {
		return shape.least
	}
	return 0
}

func shapeOf(text []byte) *keyShape {
	if len(text) == 0 {
		return nil
	}

	for i := range keyShapes[text[0]] {
		if shape := &keyShapes[text[0]][i]; bytes.HasPrefix(text, []byte(shape.prefix)) {
			return shape
		}
	}
	return nil
}

// What a byte may be part of.
const (
	ofKey    = 1 << iota // a key: letters, digits, - and _
	ofName               // a member's name that could be a credential's
	ofAWS                // an AWS secret
	ofScheme             // the scheme of a URL
	isDigit
	isUpper
	isLower
)

// byteKinds maps each byte to what it may be part of.
var byteKinds = func() (kinds [256]uint8) {
	for c := range 256 {
		switch {
		case c >= '0' && c <= '9':
			kinds[c] = ofKey | ofName | ofAWS | ofScheme | isDigit
		case c >= 'A' && c <= 'Z':
			kinds[c] = ofKey | ofName | ofAWS | ofScheme | isUpper
		case c >= 'a' && c <= 'z':
			kinds[c] = ofKey | ofName | ofAWS | ofScheme | isLower
		case c == '-':
			kinds[c] = ofKey | ofName | ofScheme
		case c == '_':
			kinds[c] = ofKey | ofName
		case c == '.':
			kinds[c] = ofName | ofScheme
		case c == ' ':
			kinds[c] = ofName
		case c == '+':
			kinds[c] = ofAWS | ofScheme
		case c == '/':
			kinds[c] = ofAWS
		}
	}

	return kinds
}()

// plainSegmentMin is from what length on a segment without any digit looks random.
const plainSegmentMin = 32

// isRandom reports whether a text looks generated, as keys do and hyphenated names do
// not: one of its segments is very long, or long with a digit, or changes more than once
// between digits and letters.
func isRandom(text []byte) bool {
	segment, digits, turns := 0, 0, 0
	for i, c := range text {
		kind := byteKinds[c]
		if kind&(isDigit|isUpper|isLower) == 0 {
			segment, digits, turns = 0, 0, 0
			continue
		}

		segment++
		if kind&isDigit != 0 {
			digits++
		}
		if segment > 1 && (kind^byteKinds[text[i-1]])&isDigit != 0 {
			turns++
		}

		if segment >= plainSegmentMin || segment >= 16 && digits > 0 || segment >= 8 && turns > 1 {
			return true
		}
	}

	return false
}

// isAccessKeyID reports whether a text is capitals and digits only, as the id of an AWS
// key is.
func isAccessKeyID(text []byte) bool {
	for _, c := range text {
		if byteKinds[c]&(isDigit|isUpper) == 0 {
			return false
		}
	}
	return true
}
