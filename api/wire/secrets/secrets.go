// Package secrets finds credentials in the bodies that apps send, and masks them. It
// knows credentials by the names of their members and by the shapes of well-known keys;
// see finder for the rules.
//
// Bodies may be 32 MiB and hostile, so everything here runs on the bytes as they were
// sent, in time linear in their number.
package secrets

import (
	"bytes"

	"promptspool/api/wire"
	"promptspool/api/wire/jsonscan"
)

// A masked value is a JSON string; a masked part of a text is without quotes.
const (
	maskedText  = "[masked]"
	maskedValue = `"` + maskedText + `"`
)

// Strip returns the object's bytes on one line, without a top-level api_key and with all
// other secrets masked. White space between members is dropped, and line breaks between
// other tokens become blanks; every other byte stays. body must be the source of object.
//
// The result overwrites body where it can, so that a large one is held only once. body
// and object must not be used afterwards.
func Strip(body []byte, object wire.Object) []byte {
	r := rewriter{source: body, out: body[:0], inPlace: true}
	return r.strip(object)
}

// Mask is Strip on a copy, and reports whether there was any secret. If not, it returns
// body itself.
func Mask(body []byte, object wire.Object) (masked []byte, found bool) {
	// Most bodies have no secret: finding that out first saves them the copy.
	all(body, object)(func(secret) bool {
		found = true
		return false
	})
	if !found {
		return body, false
	}

	return Strip(bytes.Clone(body), object), true
}

// rewriter writes the result over its own source, from the beginning, as long as it does
// not overtake the bytes that are still to be read. When it would, because a mask is
// longer than its secret, it continues in a copy.
type rewriter struct {
	source, out []byte
	inPlace     bool
}

// strip does what Strip documents.
func (r *rewriter) strip(object wire.Object) []byte {
	f := finder{source: r.source}

	r.add("{", 1)
	for _, m := range object {
		if m.Name == "api_key" {
			continue
		}

		if len(r.out) > 1 {
			r.add(",", m.Start)
		}
		value := m.End - len(m.Value)
		r.keep(m.Start, value)
		r.mask(f.find(value, m.End, m.Name), value, m.End)
	}
	r.add("}", len(r.source))

	// No JSON string holds a raw line break, so these are all between tokens.
	blank(r.out, '\n')
	blank(r.out, '\r')

	return r.out
}

// add writes text. The source up to read is not needed any more.
func (r *rewriter) add(text string, read int) {
	r.leaveIf(len(r.out)+len(text) > read)
	r.out = append(r.out, text...)
}

// keep writes a part of the source unchanged.
func (r *rewriter) keep(from, end int) {
	r.leaveIf(len(r.out) > from)
	r.out = append(r.out, r.source[from:end]...)
}

// leaveIf moves to a copy if the next write would overtake the reading.
func (r *rewriter) leaveIf(overtakes bool) {
	if r.inPlace && overtakes {
		r.inPlace = false
		r.out = append(make([]byte, 0, len(r.source)), r.out...)
	}
}

// mask writes the value in from <= i < end with its secrets masked.
func (r *rewriter) mask(secrets []secret, from, end int) {
	for _, s := range secrets {
		r.keep(from, s.from)
		r.add(s.mask(), s.end)
		from = s.end
	}
	r.keep(from, end)
}

// blank replaces every c by a blank.
func blank(b []byte, c byte) {
	for i := bytes.IndexByte(b, c); i >= 0; i = bytes.IndexByte(b, c) {
		b[i] = ' '
		b = b[i+1:]
	}
}

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
