package jinja

import "promptspool/registry/render/language"

// node is a part of a text: a piece of data, an output, a tag.
type node interface{ exec(x *run) }

// dataNode is text outside of tags.
type dataNode string

func (n dataNode) exec(x *run) { x.write(string(n)) }

// outputNode is {{ expression }}.
type outputNode struct{ of expression }

func (n outputNode) exec(x *run) { x.write(x.str(n.of.eval(x))) }

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

// loopState is what loop means within a for.
type loopState struct {
	items   []any
	index   int
	changed []any // what loop.changed was called with
	called  bool
}

func (n *forNode) exec(x *run) {
	items := x.list(n.over.eval(x))
	if n.cond != nil {
		var kept []any
		for _, item := range items {
			x.scoped(nil, func() {
				n.assign(x, item)
				if x.truth(n.cond.eval(x)) {
					x.pay(16)
					kept = append(kept, item)
				}
			})
		}
		items = kept
	}
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
			n.assign(x, item)
			x.runBody(n.body)
		})
	}
}

func (n *forNode) assign(x *run, item any) { x.assign(n.targets, item) }

// assign sets names to a value, or several to its elements.
func (x *run) assign(names []string, value any) {
	if len(names) == 1 {
		x.set(names[0], value)
		return
	}
	items := x.list(value)
	if len(items) != len(names) {
		fail("assigns %d values to %d names", len(items), len(names))
	}
	for i, name := range names {
		x.set(name, items[i])
	}
}

// setNode is set, of a value or of a block; and filter, which writes the block instead.
type setNode struct {
	targets   []string
	attribute string // of the namespace that the only target is
	value     expression
	body      []node
	filters   []*filterExpr
}

func (n *setNode) exec(x *run) {
	var value any
	if n.value != nil {
		value = n.value.eval(x)
	} else {
		x.scoped(nil, func() { value = x.capture(n.body) })
		for _, f := range n.filters {
			value = f.apply(x, value)
		}
	}
	switch {
	case n.targets == nil:
		x.write(x.str(value))
	case n.attribute == "":
		x.assign(n.targets, value)
	default:
		space, ok := x.lookup(n.targets[0]).(*namespace)
		if !ok {
			fail("sets %s.%s, and %s is no namespace", language.Shorten(n.targets[0]), language.Shorten(n.attribute), language.Shorten(n.targets[0]))
		}
		x.put(&space.dictValue, n.attribute, value)
	}
}

type withNode struct {
	names  []string
	values []expression
	body   []node
}

func (n *withNode) exec(x *run) {
	names := make(map[string]any, len(n.names))
	for i, name := range n.names {
		names[name] = n.values[i].eval(x)
	}
	x.scoped(names, func() { x.runBody(n.body) })
}
