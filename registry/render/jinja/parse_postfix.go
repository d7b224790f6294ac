package jinja

import (
	"slices"
	"strings"
)

// postfix reads .member, [item] and (call).
func (p *parser) postfix(e expression) expression {
	for n := 0; ; n++ {
		p.chained(n)

		switch {
		case p.take("."):
			e = p.member(e)
		case p.take("["):
			e = p.subscript(e)
		case p.is("("):
			switch f := e.(type) {
			case functionName:
				e = &callExpr{name: string(f), args: p.arguments()}
			// See isMacro.
			case variable:
				e = &macroCallExpr{name: f, args: p.arguments()}
			default:
				failAt(p.now().at, "calls what is not a function")
			}
		default:
			return e
		}
	}
}

// member reads what follows a point: a name, a number, or a method with its arguments.
func (p *parser) member(operand expression) expression {
	t := p.next()
	switch {
	case t.kind == "int":
		return &itemExpr{operand: operand, key: constant{parseInteger(t.text)}}
	case t.kind != "name":
		p.at--
		p.unexpected("a member's name")
	case p.is("("):
		if !slices.Contains(methodNames, t.text) {
			p.unsupported(t.at, "method", t.text)
		}
		return &methodExpr{operand: operand, name: t.text, args: p.arguments()}
	}

	// Outside a for, loop may be a variable of the caller.
	if operand == variable("loop") && p.isBound("loop") && !slices.Contains(loopMembers, t.text) {
		p.unsupported(t.at, "member", "loop."+t.text)
	}

	return &itemExpr{operand: operand, key: constant{t.text}}
}

// subscript reads an index, or a slice: from and to, or the step -1.
func (p *parser) subscript(operand expression) expression {
	bound := func() expression {
		if p.is(":") || p.is("]") {
			return nil
		}
		return p.expr()
	}
	s := &sliceExpr{operand: operand, from: bound()}
	if !p.take(":") {
		if s.from == nil {
			p.unexpected("an index")
		}
		p.want("]")
		return &itemExpr{operand: operand, key: s.from}
	}

	// A step of -1 without bounds is how prompts walk through messages from the last one.
	s.to = bound()
	if p.take(":") {
		at := p.now().at
		if step := bound(); step != nil {
			sign, _ := step.(*signExpr)
			s.reverse = sign != nil && sign.minus && sign.operand == constant{int64(1)} && s.from == nil && s.to == nil
			if !s.reverse {
				failAt(at, "has a slice with a step, which is not supported except in [::-1]")
			}
		}
	}
	p.want("]")

	return s
}

// filters reads |filter and is test.
func (p *parser) filters(e expression) expression {
	for n := 0; ; n++ {
		p.chained(n)
		switch {
		case p.take("|"):
			e = p.filter(e)
		case p.takeName("is"):
			e = p.test(e)
		default:
			return e
		}
	}
}

func (p *parser) filter(operand expression) *filterExpr {
	t := p.want("name")
	f, ok := filters[t.text]
	if !ok {
		p.unsupported(t.at, "filter", t.text)
	}

	// The function is looked up once, here, not at every rendering.
	e := &filterExpr{operand: operand, name: t.text, filter: f}
	if p.is("(") {
		e.args = p.arguments()
		p.checkArguments(t, e.args)
		p.checkApplied(t, e.args)
	}
	if f, ok := operand.(constant); ok && t.text == "format" && isString(f.value) {
		if place := unsupportedPlace(f.value.(string)); place != "" {
			p.unsupported(t.at, "format", place)
		}
	}

	return e
}

// checkArguments rejects arguments of a filter that Jinja has and we do not.
func (p *parser) checkArguments(t token, a *argumentExprs) {
	switch {
	case t.text == "int" && (len(a.list) > 1 || slices.Contains(a.names, "base")):
		p.unsupported(t.at, "argument", "base of int")
	case t.text == "map" && slices.Contains(a.names, "attribute") && slices.Contains(a.names, "default"):
		p.unsupported(t.at, "argument", "default of map")
	}

	for i, name := range a.names {
		value, _ := a.named[i].(constant)
		s, isText := value.value.(string)
		if name == "attribute" && t.text != "map" && isText && strings.Contains(s, ",") {
			p.unsupported(t.at, "argument", "attribute with several names")
		}
	}
}

// appliedAt is the position of the argument of these filters that names a filter or a
// test to apply.
var appliedAt = map[string]int{"map": 0, "select": 0, "reject": 0, "selectattr": 1, "rejectattr": 1}

// checkApplied rejects an unsupported filter or test that another filter is told to apply
// by its name: {{ list|map("upper") }}.
func (p *parser) checkApplied(t token, a *argumentExprs) {
	i, applies := appliedAt[t.text]
	// By an attribute, map applies no filter.
	if !applies || i >= len(a.list) || slices.Contains(a.names, "attribute") {
		return
	}
	literal, _ := a.list[i].(constant)
	name, isText := literal.value.(string)
	if !isText {
		return
	}

	if t.text == "map" && filters[name] == nil {
		p.unsupported(t.at, "filter", name)
	} else if t.text != "map" && tests[name] == nil {
		p.unsupported(t.at, "test", name)
	}
}

// Words that follow a test without being its argument: {{ a is string and b }}.
var afterTest = []string{"else", "or", "and", "if", "is", "not", "in"}

func (p *parser) test(operand expression) expression {
	negated := p.takeName("not")
	t := p.want("name")
	test, ok := tests[t.text]
	if !ok {
		p.unsupported(t.at, "test", t.text)
	}

	e := &testExpr{operand: operand, name: t.text, test: test}
	switch kind := p.now().kind; {
	case kind == "(":
		e.args = p.arguments()
	case kind == "name" && slices.Contains(afterTest, p.now().text):
	case slices.Contains([]string{"name", "string", "int", "float", "[", "{"}, kind):
		// Without parentheses the argument is one value: "a is eq 3 + 1" tests with 3.
		e.args = &argumentExprs{list: []expression{p.postfix(p.primary())}}
	}

	if negated {
		return &notExpr{e}
	}

	return e
}

// arguments reads (a, b, name=c).
func (p *parser) arguments() *argumentExprs {
	a := &argumentExprs{}
	p.want("(")
	p.commas(")", func() {
		// * and ** would allow arguments whose number the text does not show.
		if p.is("*") || p.is("**") {
			p.unsupported(p.now().at, "argument", p.now().text)
		}

		if p.is("name") && p.tokens[p.at+1].kind == "=" {
			a.names = append(a.names, p.next().text)
			p.at++
			a.named = append(a.named, p.expr())
			return
		}
		if len(a.names) > 0 {
			p.unexpected("a named argument")
		}
		a.list = append(a.list, p.expr())
	})

	return a
}
