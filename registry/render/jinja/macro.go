package jinja

import (
	"slices"
	"strings"
)

// macroNode is {% macro name(params) %}. The block of {% call(params) %} is a macro named
// caller.
type macroNode struct {
	name     string
	params   []string
	defaults []expression // of the last params
	body     []node

	// uses has those of varargs, kwargs and caller that the body uses. As in Jinja, only
	// they make a macro take more than its parameters.
	uses map[string]bool
}

// macro is a macro as a value, with the scope in which it was defined.
type macro struct {
	*macroNode
	scope *scope
}

// macroCallExpr calls what may be a macro, by a name that the text has set.
type macroCallExpr struct {
	name variable
	args *argumentExprs
}

// callNode is {% call macro(arguments) %}: the macro gets the block as caller.
type callNode struct {
	call  *macroCallExpr
	block *macroNode
}

// macroNames finds the macros of a text before it is parsed: one may call another that
// comes later.
func macroNames(tokens []token) map[string]bool {
	names := map[string]bool{}
	for i := range len(tokens) - 2 {
		if tokens[i].kind == "{%" && tokens[i+1].text == "macro" {
			names[tokens[i+2].text] = true
		}
	}

	return names
}

// isMacro reports whether a name that is called may be a macro: it is one, or it was set
// in a text that has macros.
func (p *parser) isMacro(name string) bool {
	return p.macros[name] || len(p.macros) > 0 && p.isBound(name)
}

func (p *parser) macroTag(tag token) node {
	n := &macroNode{name: p.target(), uses: map[string]bool{}}
	p.bind(n.name) // before its body, which may call it
	p.signature(n)
	p.macroBody(n, "endmacro", tag)

	return n
}

func (p *parser) callTag(tag token) node {
	n := &callNode{block: &macroNode{name: "caller", uses: map[string]bool{}}}
	if p.is("(") {
		p.signature(n.block)
	}

	at := p.now().at
	call, ok := p.expr().(*macroCallExpr)
	if !ok {
		failAt(at, "calls what is not a macro")
	}
	n.call = call
	p.macroBody(n.block, "endcall", tag)

	return n
}

// signature reads (a, b=1).
func (p *parser) signature(n *macroNode) {
	p.want("(")
	p.scoped(func() {
		for !p.is(")") {
			if len(n.params) > 0 {
				p.want(",")
			}
			at := p.now().at
			name := p.target()
			n.params = append(n.params, name)
			p.bind(name)

			if p.take("=") {
				n.defaults = append(n.defaults, p.expr())
			} else if len(n.defaults) > 0 {
				failAt(at, "has the parameter %s without a default after one with a default", name)
			}
		}
	})
	p.want(")")
}

// macroBody reads the end of a tag and the body of its macro.
func (p *parser) macroBody(n *macroNode, end string, tag token) {
	p.want("%}")
	outer := p.macro
	p.macro = n
	p.scoped(func() {
		for _, name := range slices.Concat(n.params, []string{"varargs", "kwargs", "caller"}) {
			p.bind(name)
		}
		n.body = p.body(end, tag)
	})
	p.macro = outer

	p.next()
	p.want("%}")
}

func (n *macroNode) exec(x *run) {
	x.set(n.name, &macro{n, x.scope})
}

func (n *callNode) exec(x *run) {
	args := n.call.args.eval(x, string(n.call.name))
	args.names = append(slices.Clip(args.names), "caller")
	args.named = append(args.named, &macro{n.block, x.scope})
	x.write(x.str(n.call.apply(x, args)))
}

func (e *macroCallExpr) eval(x *run) any {
	x.step()
	return e.apply(x, e.args.eval(x, string(e.name)))
}

func (e *macroCallExpr) apply(x *run, a arguments) any {
	called := e.name.eval(x)
	m, ok := called.(*macro)
	if !ok {
		fail("calls %s, which is not a macro but %s", e.name, typeName(called))
	}

	return m.call(x, a)
}

// call returns what the body writes with its parameters set.
func (m *macro) call(x *run, a arguments) (text string) {
	if x.calls++; x.calls > callsMax {
		fail("calls macros within macros more than %d deep", callsMax)
	}
	outer := x.scope
	x.scope = m.scope
	x.scoped(nil, func() {
		m.setParameters(x, a)
		text = x.capture(m.body)
	})
	x.scope = outer
	x.calls--

	return text
}

// member returns what a text can ask of a macro.
func (m *macro) member(name any) (any, bool) {
	switch name {
	case "name":
		return m.name, true
	case "arguments":
		params := &listValue{tuple: true}
		for _, p := range m.params {
			params.items = append(params.items, p)
		}
		return params, true
	case "catch_varargs", "catch_kwargs", "caller":
		used, _ := strings.CutPrefix(name.(string), "catch_")
		return m.uses[used], true
	}

	return nil, false
}

// setParameters sets the parameters of a call, and what else the body uses of it.
func (m *macro) setParameters(x *run, a arguments) {
	// A default sees the parameters before it, and nothing of the others.
	for _, name := range m.params {
		x.set(name, &undefined{})
	}
	for i, name := range m.params {
		if v, ok := a.get(i, name); ok {
			x.set(name, v)
		} else if d := i - len(m.params) + len(m.defaults); d >= 0 {
			x.set(name, m.defaults[d].eval(x))
		}
	}

	varargs := &listValue{tuple: true}
	if more := len(a.list) - len(m.params); more > 0 {
		if !m.uses["varargs"] {
			fail("calls %s with %d values; it takes at most %d", m.name, len(a.list), len(m.params))
		}
		varargs.items = a.list[len(m.params):]
	}

	kwargs, caller := x.dict(), any(&undefined{})
	for i, name := range a.names {
		x.read(16 * len(m.params)) // a text may name thousands of them
		at := slices.Index(m.params, name)
		switch {
		case at >= len(a.list):
		case name == "caller" && m.uses["caller"]:
			caller = a.named[i]
		case m.uses["kwargs"]:
			x.put(kwargs, name, a.named[i])
		default:
			fail("calls %s with %s, which it does not take", m.name, name)
		}
	}

	x.set("varargs", varargs)
	x.set("kwargs", kwargs)
	x.set("caller", caller)
}
