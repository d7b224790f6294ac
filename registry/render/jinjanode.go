package render

// jinjaNode is a part of a text: a piece of data, an output, a tag.
type jinjaNode interface{ exec(x *jinjaRun) }

// jinjaData is text outside of tags.
type jinjaData string

func (n jinjaData) exec(x *jinjaRun) { x.write(string(n)) }

// jinjaOutput is {{ expression }}.
type jinjaOutput struct{ of jinjaExpr }

func (n jinjaOutput) exec(x *jinjaRun) { x.write(x.str(n.of.eval(x))) }

type jinjaIf struct {
	cond            jinjaExpr
	then, otherwise []jinjaNode
}

func (n *jinjaIf) exec(x *jinjaRun) {
	if x.truth(n.cond.eval(x)) {
		x.run(n.then)
	} else {
		x.run(n.otherwise)
	}
}

type jinjaFor struct {
	targets         []string
	over, cond      jinjaExpr
	body, otherwise []jinjaNode
}

// jinjaLoop is what loop means within a for.
type jinjaLoop struct {
	items   []any
	index   int
	changed []any // what loop.changed was called with
	called  bool
}

func (n *jinjaFor) exec(x *jinjaRun) {
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
		x.scoped(nil, func() { x.run(n.otherwise) })
		return
	}
	loop := &jinjaLoop{items: items}
	for i, item := range items {
		loop.index = i
		x.step()
		x.scoped(nil, func() {
			x.set("loop", loop)
			n.assign(x, item)
			x.run(n.body)
		})
	}
}

func (n *jinjaFor) assign(x *jinjaRun, item any) { x.assign(n.targets, item) }

// assign sets names to a value, or several to its elements.
func (x *jinjaRun) assign(names []string, value any) {
	if len(names) == 1 {
		x.set(names[0], value)
		return
	}
	items := x.list(value)
	if len(items) != len(names) {
		jinjaFail("assigns %d values to %d names", len(items), len(names))
	}
	for i, name := range names {
		x.set(name, items[i])
	}
}

// jinjaSet is set, of a value or of a block; and filter, which writes the block instead.
type jinjaSet struct {
	targets   []string
	attribute string // of the namespace that the only target is
	value     jinjaExpr
	body      []jinjaNode
	filters   []*jinjaFilterCall
}

func (n *jinjaSet) exec(x *jinjaRun) {
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
		space, ok := x.lookup(n.targets[0]).(*jinjaNamespace)
		if !ok {
			jinjaFail("sets %s.%s, and %s is no namespace", shorten(n.targets[0]), shorten(n.attribute), shorten(n.targets[0]))
		}
		x.put(&space.jinjaDict, n.attribute, value)
	}
}

type jinjaWith struct {
	names  []string
	values []jinjaExpr
	body   []jinjaNode
}

func (n *jinjaWith) exec(x *jinjaRun) {
	names := make(map[string]any, len(n.names))
	for i, name := range n.names {
		names[name] = n.values[i].eval(x)
	}
	x.scoped(names, func() { x.run(n.body) })
}
