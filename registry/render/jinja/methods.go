package jinja

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// methodNames lists the methods that can be called: of strings, of lists, and of mappings.
var methodNames = strings.Fields(`
	upper lower title capitalize strip lstrip rstrip split splitlines replace startswith endswith
	find rfind index join
	get items keys values`)

type methodExpr struct {
	operand expression
	name    string
	args    *argumentExprs
}

func (e *methodExpr) eval(x *run) any {
	x.step()
	operand := e.operand.eval(x)
	a := e.args.eval(x, e.name)

	var v any
	ok := false
	switch operand := operand.(type) {
	case string:
		v, ok = x.textMethod(operand, e.name, a)
	case *dictValue:
		v, ok = x.dictMethod(operand, e.name, a)
	case *listValue:
		v, ok = x.listMethod(operand, e.name, a)
	case *undefined:
		return operand
	}
	if !ok {
		fail("calls the method %s of %s", e.name, typeName(operand))
	}

	return v
}

func (x *run) dictMethod(d *dictValue, name string, a arguments) (any, bool) {
	switch name {
	case "get":
		if v, ok := d.get(x, a.must(0, "key")); ok {
			return v, true
		}
		v, _ := a.get(1, "default")
		return v, true
	case "items":
		return &listValue{items: x.pairs(d)}, true
	case "keys":
		// Not copied, because values never change.
		return &listValue{items: d.keys}, true
	case "values":
		return &listValue{items: d.values}, true
	}

	return nil, false
}

func (x *run) listMethod(l *listValue, name string, a arguments) (any, bool) {
	if name != "index" {
		return nil, false
	}

	for i, item := range l.items {
		if x.equal(item, a.must(0, "value")) {
			return int64(i), true
		}
	}
	fail("calls index for a value that is not in the list")
	return nil, false
}

// textMethod calls a method of a string.
func (x *run) textMethod(s, name string, a arguments) (any, bool) {
	// Enough for most results; those that can be longer pay for themselves.
	x.pay(2 * len(s))
	switch name {
	case "upper":
		return upper(s), true
	case "lower":
		return strings.ToLower(s), true
	case "title":
		return pythonTitle(s), true
	case "capitalize":
		return capitalized(s), true
	case "strip", "lstrip", "rstrip":
		return stripped(s, name, a), true
	case "split":
		return x.split(s, a), true
	case "splitlines":
		return x.texts(lines(s)), true
	case "join":
		return x.joined(x.list(a.must(0, "iterable")), s), true
	case "replace":
		return x.replace(s, a.text(0, "old", ""), a.text(1, "new", ""), a.number(2, "count", -1)), true

	case "startswith":
		hasPrefix := func(p string) bool { return strings.HasPrefix(s, p) }
		return x.anyOf(a.must(0, "prefix"), hasPrefix), true
	case "endswith":
		hasSuffix := func(p string) bool { return strings.HasSuffix(s, p) }
		return x.anyOf(a.must(0, "suffix"), hasSuffix), true
	case "find", "index", "rfind":
		return find(s, name, a.text(0, "sub", "")), true
	}

	return nil, false
}

// find returns the position of sub in s, in characters; -1 if it is not there.
func find(s, method, sub string) int64 {
	i := strings.Index(s, sub)
	if method == "rfind" {
		i = strings.LastIndex(s, sub)
	}
	if i < 0 && method == "index" {
		fail("calls index for a text that is not in the other")
	}
	if i > 0 {
		i = utf8.RuneCountInString(s[:i])
	}

	return int64(i)
}

// anyOf reports whether is holds for a string, or for one of a list.
func (x *run) anyOf(v any, is func(string) bool) bool {
	if l, ok := v.(*listValue); ok {
		return slices.ContainsFunc(l.items, func(e any) bool {
			x.step()
			return is(x.str(e))
		})
	}

	return is(x.str(v))
}
