package wire

import "bytes"

// SkipSpace returns the index of the first byte from b[i] on that is no white space of JSON, or len(b).
func SkipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	return i
}

// SkipValue returns the index just behind the JSON value that begins at b[i]. b must be valid JSON; in any other it may panic.
func SkipValue(b []byte, i int) int {
	switch b[i] {
	case '"':
		return SkipString(b, i)
	case '{', '[':
		for level := 0; ; i++ {
			switch b[i] {
			case '"':
				i = SkipString(b, i) - 1
			case '{', '[':
				level++
			case '}', ']':
				if level--; level == 0 {
					return i + 1
				}
			}
		}
	}
	for i < len(b) && b[i] > ' ' && b[i] != ',' && b[i] != ']' && b[i] != '}' {
		i++
	}
	return i
}

// SkipString returns the index just behind the string that begins at b[i], or len(b) if it does not end. It leaps from
// quote to quote, for most bytes of a body lie in strings.
func SkipString(b []byte, i int) int {
	start := i + 1
	for i = start; ; i++ {
		leap := bytes.IndexByte(b[i:], '"')
		if leap < 0 {
			return len(b)
		}
		i += leap
		escapes := 0
		for i-escapes > start && b[i-escapes-1] == '\\' {
			escapes++
		}
		if escapes%2 == 0 {
			return i + 1
		}
	}
}
