package jinja

import (
	"slices"
	"strings"

	"promptspool/registry/render/language"
)

// run is the state of rendering one text. The total that all texts of a blueprint spend
// is in r.
type run struct {
	r     *language.Rendering
	out   []byte
	scope *scope
	depth int
	calls int // of macros within macros
}

// scope holds what was set in a block. Each for loop and each with has its own; an if
// does not.
type scope struct {
	names  map[string]any
	parent *scope
}

// step spends one step.
func (x *run) step() {
	x.spend(1)
}

// spend counts steps, and ends the rendering if there are too many or the caller is gone.
func (x *run) spend(steps int) {
	if x.r.Steps += steps; x.r.Steps > stepsMax {
		fail("takes more than %d steps to render", stepsMax)
	}
	if x.r.Steps-x.r.Looked < stepsPerCheck {
		return
	}

	x.r.Looked = x.r.Steps
	if x.r.Context != nil && x.r.Context.Err() != nil {
		x.r.Ended = true
		// The texts that follow are not rendered either.
		x.r.Steps = stepsMax
		fail("was not rendered to its end: the call ended")
	}
}

// pay counts the memory of a value. Call it before making the value.
func (x *run) pay(bytes int) {
	if bytes < 0 || bytes > valueBytesMax-x.r.Memory {
		x.r.Memory = valueBytesMax
		fail("makes more than %d MiB of values", valueBytesMax>>20)
	}

	x.r.Memory += bytes
}

// payTimes pays n times, without overflowing.
func (x *run) payTimes(bytes int, n int64) {
	if bytes == 0 {
		return
	}
	if bytes > 0 && n > valueBytesMax {
		n = valueBytesMax + 1
	}

	x.pay(bytes * int(n))
}

// read spends what reading a string costs. Everything that takes a value as a string pays
// for it, so no filter, test or method can be made to read a large string over and over
// for free.
func (x *run) read(bytes int) {
	x.spend(bytes / bytesPerStep)
}

// write appends to the output.
func (x *run) write(s string) {
	if x.r.Output -= len(s); x.r.Output < 0 {
		fail("%v", language.ErrOutput)
	}

	x.out = append(x.out, s...)
}

// deeper bounds the recursion of f into values.
func (x *run) deeper(f func()) {
	if x.depth++; x.depth > valueDepthMax {
		fail("makes values that are nested deeper than %d", valueDepthMax)
	}
	// Not deferred: a failure in f ends the whole rendering.
	f()
	x.depth--
}

func (x *run) runBody(body []node) {
	for _, n := range body {
		x.step()
		n.exec(x)
	}
}

// scoped calls f in a new scope.
func (x *run) scoped(names map[string]any, f func()) {
	x.scope = &scope{names: names, parent: x.scope}
	f()
	x.scope = x.scope.parent
}

func (x *run) set(name string, value any) {
	if x.scope.names == nil {
		x.scope.names = make(map[string]any)
	}
	// Names are set in loops, so they count as memory.
	x.pay(32)
	x.scope.names[name] = value
}

// lookup returns the value of a variable.
func (x *run) lookup(name string) any {
	// Each scope costs a step: a name that is not there is looked for in all of them.
	for s := x.scope; s != nil; s = s.parent {
		x.step()
		if v, ok := s.names[name]; ok {
			return v
		}
	}

	raw, ok := x.r.Variables[name]
	if !ok {
		return &undefined{name}
	}

	// Decoded once for all texts: a variable may be large, and used in a loop.
	if v, ok := x.r.Decoded[name]; ok {
		return v
	}
	v := x.decode(raw)
	if x.r.Decoded == nil {
		x.r.Decoded = make(map[string]any)
	}
	x.r.Decoded[name] = v

	return v
}

// capture runs a body and returns what it writes.
func (x *run) capture(body []node) string {
	// The block writes into its own buffer; a failure inside ends the whole rendering
	// anyway.
	outer := x.out
	x.out = nil
	x.runBody(body)
	s := string(x.out)
	x.pay(len(s))
	x.out = outer

	return s
}

// macroNode is {% macro name(params) %}.
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
	n.body = p.block("endmacro", tag, n.params...)

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

func (e *macroCallExpr) eval(x *run) any {
	x.step()
	a := e.args.eval(x, string(e.name))
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

// setParameters sets the parameters of a call.
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
	for _, name := range a.names {
		// A text may name thousands of them.
		x.read(16 * len(m.params))
		if at := slices.Index(m.params, name); at < len(a.list) {
			fail("calls %s with %s, which it does not take", m.name, name)
		}
	}
}

// node is a part of a text: data, an output, a tag.
type node interface{ exec(x *run) }

// dataNode is text outside of tags.
type dataNode string

func (n dataNode) exec(x *run) { x.write(string(n)) }

// outputNode is {{ value }}.
type outputNode struct{ value expression }

func (n outputNode) exec(x *run) { x.write(x.str(n.value.eval(x))) }

type ifNode struct {
	cond            expression
	then, otherwise []node
}

func (n *ifNode) exec(x *run) {
	if x.truth(n.cond.eval(x)) {
		x.runBody(n.then)
	} else {
		x.runBody(n.otherwise)
	}
}

type forNode struct {
	targets         []string
	over, cond      expression
	body, otherwise []node
}

func (n *forNode) exec(x *run) {
	items := x.list(n.over.eval(x))
	if n.cond != nil {
		items = n.filtered(x, items)
	}
	// Unlike in Python, the else of a for is rendered for an empty list.
	if len(items) == 0 {
		x.scoped(nil, func() { x.runBody(n.otherwise) })
		return
	}

	loop := &loopState{items: items}
	for i, item := range items {
		loop.index = i
		x.step()
		x.scoped(nil, func() {
			x.set("loop", loop)
			x.assign(n.targets, item)
			x.runBody(n.body)
		})
	}
}

// filtered keeps the items for which the loop's condition holds. It comes first, because
// loop.length and loop.last count these items only.
func (n *forNode) filtered(x *run, items []any) []any {
	var kept []any
	for _, item := range items {
		x.scoped(nil, func() {
			x.assign(n.targets, item)
			if x.truth(n.cond.eval(x)) {
				x.pay(16)
				kept = append(kept, item)
			}
		})
	}

	return kept
}

// assign sets one name to a value, or several names to its elements.
func (x *run) assign(names []string, value any) {
	if len(names) == 1 {
		x.set(names[0], value)
		return
	}

	// As in Python: a string or a mapping can be taken apart as well.
	items := x.list(value)
	if len(items) != len(names) {
		fail("assigns %d values to %d names", len(items), len(names))
	}
	for i, name := range names {
		x.set(name, items[i])
	}
}

// setNode is set, of a value or of a block.
type setNode struct {
	targets   []string
	attribute string // if the only target is a namespace's attribute
	value     expression
	body      []node
	filters   []*filterExpr
}

func (n *setNode) exec(x *run) {
	var value any
	if n.value != nil {
		value = n.value.eval(x)
	} else {
		// Names that the block sets are not visible after it.
		x.scoped(nil, func() { value = x.capture(n.body) })
		for _, f := range n.filters {
			value = f.apply(x, value)
		}
	}

	if n.attribute == "" {
		x.assign(n.targets, value)
	} else {
		n.setAttribute(x, value)
	}
}

func (n *setNode) setAttribute(x *run, value any) {
	space, ok := x.lookup(n.targets[0]).(*namespace)
	if !ok {
		name := language.Shorten(n.targets[0])
		fail("sets %s.%s, and %s is not a namespace", name, language.Shorten(n.attribute), name)
	}

	x.put(&space.dictValue, n.attribute, value)
}

// loopMembers lists the members of loop.
var loopMembers = strings.Fields("index index0 first last length previtem nextitem")

// loopState is the variable loop within a for.
type loopState struct {
	items []any
	index int
}

// member returns loop.name.
func (l *loopState) member(name string) (any, bool) {
	n := len(l.items)
	switch name {
	case "index":
		return int64(l.index + 1), true
	case "index0":
		return int64(l.index), true
	case "first":
		return l.index == 0, true
	case "last":
		return l.index == n-1, true
	case "length":
		return int64(n), true
	case "previtem":
		if l.index > 0 {
			return l.items[l.index-1], true
		}
	case "nextitem":
		if l.index < n-1 {
			return l.items[l.index+1], true
		}
	// Reached through another name of loop; the parser finds the rest.
	default:
		fail("uses loop.%s, which is not supported", language.Shorten(name))
	}

	return nil, false
}
