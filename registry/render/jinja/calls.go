package jinja

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// argumentExprs are the arguments of a call, as they are written.
type argumentExprs struct {
	list  []expression
	names []string
	named []expression
}

// arguments are the arguments of a call, as values. For what is wrong with them, what names the call.
type arguments struct {
	x     *run
	what  string
	list  []any
	names []string
	named []any
}

func (a *argumentExprs) eval(x *run, what string) arguments {
	args := arguments{x: x, what: what}
	if a == nil {
		return args
	}
	x.pay(16 * (len(a.list) + len(a.named)))
	args.names = a.names
	for _, e := range a.list {
		args.list = append(args.list, e.eval(x))
	}
	for _, e := range a.named {
		args.named = append(args.named, e.eval(x))
	}
	return args
}

// get is the argument at a place or with a name.
func (a *arguments) get(i int, name string) (any, bool) {
	if i < len(a.list) {
		return a.list[i], true
	}
	a.x.read(16 * len(a.names))
	if j := slices.Index(a.names, name); j >= 0 {
		return a.named[j], true
	}
	return nil, false
}

func (a *arguments) must(i int, name string) any {
	v, ok := a.get(i, name)
	if !ok {
		fail("calls %s without %s", a.what, name)
	}
	return v
}

// rest is the arguments behind the first.
func (a arguments) rest() arguments {
	if len(a.list) > 0 {
		a.list = a.list[1:]
	}
	return a
}

func (a *arguments) text(i int, name, absent string) string {
	v, ok := a.get(i, name)
	if !ok || v == nil {
		return absent
	}
	return a.x.str(v)
}

func (a *arguments) number(i int, name string, absent int64) int {
	v, ok := a.get(i, name)
	if !ok || v == nil {
		return int(absent)
	}
	n, ok := toNumber(v)
	k, isInt := n.(int64)
	if !ok || !isInt {
		fail("calls %s with %s as %s", a.what, typeName(v), name)
	}
	return int(min(max(k, -valueBytesMax-1), valueBytesMax+1)) // anything further costs too much
}

func (a *arguments) truth(i int, name string, absent bool) bool {
	v, ok := a.get(i, name)
	if !ok {
		return absent
	}
	return a.x.truth(v)
}

// functions are the functions that there are.
var functions map[string]func(x *run, a arguments) any

func init() {
	functions = map[string]func(x *run, a arguments) any{
		"range":     callRange,
		"dict":      func(x *run, a arguments) any { return newDict(x, a) },
		"namespace": func(x *run, a arguments) any { return &namespace{*newDict(x, a)} },
	}
}

// newDict makes a mapping of another one and of named arguments.
func newDict(x *run, a arguments) *dictValue {
	d := x.dict()
	if len(a.list) > 0 {
		other, ok := a.list[0].(*dictValue)
		if !ok {
			fail("calls %s with %s", a.what, typeName(a.list[0]))
		}
		for i, key := range other.keys {
			x.put(d, key, other.values[i])
		}
	}
	for i, name := range a.names {
		x.put(d, name, a.named[i])
	}
	return d
}

func callRange(x *run, a arguments) any {
	from, to, step := 0, a.number(0, "stop", 0), a.number(2, "step", 1)
	if len(a.list) > 1 {
		from, to = a.number(0, "start", 0), a.number(1, "stop", 0)
	}
	if step == 0 || len(a.list) == 0 {
		fail("calls range without a stop, or with the step 0")
	}
	n := 0
	if step > 0 && to > from {
		n = (to - from + step - 1) / step
	} else if step < 0 && to < from {
		n = (from - to - step - 1) / -step
	}
	if n > rangeMax {
		fail("calls range for more than %d numbers", rangeMax)
	}
	x.pay(24 * n)
	l := &listValue{items: make([]any, n)}
	for i := range l.items {
		l.items[i] = int64(from + i*step)
	}
	return l
}

type callExpr struct {
	name string
	args *argumentExprs
}

func (e *callExpr) eval(x *run) any {
	x.step()
	return functions[e.name](x, e.args.eval(x, e.name))
}

// methodNames are the methods that there are: of texts, of mappings and lists, of loop.
const methodNames = "upper lower title capitalize swapcase strip lstrip rstrip split rsplit splitlines replace startswith endswith find rfind index count join " +
	"zfill center ljust rjust removeprefix removesuffix isdigit isdecimal isnumeric isalpha isalnum isupper islower isspace partition rpartition " +
	"get items keys values cycle changed"

type methodExpr struct {
	of   expression
	name string
	args *argumentExprs
}

func (e *methodExpr) eval(x *run) any {
	x.step()
	of := e.of.eval(x)
	a := e.args.eval(x, e.name)
	var v any
	ok := false
	switch of := of.(type) {
	case string:
		v, ok = x.textMethod(of, e.name, a)
	case *dictValue:
		v, ok = x.dictMethod(of, e.name, a)
	case *listValue:
		v, ok = x.listMethod(of, e.name, a)
	case *loopState:
		v, ok = x.loopMethod(of, e.name, a)
	case *undefined:
		return of
	}
	if !ok {
		fail("calls the method %s of %s", e.name, typeName(of))
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
		return &listValue{items: d.keys}, true
	case "values":
		return &listValue{items: d.values}, true
	}
	return nil, false
}

func (x *run) listMethod(l *listValue, name string, a arguments) (any, bool) {
	switch name {
	case "index":
		for i, item := range l.items {
			if x.equal(item, a.must(0, "value")) {
				return int64(i), true
			}
		}
		fail("calls index for a value that is not in the list")
	case "count":
		n := int64(0)
		for _, item := range l.items {
			if x.equal(item, a.must(0, "value")) {
				n++
			}
		}
		return n, true
	}
	return nil, false
}

func (x *run) loopMethod(l *loopState, name string, a arguments) (any, bool) {
	switch name {
	case "cycle":
		if len(a.list) == 0 {
			fail("calls loop.cycle without values")
		}
		return a.list[l.index%len(a.list)], true
	case "changed":
		same := l.called && x.equal(&listValue{items: l.changed}, &listValue{items: a.list})
		l.called, l.changed = true, a.list
		return !same, true
	}
	return nil, false
}

// member is what loop.name is.
func (l *loopState) member(name string) (any, bool) {
	n := len(l.items)
	switch name {
	case "index":
		return int64(l.index + 1), true
	case "index0":
		return int64(l.index), true
	case "revindex":
		return int64(n - l.index), true
	case "revindex0":
		return int64(n - l.index - 1), true
	case "first":
		return l.index == 0, true
	case "last":
		return l.index == n-1, true
	case "length":
		return int64(n), true
	case "depth":
		return int64(1), true
	case "depth0":
		return int64(0), true
	case "previtem":
		if l.index > 0 {
			return l.items[l.index-1], true
		}
	case "nextitem":
		if l.index < n-1 {
			return l.items[l.index+1], true
		}
	}
	return nil, false
}

// textMethod calls a method of a text.
func (x *run) textMethod(s, name string, a arguments) (any, bool) {
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
	case "swapcase":
		return strings.Map(func(r rune) rune {
			if unicode.IsUpper(r) {
				return unicode.ToLower(r)
			}
			return unicode.ToUpper(r)
		}, s), true
	case "strip", "lstrip", "rstrip":
		return stripped(s, name, a), true
	case "split", "rsplit":
		return x.split(s, name, a), true
	case "splitlines":
		return x.texts(lines(s)), true
	case "replace":
		return x.replace(s, a.text(0, "old", ""), a.text(1, "new", ""), a.number(2, "count", -1)), true
	case "join":
		return x.joined(x.list(a.must(0, "iterable")), s), true
	case "zfill", "center", "ljust", "rjust":
		return x.padded(s, name, a), true
	case "removeprefix":
		return strings.TrimPrefix(s, a.text(0, "prefix", "")), true
	case "removesuffix":
		return strings.TrimSuffix(s, a.text(0, "suffix", "")), true
	case "partition", "rpartition":
		return x.partition(s, a.text(0, "sep", ""), name == "rpartition"), true
	}
	return x.textQuestion(s, name, a)
}

// textQuestion calls a method that answers with a number or yes or no.
func (x *run) textQuestion(s, name string, a arguments) (any, bool) {
	every := func(is func(r rune) bool) bool {
		return s != "" && strings.IndexFunc(s, func(r rune) bool { return !is(r) }) < 0
	}
	switch name {
	case "startswith":
		return x.anyOf(a.must(0, "prefix"), func(p string) bool { return strings.HasPrefix(s, p) }), true
	case "endswith":
		return x.anyOf(a.must(0, "suffix"), func(p string) bool { return strings.HasSuffix(s, p) }), true
	case "find", "index", "rfind":
		sub := a.text(0, "sub", "")
		i := strings.Index(s, sub)
		if name == "rfind" {
			i = strings.LastIndex(s, sub)
		}
		if i < 0 && name == "index" {
			fail("calls index for a text that is not in the other")
		}
		if i > 0 {
			i = utf8.RuneCountInString(s[:i])
		}
		return int64(i), true
	case "count":
		return int64(strings.Count(s, a.text(0, "sub", ""))), true
	case "isdigit", "isdecimal", "isnumeric":
		return every(unicode.IsDigit), true
	case "isalpha":
		return every(unicode.IsLetter), true
	case "isalnum":
		return every(func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }), true
	case "isspace":
		return every(unicode.IsSpace), true
	case "isupper":
		return s != strings.ToLower(s) && s == strings.ToUpper(s), true
	case "islower":
		return s != strings.ToUpper(s) && s == strings.ToLower(s), true
	}
	return nil, false
}

func (x *run) anyOf(v any, is func(string) bool) bool {
	if l, ok := v.(*listValue); ok {
		return slices.ContainsFunc(l.items, func(e any) bool {
			x.step()
			return is(x.str(e))
		})
	}
	return is(x.str(v))
}
