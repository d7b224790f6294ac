package jinja

import (
	"strings"

	"promptspool/registry/render/language"
)

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

// setNode is set, of a value or of a block. Without targets it is the tag filter, which
// writes the block.
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

	switch {
	case n.targets == nil:
		x.write(x.str(value))
	case n.attribute == "":
		x.assign(n.targets, value)
	default:
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
