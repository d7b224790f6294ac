package secrets

import (
	"bytes"

	"promptspool/api/wire"
	"promptspool/api/wire/jsonscan"
)

// url looks at the user and the query of a URL, whose authority begins after the colon's
// slashes, if the text between the quotes source[open] and source[end] begins with that URL, or one
// within it does. It returns the index up to which everything was looked at.
func (f *finder) url(open, colon, begin, end int, nested bool) int {
	source := f.source[:end]

	scheme := colon
	for byteKinds[source[scheme-1]]&ofScheme != 0 {
		scheme--
	}
	if scheme == colon || source[scheme-1] != '"' && source[scheme-1] != '\'' {
		return begin
	}

	// In a text that quotes URLs in prose, they are examples.
	depth := jsonscan.Backslashes(source, open, scheme-1)
	counts := nested || scheme-1 == open

	// The last @ ends the user: passwords may contain one.
	at := 0
	i := begin
	for i < end && !isAuthorityEnd(source[i]) {
		if source[i] == '@' {
			at = i
		}
		i++
	}

	// A user alone is a credential on the web, but not in ssh://git@host.
	isWeb := bytes.HasPrefix(source[scheme:colon], []byte("http"))
	hasPassword := bytes.IndexByte(source[begin:max(at, begin)], ':') >= 0
	if counts && (isWeb || hasPassword) {
		f.add(wire.SecretURL, begin, at)
	}

	urlEnd := urlEnd(source, i, source[scheme-1], depth)
	if urlEnd < 0 {
		// It is not a whole text.
		return i
	}
	if first := bytes.IndexAny(source[i:urlEnd], "?#"); first >= 0 && counts {
		f.query(i+first+1, urlEnd)
	}

	return urlEnd
}

// urlEnd returns the index of the quote, or of the backslashes before it, with which a text ends
// that is a URL from source[i] on; -1 if it is more than a URL. The text began with this quote
// after so many backslashes. One that breaks off ends with source.
func urlEnd(source []byte, i int, quote byte, depth int) int {
	for i == len(source) || source[i] > ' ' {
		behind := i
		for behind < len(source) && source[behind] == '\\' {
			behind++
		}
		if behind == len(source) {
			return i
		}

		escapes := behind - i
		switch c := source[behind]; {
		case c == quote && escapes == depth:
			return i
		case c == '"', c == quote:
			return -1
		case escapes == 0, c == '/', c == 'u':
			i = behind + 1
		default:
			// A line break, say.
			return -1
		}
	}

	return -1
}

// queryValueMin is how long a value must be if its name means a credential in queries alone:
// ?code=42 and ?key=name are not.
const queryValueMin = 8

// query finds the credentials in the parameters of source[i:end].
func (f *finder) query(i, end int) {
	source := f.source[:end]
	for i < end {
		name := i
		for i < end && byteKinds[source[i]]&ofName != 0 {
			i++
		}
		nameEnd := i
		valueEnd, next := parameterEnd(source, i)
		i = next
		if nameEnd == end || source[nameEnd] != '=' || nameEnd-name > nameBytesMax {
			continue
		}

		var buf [nameBytesMax]byte
		where := credentialPlaces(simpleName(buf[:0], source[name:nameEnd]))
		isLong := valueEnd-(nameEnd+1) >= queryValueMin
		if where&inQuery != 0 && (where&inTexts != 0 || isLong) {
			f.add(wire.SecretURL, nameEnd+1, valueEnd)
		}
	}
}

// parameterEnd returns the index after the parameter around source[i], and that of the next one.
// JSON may write & as an escape, and so may a text within a text.
func parameterEnd(source []byte, i int) (end, next int) {
	for ; i < len(source); i++ {
		switch source[i] {
		case '&', ';', '?', '#':
			return i, i + 1
		case '\\':
			behind := i
			for behind < len(source) && source[behind] == '\\' {
				behind++
			}
			if bytes.HasPrefix(source[behind:], []byte("u0026")) {
				return i, behind + len("u0026")
			}
			// Of another escape, the byte after its backslashes is part of it.
			i = behind
		}
	}

	return len(source), len(source)
}

// skipSlashes returns the index after the two slashes at source[i], or i if there are
// none. JSON may write each with a backslash.
func skipSlashes(source []byte, i int) int {
	behind := i
	for range 2 {
		if behind < len(source) && source[behind] == '\\' {
			behind++
		}
		if behind >= len(source) || source[behind] != '/' {
			return i
		}
		behind++
	}
	return behind
}

// isAuthorityEnd reports whether a byte ends the part of a URL with user and host.
func isAuthorityEnd(c byte) bool {
	switch c {
	case '/', '?', '#', '"', '\'', '\\', '<', '>':
		return true
	}
	return c <= ' '
}
