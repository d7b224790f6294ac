package calls

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"

	"promptspool/api/wire"
	"promptspool/api/wire/jsonscan"
)

// node is a JSON value inside a body that wire.ParseObject accepted, or empty where there
// is none. Every method works on every node: what does not fit is treated as absent.
type node struct {
	raw json.RawMessage

	// members are those of an object that is asked for many names, else nil. To look each
	// up in raw would scan all values in front of it, or all where it is absent.
	members []member
}

// member is where a member is within the raw bytes of its object, which are at most a
// body, so 32 bits hold each place.
type member struct {
	name, nameEnd, value, end int32
}

// indexedMembers is how many members of an object are indexed at most. Objects with more
// are nobody's calls, and an index of them would take more memory than they do.
const indexedMembers = 48

func nodeOf(raw json.RawMessage) node { return node{raw: raw} }

// indexed returns the node for a caller who looks up many names.
func (n node) indexed() node {
	if !n.isObject() || n.members != nil {
		return n
	}

	members := make([]member, 0, 8)
	for c := jsonscan.Enter(n.raw, 0); c.Next(); {
		// Each look-up walks the list: a long one would cost the square of its length.
		if len(members) == indexedMembers {
			return n
		}
		end := jsonscan.SkipValue(n.raw, c.At)
		nameEnd := c.Start + len(c.Name)
		members = append(members, member{int32(c.Start), int32(nameEnd), int32(c.At), int32(end)})
		c.At = end
	}
	n.members = members

	return n
}

// at follows names into nested objects.
func (n node) at(names ...string) node {
	for _, name := range names {
		n = n.member(name)
	}

	return n
}

// member returns the first member called name, unless it is null.
func (n node) member(name string) node {
	// Most nodes are asked for one name or two, which an index would not repay.
	if n.members == nil {
		value, ok := jsonscan.Lookup(n.raw, name)
		if !ok {
			return node{}
		}
		return nodeOf(value)
	}

	// Of members with one name the first counts, as in Lookup.
	for _, m := range n.members {
		if string(jsonscan.UnquoteBytes(n.raw[m.name:m.nameEnd])) != name {
			continue
		}
		value := n.raw[m.value:m.end]
		if string(value) == "null" {
			return node{}
		}
		return nodeOf(value)
	}

	return node{}
}

// first returns the first existing member among names.
func (n node) first(names ...string) node {
	for _, name := range names {
		if v := n.member(name); v.exists() {
			return v
		}
	}

	return node{}
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

// empty reports whether the node has no content: null, {}, [] or "".
func (n node) empty() bool {
	switch n.compact() {
	case "", "{}", "[]":
		return true
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
		if s := n.at(name).text(); s != "" {
			return s
		}
	}

	return ""
}

// each visits the elements of an array, and nothing in anything else.
func (n node) each(visit func(node)) {
	if !n.isArray() {
		return
	}
	for _, e := range jsonscan.Elements(n.raw) {
		visit(nodeOf(e))
	}
}

// element returns the first element of an array.
func (n node) element() node {
	if n.isArray() {
		for _, e := range jsonscan.Elements(n.raw) {
			return nodeOf(e)
		}
	}

	return node{}
}

// count returns a whole number of 0 or more that a float64 holds exactly, nil
// for anything else.
func (n node) count() *int64 {
	var x float64
	if len(n.raw) == 0 || json.Unmarshal(n.raw, &x) != nil || !(x >= 0 && x <= 1<<53) || x != math.Trunc(x) {
		return nil
	}
	if n.kind() == 'n' { // null decodes as 0
		return nil
	}
	i := int64(x)

	return &i
}

// counts returns the first count among the members called names.
func (n node) counts(names ...string) *int64 {
	for _, name := range names {
		if c := n.at(name).count(); c != nil {
			return c
		}
	}

	return nil
}

// index returns the member called name if it is a count, otherwise 0.
func (n node) index(name string) int64 {
	if c := n.at(name).count(); c != nil {
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

	return nodeOf(bytes.TrimSpace(text))
}

// compact returns a value as text: the content of a string, otherwise
// JSON without blanks.
func (n node) compact() string {
	switch {
	case len(n.raw) == 0 || n.kind() == 'n':
		return ""
	case n.isText():
		return n.text()
	}

	var b bytes.Buffer
	if json.Compact(&b, n.raw) != nil {
		return ""
	}

	return strings.TrimSpace(b.String())
}
