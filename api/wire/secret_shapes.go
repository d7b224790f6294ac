package wire

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"strings"
)

// keyShape is how the keys of one issuer begin, and their least length.
type keyShape struct {
	prefix string
	least  int
	always bool // masked in every body; the others only where an operator's redaction asks for it
}

// keyShapes are the well-known keys, by their first byte. Redaction and the mask of every body share them.
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
		{"xai-", 24, true}, {"xoxb-", 24, true}, {"xoxp-", 24, true}, {"xoxa-", 24, true}, {"xoxs-", 24, true},
		{"xapp-", 24, true},
	},
	'n': {{"nvapi-", 24, true}},
	'l': {{"ls__", 24, true}, {"lsv2_", 24, true}},
	'k': {{"key-", 24, false}},
}

// KeyLength returns the least length of a well-known key that begins as text does, or 0 if none does.
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

const (
	keyBytesMin     = 20  // no key is shorter
	besideMax       = 120 // bytes between the id of an AWS key and its secret
	awsSecretBytes  = 40
	bearerBytesMin  = 40
	plainSegmentMin = 32 // a part without any digit is a key's only from here on
)

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

// shapes finds the well-known keys of from <= i < end. Every key is a run of at least keyBytesMin letters, digits,
// - and _, so it looks at the end of each window of that size first and leaps over most of a text.
func (f *secretFinder) shapes(from, end int) {
	source := f.source[:end]
	for begin := from; begin+keyBytesMin <= end; {
		if other := lastOther(source[begin : begin+keyBytesMin]); other >= 0 {
			begin += other + 1
			continue
		}

		runEnd := begin + keyBytesMin
		for runEnd+8 <= end && keyBytes(binary.LittleEndian.Uint64(source[runEnd:])) == highBits {
			runEnd += 8
		}
		for runEnd < end && byteKinds[source[runEnd]]&ofKey != 0 {
			runEnd++
		}
		begin = max(runEnd, f.run(from, begin, runEnd, end)) + 1
		if begin <= end && isBase64(source, from, begin-1) {
			begin = behindBase64(source, begin)
		}
	}
}

// behindBase64 returns where in or behind base64, in which source[i] is, a key may begin: behind its last + or /, since
// only there, bytes that are not of base64 may follow.
func behindBase64(source []byte, i int) int {
	end := i
	for end+8 <= len(source) && base64Bytes(binary.LittleEndian.Uint64(source[end:])) == highBits {
		end += 8
	}
	for end > i && source[end-1] != '+' && source[end-1] != '/' {
		end--
	}
	return end
}

// lastOther returns the index of the last byte of a window that is not of a key, or -1.
func lastOther(window []byte) int {
	for _, i := range [...]int{keyBytesMin - 8, keyBytesMin - 16, 0} {
		if others := ^keyBytes(binary.LittleEndian.Uint64(window[i:])) & highBits; others != 0 {
			return i + 7 - bits.LeadingZeros64(others)/8
		}
	}
	return -1
}

const (
	everyByte = 0x0101010101010101
	highBits  = 0x80 * everyByte
)

// keyBytes sets the high bit of each of eight bytes that is a letter, a digit, - or _, and no other.
func keyBytes(word uint64) uint64 {
	low := word &^ highBits
	letters := bytesWithin(low|0x20*everyByte, 'a', 'z')
	others := bytesWithin(low, '0', '9') | bytesWithin(low, '-', '-') | bytesWithin(low, '_', '_')
	return (letters | others) & highBits &^ word
}

// base64Bytes is keyBytes for letters, digits, + and /.
func base64Bytes(word uint64) uint64 {
	low := word &^ highBits
	letters := bytesWithin(low|0x20*everyByte, 'a', 'z')
	others := bytesWithin(low, '/', '9') | bytesWithin(low, '+', '+') // / stands before 0
	return (letters | others) & highBits &^ word
}

// bytesWithin sets the high bit of each byte from first to last, and leaves the lower ones undefined. No byte of word
// may have its high bit set.
func bytesWithin(word, first, last uint64) uint64 {
	return (word + (0x80-first)*everyByte) &^ (word + (0x7f-last)*everyByte)
}

// run notes the key that a run of its bytes is. It returns the index behind the key, or 0.
func (f *secretFinder) run(from, begin, runEnd, end int) int {
	if first := f.source[begin]; keyShapes[first] == nil && first != 'e' && (begin == from || f.source[begin-1] != '\\') {
		return 0 // as in most of base64
	}

	for _, start := range starts(f.source, from, begin) {
		if runEnd-start < keyBytesMin {
			continue
		}
		run := f.source[start:runEnd]
		if run[0] == 'e' && bytes.HasPrefix(run, []byte("eyJ")) {
			if behind := f.bearer(from, start, end); behind > 0 {
				return behind
			}
			continue
		}

		shape := shapeOf(run)
		if shape == nil || !shape.always || len(run) < shape.least {
			continue
		}
		if run[0] != 'A' {
			if isRandom(run[len(shape.prefix):]) {
				f.add(SecretKey, start, runEnd)
				return runEnd
			}
			continue
		}

		// The prefixes in capitals also occur in base64, which goes on with bytes that are not of keys.
		if isBase64(f.source, from, start-1) || isBase64(f.source[:end], from, runEnd) {
			continue
		}
		if shape.prefix == "AIza" && isRandom(run[len(shape.prefix):]) {
			f.add(SecretKey, start, runEnd)
			return runEnd
		}
		if shape.prefix != "AIza" && len(run) == shape.least && isAccessKeyID(run) {
			f.accessKey(from, start, runEnd, end)
			return runEnd
		}
	}
	return 0
}

// starts returns where a text may begin whose first byte is source[begin], the first of its kind; len(source) stands
// for nowhere. Behind a backslash the first byte, or five, may be an escape's, which must stay whole.
func starts(source []byte, from, begin int) [2]int {
	if begin == from || source[begin-1] != '\\' {
		return [2]int{begin, len(source)}
	}

	escape := 1
	if source[begin] == 'u' {
		escape = 5
	}
	if backslashes(source, from, begin)%2 == 1 {
		return [2]int{begin + escape, len(source)}
	}
	return [2]int{begin, begin + escape} // the backslash is one itself, but maybe that of a text within the text
}

// backslashes counts those right before source[i].
func backslashes(source []byte, from, i int) (n int) {
	for i-n > from && source[i-n-1] == '\\' {
		n++
	}
	return n
}

// isBase64 reports whether source[i] continues base64 beyond the bytes of keys.
func isBase64(source []byte, from, i int) bool {
	return i >= from && i < len(source) && (source[i] == '+' || source[i] == '/')
}

// isRandom reports whether a text looks like made by chance, as keys are and names with hyphens are not.
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

// isAccessKeyID reports whether a text is capitals and digits only.
func isAccessKeyID(text []byte) bool {
	for _, c := range text {
		if byteKinds[c]&(isDigit|isUpper) == 0 {
			return false
		}
	}
	return true
}

// bearer notes a JSON web token behind the word Bearer and returns the index behind it, or 0.
func (f *secretFinder) bearer(from, start, end int) int {
	const word = "bearer"

	source := f.source
	i := start
	for i > from && (source[i-1] == ' ' || source[i-1] == ':') {
		i--
	}
	if i == start || i-len(word) < from || !strings.EqualFold(string(source[i-len(word):i]), word) {
		return 0
	}

	dots := 0
	behind := start
	for behind < end && (byteKinds[source[behind]]&ofKey != 0 || source[behind] == '.') {
		if source[behind] == '.' {
			dots++
		}
		behind++
	}
	for source[behind-1] == '.' { // the end of a sentence
		behind, dots = behind-1, dots-1
	}
	if dots < 2 || behind-start < bearerBytesMin {
		return 0
	}
	f.add(SecretBearer, start, behind)
	return behind
}

// accessKey notes the id of an AWS key, and the secret that stands beside it.
func (f *secretFinder) accessKey(from, start, behind, end int) {
	f.awsSecret(max(from, start-besideMax), start)
	f.add(SecretKey, start, behind)
	f.awsSecret(behind, min(end, behind+besideMax+awsSecretBytes))
}

// awsSecret notes the first AWS secret of from <= i < end: 40 letters, digits, + and /, of which some are capitals
// and some are not, so that no hexadecimal hash is one.
func (f *secretFinder) awsSecret(from, end int) {
	source := f.source
	for begin := from; begin < end; begin++ {
		if _, ok := awsByte(source, begin, end); !ok {
			continue
		}
		runEnd := begin
		for next, ok := awsByte(source, runEnd, end); ok; next, ok = awsByte(source, runEnd, end) {
			runEnd = next
		}
		for _, start := range starts(source, from, begin) {
			if isAWSSecret(source, start, runEnd) {
				f.add(SecretAWS, start, runEnd)
				return
			}
		}
		begin = runEnd
	}
}

// awsByte returns the index behind one byte of an AWS secret at i. JSON may write / with a backslash.
func awsByte(source []byte, i, end int) (next int, ok bool) {
	if i+1 < end && source[i] == '\\' && source[i+1] == '/' {
		return i + 2, true
	}
	return i + 1, i < end && byteKinds[source[i]]&ofAWS != 0
}

func isAWSSecret(source []byte, start, end int) bool {
	if end-start < awsSecretBytes {
		return false
	}
	text := bytes.ReplaceAll(source[start:end], []byte(`\/`), []byte("/"))
	var kinds uint8
	for _, c := range text {
		kinds |= byteKinds[c]
	}
	return len(text) == awsSecretBytes && kinds&isUpper != 0 && kinds&isLower != 0
}
