package jinja

import "slices"

// macroNode is {% macro name(params) %}. The block of {% call(params) %} is a macro named
// caller.
type macroNode struct {
	name     string
	params   []string
	defaults []expression // of the last params
	body     []node
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
	n := &macroNode{name: p.target()}
	// Bound before its body, which may call it.
	p.bind(n.name)
	p.signature(n)
	n.body = p.block("endmacro", tag, append(n.params, "caller")...)

	return n
}

func (p *parser) callTag(tag token) node {
	n := &callNode{block: &macroNode{name: "caller"}}
	if p.is("(") {
		p.signature(n.block)
	}

	at := p.now().at
	call, ok := p.expr().(*macroCallExpr)
	if !ok {
		failAt(at, "calls what is not a macro")
	}
	n.call = call
	n.block.body = p.block("endcall", tag, append(n.block.params, "caller")...)

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

// setParameters sets the parameters of a call, and the block of a call tag.
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

	if len(a.list) > len(m.params) {
		fail("calls %s with %d values; it takes at most %d", m.name, len(a.list), len(m.params))
	}
	x.set("caller", &undefined{})
	for i, name := range a.names {
		// A text may name thousands of them.
		x.read(16 * len(m.params))
		switch at := slices.Index(m.params, name); {
		case at >= len(a.list):
		case name == "caller":
			x.set(name, a.named[i])
		default:
			fail("calls %s with %s, which it does not take", m.name, name)
		}
	}
}
