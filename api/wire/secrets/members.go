package secrets

import (
	"bytes"

	"promptspool/api/wire"
	"promptspool/api/wire/jsonscan"
)

// names finds, in from <= i < end, members that are credentials by their names, and URLs.
// It leaps from colon to colon: in valid JSON, and in Python's repr, a text right before
// a colon is a member's name.
func (f *finder) names(from, end int) {
	source := f.source[:end]
	for i := from; ; {
		leap := bytes.IndexByte(source[i:], ':')
		if leap < 0 {
			return
		}
		colon := i + leap
		i = colon + 1

		if slashes := skipSlashes(source, i); slashes > i {
			i = f.url(from, colon, slashes, end)
			continue
		}

		quote := colon - 1
		for quote > from && isSpace(source[quote]) {
			quote--
		}
		if quote > from && (source[quote] == '"' || source[quote] == '\'') {
			i = max(i, f.member(from, quote, colon, end))
		}
	}
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }

// member looks at a member whose name ends with the quote before a colon. It returns the
// index up to which everything was looked at, or 0.
func (f *finder) member(from, quote, colon, end int) int {
	source := f.source[:end]

	// An odd number of backslashes escapes the quote: the name is part of a text, not of
	// the body. So is every name in single quotes.
	depth := jsonscan.Backslashes(source, from, quote)
	inText := source[quote] == '\'' || depth%2 == 1
	if !inText && depth > 0 {
		return 0 // the name ends with a backslash
	}

	begin := quote - depth
	for begin > from && quote-begin <= nameBytesMax && byteKinds[source[begin-1]]&ofName != 0 {
		begin--
	}
	if begin == from {
		return 0
	}

	name := source[begin : quote-depth]
	switch source[begin-1] {
	case source[quote]:
		if jsonscan.Backslashes(source, from, begin-1) != depth {
			return 0 // not the name's opening quote
		}
	case '\\':
		// The body may write a name with escapes, to the same effect.
		if inText {
			return 0
		}
		name = escapedName(source[from : quote+1])
		if name == nil {
			return 0
		}
	default:
		return 0
	}
	if len(name) < 3 || !mayBeCredential(name) {
		return 0
	}

	value := jsonscan.SkipSpace(source, colon+1)
	if value == end {
		return 0
	}

	var buf [nameBytesMax + 1]byte
	simple := simpleName(buf[:0], name)
	if inText {
		if credentialPlaces(simple)&inTexts == 0 || !f.nested(from, quote, end) {
			return 0
		}
		return f.quoted(value, end)
	}
	return f.value(value, end, name, simple)
}

// escapedName returns the text of the JSON string at the end of source, or nil if it is
// too long for a credential's name.
func escapedName(source []byte) []byte {
	const most = 6 * nameBytesMax // all of it written like \u0061

	source = source[max(0, len(source)-most-2):]
	begin := bytes.LastIndexByte(source[:len(source)-1], '"')
	if begin < 0 || jsonscan.Backslashes(source, 0, begin)%2 == 1 {
		return nil
	}

	name := jsonscan.Unquote(source[begin:])
	if len(name) > nameBytesMax {
		return nil
	}
	return []byte(name)
}

// value looks at the value of a member of the body itself. It returns the index behind a
// secret, or 0.
func (f *finder) value(value, end int, name, simple []byte) int {
	source := f.source[:end]

	// Outside arguments and headers names mean nothing, but the member may hold them itself.
	opens := source[value] == '{' || source[value] == '['
	switch {
	case opens && value >= f.headersEnd && holdsHeaders(simple):
		f.headersEnd = jsonscan.SkipValue(source, value)
		f.scopeEnd = max(f.scopeEnd, f.headersEnd)
	case opens && value >= f.scopeEnd && holdsArguments(simple):
		f.scopeEnd = jsonscan.SkipValue(source, value)
	}
	if value >= f.scopeEnd {
		return 0
	}

	at := inArguments
	if value < f.headersEnd {
		at |= inHeaders
	}
	where := credentialPlaces(simple)
	switch {
	case where&(at|directly) == 0:
	case f.loose && isCredential(string(name)):
		behind := jsonscan.SkipValue(source, value)
		if text := string(source[value:behind]); text != "null" && text != maskedValue {
			f.note(secret{wire.SecretName, value, behind, true})
		}
		return behind
	case source[value] == '"':
		behind := jsonscan.SkipString(source, value)
		text := source[value+1 : behind-1]
		if where&at == 0 && !(isRandom(text) && f.isDirect(value, end)) {
			return behind
		}
		if len(text) > 0 && string(text) != maskedText {
			f.add(wire.SecretName, value+1, behind-1)
		}
		return behind
	}

	return 0
}

// isDirect reports whether a value is that of a member right in kwargs or parameters. Each
// call's value must be behind that of the call before: so it reads the arguments once.
func (f *finder) isDirect(value, end int) bool {
	source := f.source[:end]
	if !f.loose || source[f.from] != '{' {
		return false
	}

	if f.directEnd == 0 {
		f.direct, f.directEnd = jsonscan.Enter(source, f.from), f.from+1
	}
	for f.directEnd <= value {
		f.direct.At = f.directEnd
		if !f.direct.Next() {
			return false
		}
		f.directAt = f.direct.At
		f.directEnd = jsonscan.SkipValue(source, f.directAt)
	}

	return f.directAt == value
}

// quoted looks at the value of a member within a text. The value ends with the quote that
// it begins with, behind as many backslashes, or with the text. It returns the index
// behind a secret, or 0.
func (f *finder) quoted(value, end int) int {
	source := f.source[:end]

	if source[value] == 'b' { // bytes, in Python
		value++
	}
	quote := value
	for quote < end && source[quote] == '\\' {
		quote++
	}
	if quote == end || source[quote] != '"' && source[quote] != '\'' {
		return 0
	}
	if source[quote] == '"' && (quote-value)%2 == 0 {
		return 0 // the end of the body's own string
	}

	begin, depth := quote+1, quote-value
	behind := begin
	for i := begin; ; {
		escapes := 0
		for i+escapes < end && source[i+escapes] == '\\' {
			escapes++
		}

		behind = i
		i += escapes
		if i >= end {
			return 0
		}
		if source[i] == '"' && escapes%2 == 0 { // the end of the body's own string
			behind = i
			break
		}
		if source[i] == source[quote] && escapes <= depth {
			break
		}
		i++
	}

	if text := source[begin:behind]; len(text) > 0 && string(text) != maskedText {
		f.add(wire.SecretName, begin, behind)
	}
	return behind
}

// nested reports whether the text around source[i] is JSON or Python's repr itself. It
// looks at each text once: the answer holds up to textEnd.
func (f *finder) nested(from, i, end int) bool {
	if i < f.textEnd {
		return f.isNested
	}

	// The text begins with the last quote before i that is not escaped.
	source := f.source[:end]
	floor := max(from, f.textEnd)
	begin := i
	for {
		begin = floor + bytes.LastIndexByte(source[floor:begin], '"')
		if begin < floor {
			return false
		}
		if jsonscan.Backslashes(source, floor, begin)%2 == 0 {
			break
		}
	}
	f.textEnd = jsonscan.SkipString(source, begin)

	// Two brackets, or a bracket and a quote, tell a value from a text in brackets such
	// as "[INST]".
	first := skipEscapedSpace(source, begin+1)
	f.isNested = isBracket(source[first])
	if f.isNested {
		switch second := source[skipEscapedSpace(source, first+1)]; second {
		case '\\', '\'', ')':
		default:
			f.isNested = isBracket(second)
		}
	}

	return f.isNested
}

func isBracket(c byte) bool { return c == '{' || c == '[' || c == '(' }

// skipEscapedSpace returns the index of the first byte from source[i] on, in a string,
// that is not white space.
func skipEscapedSpace(source []byte, i int) int {
	for {
		switch {
		case source[i] == ' ':
			i++
		case source[i] == '\\' && (source[i+1] == 'n' || source[i+1] == 't' || source[i+1] == 'r'):
			i += 2
		default:
			return i
		}
	}
}
