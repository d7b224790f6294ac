package jsonscan

import "bytes"

// SkipSpace returns the index of the first byte from b[i] on that is not JSON white
// space, or len(b).
func SkipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	return i
}

// SkipValue returns the index just after the value that begins at b[i]. b must be valid
// JSON; with anything else it may panic.
func SkipValue(b []byte, i int) int {
	switch b[i] {
	case '"':
		return SkipString(b, i)
	case '{', '[':
		return skipContainer(b, i)
	}

	// A number or a word ends where punctuation or white space begins.
	for i < len(b) && b[i] > ' ' && b[i] != ',' && b[i] != ']' && b[i] != '}' {
		i++
	}
	return i
}

// skipContainer is SkipValue for an object or array.
func skipContainer(b []byte, i int) int {
	for level := 0; ; i++ {
		switch b[i] {
		case '"':
			i = SkipString(b, i) - 1
		case '{', '[':
			level++
		case '}', ']':
			level--
			if level == 0 {
				return i + 1
			}
		}
	}
}

// SkipString returns the index just after the string that begins at b[i], or len(b) if
// it does not end.
func SkipString(b []byte, i int) int {
	start := i + 1

	// Most bytes of a body are in strings, so leap from quote to quote.
	for i = start; ; i++ {
		leap := bytes.IndexByte(b[i:], '"')
		if leap < 0 {
			return len(b)
		}
		i += leap
		if Backslashes(b, start, i)%2 == 0 {
			return i + 1
		}
	}
}

// Backslashes counts the backslashes right before b[i], at or after b[from].
func Backslashes(b []byte, from, i int) (n int) {
	for i-n > from && b[i-n-1] == '\\' {
		n++
	}
	return n
}

// Depth returns how deep brackets nest outside strings. It stops counting just above
// most. b may be anything.
func Depth(b []byte, most int) int {
	deepest, level := 0, 0
	for i := 0; i < len(b) && deepest <= most; i++ {
		switch b[i] {
		case '"':
			i = SkipString(b, i) - 1
		case '{', '[':
			level++
			deepest = max(deepest, level)
		case '}', ']':
			level--
		}
	}

	return deepest
}
