package calls

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"

	"promptspool/api/wire"
	"promptspool/api/wire/jsonscan"
)

// node is a JSON value inside a body that wire.ParseObject accepted, or empty where there
// is none. Every method works on every node: what does not fit is treated as absent.
type node struct {
	raw     json.RawMessage
	index   *index   // of an object that is asked for many names, else nil
	reading *reading // nil: nothing ends it
}

// index has the places of an object's members. To look each up in its bytes would scan all
// values in front of it, or all where it is absent, as nearly all are.
type index struct {
	members []member
	names   uint64    // has the nameBit of each member
	few     [8]member // memory of members, of most objects
}

// member is where a member is within the raw bytes of its object, which are at most a
// body, so 32 bits hold each place. Its name includes the quotes.
type member struct {
	name, nameEnd, value, end int32
}

// membersMax is how many members of an object are read at most; no provider's object has as
// many. Look-ups walk them: of any number, they would cost the square of their bytes.
const membersMax = 128

func nodeOf(raw json.RawMessage) node { return node{raw: raw} }

// startReading returns the node of a member of a body, with its own reading.
func startReading(ctx context.Context, raw json.RawMessage) node {
	return node{raw: raw, reading: newReading(ctx, len(raw))}
}

// part returns the node of a value inside n.
func (n node) part(from, end int) node { return node{raw: n.raw[from:end:end], reading: n.reading} }

// indexed returns the node for a caller that looks up many names.
func (n node) indexed() node { return n.indexedIn(nil) }

// indexedIn is indexed with the memory of another node, which must not be used any more.
func (n node) indexedIn(memory *index) node {
	if !n.isObject() || n.index != nil || n.saysNothing() {
		return n
	}
	if memory == nil {
		memory = new(index)
	}
	if memory.members == nil {
		memory.members = memory.few[:]
	}

	members, names := memory.members[:0], uint64(0)
	for c := jsonscan.Enter(n.raw, 0); len(members) < membersMax && c.Next(); {
		end := jsonscan.SkipValue(n.raw, c.At)
		nameEnd := c.Start + len(c.Name)
		members = append(members, member{int32(c.Start), int32(nameEnd), int32(c.At), int32(end)})
		names |= nameBit(jsonscan.UnquoteBytes(c.Name))
		c.At = end
	}
	memory.members, memory.names = members, names
	n.index = memory

	return n
}

// names yields the names of an object with an index.
func (n node) names(yield func([]byte) bool) {
	if n.index == nil {
		return
	}
	for _, m := range n.index.members {
		if !yield(jsonscan.UnquoteBytes(n.raw[m.name:m.nameEnd])) {
			return
		}
	}
}

// nameBit returns one of 64 bits for a name.
func nameBit[T string | []byte](name T) uint64 {
	if len(name) == 0 {
		return 1
	}

	return 1 << ((5*len(name) ^ int(name[0]) ^ 3*int(name[len(name)-1])) % 64)
}

// lacks reports whether there is certainly no member called name. It is inlined in loops over names, of
// which nearly all are absent.
func (n node) lacks(name string) bool {
	return len(n.raw) <= 2 || n.index != nil && n.index.names&nameBit(name) == 0
}

// at follows names into nested objects.
func (n node) at(names ...string) node {
	for _, name := range names {
		if n.raw == nil {
			break
		}
		n = n.member(name)
	}

	return n
}

// member returns the first member called name, unless it is null.
func (n node) member(name string) node {
	switch {
	case n.lacks(name):
		return node{}
	// Most nodes are asked for one name or two, which an index would not repay.
	case n.index == nil:
		return n.search(name)
	}

	for i := range n.index.members {
		m := &n.index.members[i]
		if isNamed(n.raw[m.name:m.nameEnd], name) {
			return n.part(int(m.value), int(m.end)).unlessNull()
		}
	}

	return node{}
}

// search is member without an index. The member 0 of a list is its first element.
func (n node) search(name string) node {
	switch {
	case n.isObject():
	case name == "0":
		return n.element()
	default:
		return node{}
	}

	c := jsonscan.Enter(n.raw, 0)
	for i := 0; i < membersMax && c.Next(); i++ {
		end := jsonscan.SkipValue(n.raw, c.At)
		if isNamed(c.Name, name) {
			return n.part(c.At, end).unlessNull()
		}
		c.At = end
	}

	return node{}
}

// isNamed reports whether a name in quotes is this one.
func isNamed(quoted []byte, name string) bool {
	// Nearly all names are of another length. An escape takes more bytes than what it
	// stands for.
	if len(quoted)-2 <= len(name) {
		return string(quoted[1:len(quoted)-1]) == name
	}

	return bytes.IndexByte(quoted, '\\') >= 0 && string(jsonscan.UnquoteBytes(quoted)) == name
}

// unlessNull returns an empty node instead of null.
func (n node) unlessNull() node {
	if n.kind() == 'n' {
		return node{}
	}

	return n
}

// first returns the first existing member among names.
func (n node) first(names ...string) node {
	for _, name := range names {
		if n.lacks(name) {
			continue
		}
		if v := n.member(name); v.exists() {
			return v
		}
	}

	return node{}
}

// hasMembers reports whether n is an object with an index that has any.
func (n node) hasMembers() bool { return n.index != nil && len(n.index.members) > 0 }

// or returns n, or other if n does not exist.
func (n node) or(other node) node {
	if n.exists() {
		return n
	}

	return other
}

// exists reports whether there is a value.
func (n node) exists() bool { return n.raw != nil }

// kind returns the first byte, which tells the type of the value; 0 for an empty node.
func (n node) kind() byte {
	if len(n.raw) == 0 {
		return 0
	}

	return n.raw[0]
}

func (n node) isObject() bool { return n.kind() == '{' }
func (n node) isArray() bool  { return n.kind() == '[' }
func (n node) isText() bool   { return n.kind() == '"' }

// isScalar reports whether n is a number, true or false.
func (n node) isScalar() bool {
	return n.exists() && !n.isObject() && !n.isArray() && !n.isText() && n.kind() != 'n'
}

// empty reports whether the node has no content: null, {}, [] or "", also in quotes.
func (n node) empty() bool {
	switch n.kind() {
	case 0, 'n':
		return true
	case '"':
		return string(n.raw) == `""` || string(n.raw) == `"{}"` || string(n.raw) == `"[]"`
	case '{', '[':
		c := jsonscan.Enter(n.raw, 0)
		return !c.Next()
	}

	return false
}

// text returns the text of a string, "" for anything else.
func (n node) text() string {
	if !n.isText() {
		return ""
	}

	// A copy: what is read must not hold a body of many megabytes in memory.
	return jsonscan.Unquote(n.raw)
}

// texts returns the first non-empty text among the members called names.
func (n node) texts(names ...string) string {
	for _, name := range names {
		if n.lacks(name) {
			continue
		}
		if s := n.member(name).text(); s != "" {
			return s
		}
	}

	return ""
}

// each yields the elements of an array, and nothing of anything else, nor elements that say
// nothing. Objects are indexed, in memory that the next one takes. It ends with the reading.
func (n node) each(yield func(node) bool) {
	if !n.isArray() {
		return
	}

	var memory index
	for c := jsonscan.Enter(n.raw, 0); c.Next() && !n.reading.isOver(); {
		start := c.At
		c.At = jsonscan.SkipValue(n.raw, start)
		e := n.part(start, c.At)
		if !e.saysNothing() && !yield(e.indexedIn(&memory)) {
			return
		}
	}
}

// saysNothing reports whether a node is {}, [], "", null, a number or a Boolean. In lists
// they are not read: to look for members in each would cost far more than their bytes.
func (n node) saysNothing() bool {
	return len(n.raw) <= 2 || n.isScalar() || n.kind() == 'n'
}

// element returns the first element of an array.
func (n node) element() node {
	if n.isArray() {
		if c := jsonscan.Enter(n.raw, 0); c.Next() {
			return n.part(c.At, jsonscan.SkipValue(n.raw, c.At))
		}
	}

	return node{}
}

// count returns a whole number of 0 or more that a float64 holds exactly, nil
// for anything else.
func (n node) count() *int64 {
	if k := n.kind(); k != '-' && (k < '0' || k > '9') {
		return nil
	}
	i, ok := jsonscan.Count(n.raw)
	if !ok {
		return nil
	}

	return &i
}

// counts returns the first count among the members called names.
func (n node) counts(names ...string) *int64 {
	for _, name := range names {
		if c := n.member(name).count(); c != nil {
			return c
		}
	}

	return nil
}

// number returns the member called name if it is a count, otherwise 0.
func (n node) number(name string) int64 {
	if c := n.member(name).count(); c != nil {
		return *c
	}

	return 0
}

// inner returns the JSON object inside a string, as some clients send bodies. Anything
// but a string is returned as it is.
func (n node) inner() node {
	if !n.isText() {
		return n
	}
	text := []byte(n.text())
	// JSON in a string was not checked with the body, so it gets the same bounds here.
	if _, err := wire.ParseObject(text); err != nil {
		return node{}
	}

	return node{raw: bytes.TrimSpace(text), reading: n.reading}
}

// compact returns a value as text: the content of a string, otherwise
// JSON without blanks.
func (n node) compact() string {
	switch {
	case len(n.raw) == 0 || n.kind() == 'n':
		return ""
	case n.isText():
		return n.text()
	case n.isScalar():
		return string(n.raw)
	}

	var b bytes.Buffer
	if json.Compact(&b, n.raw) != nil {
		return ""
	}

	return strings.TrimSpace(b.String())
}
