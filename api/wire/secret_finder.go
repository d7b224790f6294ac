package wire

import (
	"bytes"
	"slices"
)

// SecretKind is the way in which a secret was recognised.
type SecretKind string

// The kinds of secrets.
const (
	SecretName   SecretKind = "credential_name" // the name of its member
	SecretKey    SecretKind = "provider_key"    // the shape of a well-known key
	SecretAWS    SecretKind = "aws_secret"      // it stands beside the id of an AWS key
	SecretBearer SecretKind = "bearer_token"    // a JSON web token behind the word Bearer
	SecretURL    SecretKind = "url_password"    // user and password of a URL
)

// secret is a part of a source.
type secret struct {
	kind      SecretKind
	from, end int
	whole     bool // a JSON value; else part of a text
}

func (s *secret) mask() string {
	if s.whole {
		return Masked
	}
	return maskedText
}

// secretFinder finds the secrets in the values of a JSON object, in time linear in their bytes:
//
//   - in members called kwargs, args, parameters or headers (or ending so: extra_headers), at any depth, and in texts
//     that are JSON or Python's repr: the text of a member with a credential's name (credentialNames), in any case,
//     with or without - and _;
//   - at the top of a body only, in kwargs, args and parameters: such a member of any type, if isCredential;
//   - user and password of a URL that is a whole text;
//   - anywhere: well-known keys by their shape (keyShapes).
//
// It looks at the source as it is written: a text within a text within the body needs no unpacking, and a mask never
// touches a byte beside it.
type secretFinder struct {
	source []byte
	found  []secret

	loose    bool // in kwargs, args or parameters at the top
	scopeEnd int  // up to here, names count

	textEnd  int  // up to here, isNested holds
	isNested bool // the text is JSON or a repr itself
}

// each calls fn for the secrets of an object, in order, until it returns false.
func (f *secretFinder) each(object Object, fn func(secret) bool) {
	for _, m := range object {
		value := m.end - len(m.Value)
		if m.Name == "api_key" {
			if !fn(secret{SecretName, value, m.end, true}) {
				return
			}
			continue
		}

		for _, s := range f.find(value, m.end, m.Name) {
			if !fn(s) {
				return
			}
		}
	}
}

// find returns the secrets of the value from <= i < end of a member of the object, in order. They are valid until the
// next call.
func (f *secretFinder) find(from, end int, member string) []secret {
	f.found = f.found[:0]
	switch f.source[from] {
	case '"', '{', '[':
	default:
		return nil
	}

	f.loose = member == "kwargs" || member == "args" || member == "parameters"
	f.scopeEnd, f.textEnd = from, from
	var room [nameBytesMax]byte
	if f.loose || len(member) <= len(room) && holdsArguments(simpleName(room[:0], []byte(member))) {
		f.scopeEnd = end
	}
	f.names(from, end)
	f.shapes(from, end)
	if len(f.found) > 1 {
		f.sort()
	}
	return f.found
}

func (f *secretFinder) add(kind SecretKind, from, end int) {
	f.found = append(f.found, secret{kind: kind, from: from, end: end})
}

// sort puts what was found in order, and drops what lies within another.
func (f *secretFinder) sort() {
	slices.SortFunc(f.found, func(a, b secret) int { return a.from - b.from })
	kept := f.found[:1]
	for _, s := range f.found[1:] {
		last := &kept[len(kept)-1]
		if s.from >= last.end {
			kept = append(kept, s)
			continue
		}
		last.end = max(last.end, s.end)
	}
	f.found = kept
}

// names finds the members of from <= i < end that are credentials by their names, and the URLs. It leaps from colon
// to colon: in valid JSON, and in Python's repr, a text right before one is a member's name.
func (f *secretFinder) names(from, end int) {
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
		for quote > from && (source[quote] == ' ' || source[quote] == '\n' || source[quote] == '\t' || source[quote] == '\r') {
			quote--
		}
		if quote > from && (source[quote] == '"' || source[quote] == '\'') {
			i = max(i, f.member(from, quote, colon, end))
		}
	}
}

// member looks at a member whose name ends with the quote before a colon. It returns the index up to which all was
// looked at, or 0.
func (f *secretFinder) member(from, quote, colon, end int) int {
	source := f.source[:end]
	depth := backslashes(source, from, quote)
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
		if backslashes(source, from, begin-1) != depth {
			return 0
		}
	case '\\':
		if inText {
			return 0
		}
		if name = escapedName(source[from : quote+1]); name == nil {
			return 0
		}
	default:
		return 0
	}
	if len(name) < 3 || !mayBeCredential(name) {
		return 0
	}

	value := SkipSpace(source, colon+1)
	if value == end {
		return 0
	}
	var room [nameBytesMax + 1]byte
	simple := simpleName(room[:0], name)
	if inText {
		if !isCredentialText(simple) || !f.nested(from, quote, end) {
			return 0
		}
		return f.quoted(value, end)
	}
	return f.value(value, end, name, simple)
}

// escapedName returns the text of the JSON string at the end of source, if it may be a credential's name; else nil.
func escapedName(source []byte) []byte {
	const most = 6 * nameBytesMax // all of it written like \u0061

	source = source[max(0, len(source)-most-2):]
	begin := bytes.LastIndexByte(source[:len(source)-1], '"')
	if begin < 0 || backslashes(source, 0, begin)%2 == 1 {
		return nil
	}
	if name := Unquote(source[begin:]); len(name) <= nameBytesMax {
		return []byte(name)
	}
	return nil
}

// value looks at the value of a member of the body itself.
func (f *secretFinder) value(value, end int, name, simple []byte) int {
	source := f.source[:end]
	if value >= f.scopeEnd {
		if holdsArguments(simple) && (source[value] == '{' || source[value] == '[') {
			f.scopeEnd = SkipValue(source, value)
		}
		return 0
	}

	switch {
	case !isCredentialText(simple):
	case f.loose && isCredential(string(name)):
		behind := SkipValue(source, value)
		if text := string(source[value:behind]); text != "null" && text != Masked {
			f.found = append(f.found, secret{SecretName, value, behind, true})
		}
		return behind
	case source[value] == '"':
		behind := SkipString(source, value)
		if text := source[value+1 : behind-1]; len(text) > 0 && string(text) != maskedText {
			f.add(SecretName, value+1, behind-1)
		}
		return behind
	}
	return 0
}

// quoted looks at the value of a member within a text. It ends with the quote that it begins with, behind as many
// backslashes, or with the text.
func (f *secretFinder) quoted(value, end int) int {
	source := f.source[:end]
	if source[value] == 'b' { // bytes, in Python
		value++
	}
	quote := value
	for quote < end && source[quote] == '\\' {
		quote++
	}
	if quote == end || source[quote] != '"' && source[quote] != '\'' || source[quote] == '"' && (quote-value)%2 == 0 {
		return 0
	}

	begin, depth := quote+1, quote-value
	behind := begin
	for i := begin; ; {
		escapes := 0
		for i+escapes < end && source[i+escapes] == '\\' {
			escapes++
		}
		behind = i
		if i += escapes; i >= end {
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
		f.add(SecretName, begin, behind)
	}
	return behind
}

// nested reports whether the text around source[i] is JSON or Python's repr itself.
func (f *secretFinder) nested(from, i, end int) bool {
	if i < f.textEnd {
		return f.isNested
	}

	source := f.source[:end]
	floor := max(from, f.textEnd)
	begin := i
	for {
		begin = floor + bytes.LastIndexByte(source[floor:begin], '"')
		if begin < floor {
			return false
		}
		if backslashes(source, floor, begin)%2 == 0 {
			break
		}
	}
	f.textEnd = SkipString(source, begin)
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

// skipEscapedSpace returns the index of the first byte from source[i] on, in a string, that is no white space.
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

// skipSlashes returns the index behind the two slashes at source[i], or i if there are none. JSON may write each with
// a backslash.
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

// url looks at the authority of a URL, which begins behind the colon's slashes, if a text begins with that URL. It
// returns the index up to which all was looked at.
func (f *secretFinder) url(from, colon, begin, end int) int {
	source := f.source[:end]
	scheme := colon
	for scheme > from && byteKinds[source[scheme-1]]&ofScheme != 0 {
		scheme--
	}
	if scheme == colon || scheme == from || source[scheme-1] != '"' && source[scheme-1] != '\'' {
		return begin
	}

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
	inText := source[scheme-1] == '\'' || backslashes(source, from, scheme-1)%2 == 1
	if !inText || f.nested(from, scheme, end) {
		f.add(SecretURL, begin, at)
	}
	return i
}

// isAuthorityEnd reports whether a byte ends the part of a URL with user and host.
func isAuthorityEnd(c byte) bool {
	switch c {
	case '/', '?', '#', '"', '\'', '\\', '<', '>':
		return true
	}
	return c <= ' '
}
