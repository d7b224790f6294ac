package secrets

import (
	"bytes"
	"encoding/binary"
	"strings"

	"promptspool/api/wire"
	"promptspool/api/wire/jsonscan"
)

const (
	keyBytesMin    = 20  // no key is shorter
	bearerBytesMin = 40  // nor is any web token that is worth masking
	awsSecretBytes = 40  // every AWS secret has exactly this length
	besideMax      = 120 // bytes between the id of an AWS key and its secret
)

// shapes finds the well-known keys of from <= i < end. A key is a run of at least
// keyBytesMin letters, digits, - and _.
func (f *finder) shapes(from, end int) {
	source := f.source[:end]
	for begin := from; ; {
		begin = skipShort(source, begin)
		if begin+keyBytesMin > end {
			return
		}

		runEnd := begin
		for runEnd+8 <= end && keyBytes(binary.LittleEndian.Uint64(source[runEnd:])) == highBits {
			runEnd += 8
		}
		for runEnd < end && byteKinds[source[runEnd]]&ofKey != 0 {
			runEnd++
		}
		if runEnd-begin < keyBytesMin {
			begin = runEnd + 1
			continue
		}
		begin = max(runEnd, f.run(from, begin, runEnd, end)) + 1

		// A picture in base64 is megabytes of runs; cross it in one stride.
		if begin <= end && isBase64(source, from, begin-1) {
			begin = behindBase64(source, begin)
		}
	}
}

// behindBase64 returns from where on a key may begin in or behind the base64 around
// source[i]. That is behind its last + or /, since only the part behind it may continue
// with bytes that are not base64.
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

// isBase64 reports whether source[i] continues base64 beyond the bytes of keys.
func isBase64(source []byte, from, i int) bool {
	return i >= from && i < len(source) && (source[i] == '+' || source[i] == '/')
}

// run notes the key that a run of its bytes is. It returns the index behind the key, or
// 0.
func (f *finder) run(from, begin, runEnd, end int) int {
	// Most runs of base64 end here.
	first := f.source[begin]
	if keyShapes[first] == nil && first != 'e' && (begin == from || f.source[begin-1] != '\\') {
		return 0
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
				f.add(wire.SecretKey, start, runEnd)
				return runEnd
			}
			continue
		}

		// The prefixes in capitals also occur in base64, which goes on with bytes that
		// are not of keys.
		if isBase64(f.source, from, start-1) || isBase64(f.source[:end], from, runEnd) {
			continue
		}

		if shape.prefix == "AIza" && isRandom(run[len(shape.prefix):]) {
			f.add(wire.SecretKey, start, runEnd)
			return runEnd
		}
		if shape.prefix != "AIza" && len(run) == shape.least && isAccessKeyID(run) {
			f.accessKey(from, start, runEnd, end)
			return runEnd
		}
	}

	return 0
}

// starts returns the two indices at which a text may begin whose bytes begin at
// source[begin]; len(source) stands for none. Behind a backslash the first byte, or five,
// may belong to an escape, which must stay whole.
func starts(source []byte, from, begin int) [2]int {
	if begin == from || source[begin-1] != '\\' {
		return [2]int{begin, len(source)}
	}

	escape := 1
	if source[begin] == 'u' {
		escape = 5
	}
	if jsonscan.Backslashes(source, from, begin)%2 == 1 {
		return [2]int{begin + escape, len(source)}
	}

	// The backslash is escaped itself, but may begin an escape of a text within the text.
	return [2]int{begin, begin + escape}
}

// bearer notes a JSON web token behind the word Bearer. It returns the index behind it,
// or 0.
func (f *finder) bearer(from, start, end int) int {
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

	f.add(wire.SecretBearer, start, behind)
	return behind
}

// accessKey notes the id of an AWS key, and the secret beside it.
func (f *finder) accessKey(from, start, behind, end int) {
	f.awsSecret(max(from, start-besideMax), start)
	f.add(wire.SecretKey, start, behind)
	f.awsSecret(behind, min(end, behind+besideMax+awsSecretBytes))
}

// awsSecret notes the first AWS secret of from <= i < end: 40 letters, digits, + and /,
// some of them capitals and some small, which no hexadecimal hash has.
func (f *finder) awsSecret(from, end int) {
	source := f.source
	for begin := from; begin < end; begin++ {
		if _, ok := awsByte(source, begin, end); !ok {
			continue
		}

		runEnd := begin
		for next, ok := awsByte(source, runEnd, end); ok; next, ok = awsByte(source, runEnd, end) {
			runEnd = next
		}

		// The run may begin with the letters of an escape,
		// which are no part of the secret.
		for _, start := range starts(source, from, begin) {
			if isAWSSecret(source, start, runEnd) {
				f.add(wire.SecretAWS, start, runEnd)
				return
			}
		}
		begin = runEnd
	}
}

// awsByte returns the index behind one byte of an AWS secret at i, and whether there is
// one. JSON may write / with a backslash.
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
