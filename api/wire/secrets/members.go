package secrets

import (
	"bytes"

	"promptspool/api/wire"
	"promptspool/api/wire/jsonscan"
)

// scope is where a value is, which decides what the names in it mean.
type scope struct {
	places place // inArguments and inHeaders, as far as it is in them
	loose  bool  // in kwargs, args, parameters or metadata at the top of a body
	direct bool  // its members are right in that
}

// names finds, in the value that begins at source[i], members that are credentials by their
// names, and URLs. It returns the index after the value.
func (f *finder) names(i int, s scope) int {
	switch f.source[i] {
	case '"':
		end := jsonscan.SkipString(f.source, i)
		f.text(i, end-1)
		return end
	case '{', '[':
	default:
		return jsonscan.SkipValue(f.source, i)
	}

	c := jsonscan.Enter(f.source, i)
	for c.Next() {
		if c.Name == nil {
			s.direct = false
			c.At = f.names(c.At, s)
			continue
		}
		f.text(c.Start, c.Start+len(c.Name)-1)
		c.At = f.member(c.Name, c.At, s)
	}

	return c.At
}

// member looks at a member of the body itself, and returns the index after its value.
func (f *finder) member(quoted []byte, value int, s scope) int {
	direct := s.direct
	s.direct = false
	name := plainName(quoted)
	if len(name) < 3 || !mayBeCredential(name) {
		return f.names(value, s)
	}

	// Outside arguments and headers names mean nothing, but the member may hold them itself.
	var buf [nameBytesMax + 1]byte
	simple := simpleName(buf[:0], name)
	if f.source[value] == '{' || f.source[value] == '[' {
		s.places |= heldBy(simple)
	}
	where := credentialPlaces(simple)
	switch {
	case s.places == 0, where&(s.places|directly) == 0:
	case s.loose && isCredential(string(name)):
		end := jsonscan.SkipValue(f.source, value)
		f.addValue(value, end)
		return end
	case f.source[value] == '"':
		end := jsonscan.SkipString(f.source, value)
		if where&s.places != 0 || direct && isRandom(f.source[value+1:end-1]) {
			f.add(wire.SecretName, value+1, end-1)
		}
		return end
	}

	return f.names(value, s)
}

// plainName returns the name in a JSON string, if it may be that of a credential.
func plainName(quoted []byte) []byte {
	name := quoted[1 : len(quoted)-1]
	begin := len(name)
	for begin > 0 && len(name)-begin <= nameBytesMax && byteKinds[name[begin-1]]&ofName != 0 {
		begin--
	}

	switch {
	case begin == 0:
		return name
	case begin == len(name) || name[begin-1] != '\\' || len(name) > escapedNameMax:
		return nil
	}

	// The body may write a name with escapes, to the same effect.
	name = jsonscan.UnquoteBytes(quoted)
	if len(name) > nameBytesMax {
		return nil
	}
	return name
}

// escapedNameMax is the length of a name that is written like \u0061 throughout.
const escapedNameMax = 6 * nameBytesMax

// text finds members, and URLs, in the text between the quotes source[open] and source[end]. It
// leaps from colon to colon: in JSON, and in Python's repr, a text right before a colon is a
// member's name.
func (f *finder) text(open, end int) {
	source, nested := f.source[:end], isNested(f.source, open)
	for i := open + 1; ; {
		leap := bytes.IndexByte(source[i:], ':')
		if leap < 0 {
			return
		}
		colon := i + leap
		i = colon + 1

		if slashes := skipSlashes(source, i); slashes > i {
			i = f.url(open, colon, slashes, end, nested)
			continue
		}
		if !nested {
			continue
		}

		quote := colon - 1
		for quote > open && source[quote] == ' ' {
			quote--
		}
		if namesCredential(source, open, quote) {
			i = max(i, f.quoted(jsonscan.SkipSpace(source, i), end))
		}
	}
}

// namesCredential reports whether the quote source[i], in a text that began at open, ends the name
// of a credential. The text may be within another one: its quotes have as many backslashes.
func namesCredential(source []byte, open, i int) bool {
	if i <= open || source[i] != '"' && source[i] != '\'' {
		return false
	}

	depth := jsonscan.Backslashes(source, open, i)
	begin := i - depth
	for begin > open && i-begin <= nameBytesMax && byteKinds[source[begin-1]]&ofName != 0 {
		begin--
	}
	if source[begin-1] != source[i] || jsonscan.Backslashes(source, open, begin-1) != depth {
		return false
	}

	name := source[begin : i-depth]
	var buf [nameBytesMax + 1]byte
	return len(name) >= 3 && mayBeCredential(name) && credentialPlaces(simpleName(buf[:0], name))&inTexts != 0
}

// quoted looks at the value of a member within a text that ends at source[end]. The value ends with
// the quote that it begins with, after as many backslashes, or with the text. It returns the index
// after a secret, or 0.
func (f *finder) quoted(value, end int) int {
	source := f.source[:end]

	// Bytes, in Python.
	if value < end && source[value] == 'b' {
		value++
	}
	quote := value
	for quote < end && source[quote] == '\\' {
		quote++
	}
	if quote == end || source[quote] != '"' && source[quote] != '\'' {
		return 0
	}

	begin, depth := quote+1, quote-value
	behind := begin
	for i := begin; i < end; i++ {
		behind = i
		for i < end && source[i] == '\\' {
			i++
		}
		if i < end && source[i] == source[quote] && i-behind <= depth {
			break
		}
		// Unless its quote comes.
		behind = end
	}

	f.add(wire.SecretName, begin, behind)
	return behind
}

// isNested reports whether the text after the quote source[open] is JSON or Python's repr itself.
// Two brackets, or a bracket and a quote, tell a value from a text in brackets such as "[INST]".
func isNested(source []byte, open int) bool {
	first := skipEscapedSpace(source, open+1)
	if !isBracket(source[first]) {
		return false
	}

	switch second := source[skipEscapedSpace(source, first+1)]; second {
	case '\\', '\'', ')':
		return true
	default:
		return isBracket(second)
	}
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
