package calls

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"

	"promptspool/api/wire"
	"promptspool/api/wire/jsonscan"
)

// node is a JSON value inside a body that wire.ParseObject has accepted; no bytes at all where there is none. Every
// question may be asked of every node: what does not fit is simply not there.
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

// first is the first of the members called names that is there.
func (n node) first(names ...string) node {
	for _, name := range names {
		if v := n.at(name); v != nil {
			return v
		}
	}
	return nil
}

func (n node) kind() byte {
	if len(n) == 0 {
		return 0
	}
	return n[0]
}

func (n node) isObject() bool { return n.kind() == '{' }
func (n node) isArray() bool  { return n.kind() == '[' }
func (n node) isText() bool   { return n.kind() == '"' }

// text is the text of a string, "" of anything else.
func (n node) text() string {
	if !n.isText() {
		return ""
	}
	return jsonscan.Unquote(json.RawMessage(n))
}

// texts is the first of the members called names that is a text with something in it.
func (n node) texts(names ...string) string {
	for _, name := range names {
		if s := n.at(name).text(); s != "" {
			return s
		}
	}
	return ""
}

// each walks the elements of an array; of anything else it walks nothing.
func (n node) each(visit func(node)) {
	if !n.isArray() {
		return
	}
	for _, e := range jsonscan.Elements(json.RawMessage(n)) {
		visit(node(e))
	}
}

// element is the first element of an array.
func (n node) element() node {
	if n.isArray() {
		for _, e := range jsonscan.Elements(json.RawMessage(n)) {
			return node(e)
		}
	}
	return nil
}

// count is a whole number of 0 or more that a float64 holds exactly; nil if it is anything else.
func (n node) count() *int64 {
	var x float64
	if len(n) == 0 || json.Unmarshal(n, &x) != nil || !(x >= 0 && x <= 1<<53) || x != math.Trunc(x) {
		return nil
	}
	i := int64(x)
	if n.kind() == 'n' { // null decodes as 0
		return nil
	}
	return &i
}

// counts is the first of the members called names that is a count.
func (n node) counts(names ...string) *int64 {
	for _, name := range names {
		if c := n.at(name).count(); c != nil {
			return c
		}
	}
	return nil
}

// index is the member called name if it is a count, else 0.
func (n node) index(name string) int64 {
	if c := n.at(name).count(); c != nil {
		return *c
	}
	return 0
}

// inner is the JSON object that a string holds, as some clients send bodies; an object is itself.
func (n node) inner() node {
	if !n.isText() {
		return n
	}
	text := []byte(n.text())
	if _, err := wire.ParseObject(text); err != nil {
		return nil
	}
	return node(bytes.TrimSpace(text))
}

// compact is a value as text: a string's own, else its JSON without blanks.
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
