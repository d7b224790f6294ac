package secrets

import (
	"bytes"

	"promptspool/api/wire"
	"promptspool/api/wire/jsonscan"
)

// url looks at the authority of a URL, which begins behind the colon's slashes, if a text
// begins with that URL. It returns the index up to which everything was looked at.
func (f *finder) url(from, colon, begin, end int) int {
	source := f.source[:end]

	scheme := colon
	for scheme > from && byteKinds[source[scheme-1]]&ofScheme != 0 {
		scheme--
	}
	if scheme == colon || scheme == from || source[scheme-1] != '"' && source[scheme-1] != '\'' {
		return begin
	}

	// The last @ ends the user: passwords may contain one.
	at := 0
	i := begin
	for i < end && !isAuthorityEnd(source[i]) {
		if source[i] == '@' {
			at = i
		}
		i++
	}

	user := source[begin:max(at, begin)]
	if len(user) == 0 || string(user) == maskedText {
		return i
	}
	isWeb := bytes.HasPrefix(source[scheme:colon], []byte("http"))
	if !isWeb && bytes.IndexByte(user, ':') < 0 {
		return i // such as ssh://git@host
	}

	// In a text that quotes URLs in prose, they are examples.
	inText := source[scheme-1] == '\'' || jsonscan.Backslashes(source, from, scheme-1)%2 == 1
	if !inText || f.nested(from, scheme, end) {
		f.add(wire.SecretURL, begin, at)
	}

	return i
}

// skipSlashes returns the index behind the two slashes at source[i], or i if there are
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
