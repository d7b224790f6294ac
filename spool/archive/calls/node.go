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
type node json.RawMessage

// at follows names into nested objects.
func (n node) at(names ...string) node {
	raw := json.RawMessage(n)
	for _, name := range names {
		v, ok := jsonscan.Lookup(raw, name)
		if !ok {
			return nil
		}
		raw = v
	}

	return node(raw)
}

// first returns the first existing member among names.
func (n node) first(names ...string) node {
	for _, name := range names {
		if v := n.at(name); v != nil {
			return v
		}
	}

	return nil
}

// kind returns the first byte, which tells the type of the value; 0 for an empty node.
func (n node) kind() byte {
	if len(n) == 0 {
		return 0
	}

	return n[0]
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
	return jsonscan.Unquote(json.RawMessage(n))
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
	for _, e := range jsonscan.Elements(json.RawMessage(n)) {
		visit(node(e))
	}
}

// element returns the first element of an array.
func (n node) element() node {
	if n.isArray() {
		for _, e := range jsonscan.Elements(json.RawMessage(n)) {
			return node(e)
		}
	}

	return nil
}

// count returns a whole number of 0 or more that a float64 holds exactly, nil
// for anything else.
func (n node) count() *int64 {
	var x float64
	if len(n) == 0 || json.Unmarshal(n, &x) != nil || !(x >= 0 && x <= 1<<53) || x != math.Trunc(x) {
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
		return nil
	}

	return node(bytes.TrimSpace(text))
}

// compact returns a value as text: the content of a string, otherwise
// JSON without blanks.
func (n node) compact() string {
	switch {
	case len(n) == 0 || n.kind() == 'n':
		return ""
	case n.isText():
		return n.text()
	}

	var b bytes.Buffer
	if json.Compact(&b, n) != nil {
		return ""
	}

	return strings.TrimSpace(b.String())
}
