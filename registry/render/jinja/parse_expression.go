package jinja

import (
	"slices"
	"strconv"
	"strings"

	"promptspool/registry/render/python"
)

// tuple reads an expression, or several with commas between them.
func (p *parser) tuple() expression { return p.several(p.expr) }

// tupleWithoutIf is tuple where an if would belong to the tag.
func (p *parser) tupleWithoutIf() expression { return p.several(p.or) }

func (p *parser) several(one func() expression) expression {
	first := one()
	if !p.is(",") {
		return first
	}
	list := &listExpr{items: []expression{first}, tuple: true}
	for p.take(",") {
		if p.is("}}") || p.is("%}") || p.is(")") || p.is("=") {
			break
		}
		list.items = append(list.items, one())
	}
	return list
}

// expr reads an expression: [a if b else c].
func (p *parser) expr() (e expression) {
	p.nested(func() {
		e = p.or()
		for n := 0; p.takeName("if"); n++ {
			p.chained(n)
			c := &condExpr{then: e, cond: p.or()}
			if p.takeName("else") {
				c.otherwise = p.expr()
			}
			e = c
		}
	})
	return e
}

func (p *parser) or() expression {
	e := p.and()
	for n := 0; p.takeName("or"); n++ {
		p.chained(n)
		e = &boolExpr{left: e, right: p.and(), or: true}
	}
	return e
}

func (p *parser) and() expression {
	e := p.not()
	for n := 0; p.takeName("and"); n++ {
		p.chained(n)
		e = &boolExpr{left: e, right: p.not()}
	}
	return e
}

func (p *parser) not() (e expression) {
	if !p.takeName("not") {
		return p.compare()
	}
	p.nested(func() { e = &notExpr{p.not()} })
	return e
}

func (p *parser) compare() expression {
	e := p.sum()
	c := &compareExpr{first: e}
	for {
		op := p.now().kind
		switch {
		case slices.Contains([]string{"==", "!=", "<", "<=", ">", ">="}, op):
			p.at++
		case p.takeName("in"):
			op = "in"
		case p.isName("not") && p.tokens[p.at+1].kind == "name" && p.tokens[p.at+1].text == "in":
			p.at += 2
			op = "not in"
		default:
			if len(c.ops) == 0 {
				return e
			}
			return c
		}
		c.ops = append(c.ops, op)
		c.others = append(c.others, p.sum())
	}
}

// chained bounds what nests to the left: a + b + c.
func (p *parser) chained(n int) {
	if n > chainMax {
		failAt(p.now().at, "has an expression of more than %d parts", chainMax)
	}
}

func (p *parser) binary(one func() expression, ops ...string) expression {
	e := one()
	for n := 0; slices.Contains(ops, p.now().kind); n++ {
		p.chained(n)
		op := p.next().kind
		e = &binaryExpr{op: op, left: e, right: one()}
	}
	return e
}

func (p *parser) sum() expression     { return p.binary(p.concat, "+", "-") }
func (p *parser) concat() expression  { return p.binary(p.product, "~") }
func (p *parser) product() expression { return p.binary(p.power, "*", "/", "//", "%") }
func (p *parser) power() expression {
	return p.binary(func() expression { return p.unary(true) }, "**")
}

func (p *parser) unary(filters bool) (e expression) {
	if op := p.now().kind; op == "-" || op == "+" {
		p.at++
		p.nested(func() { e = &signExpr{minus: op == "-", of: p.unary(false)} })
	} else {
		e = p.primary()
	}
	e = p.postfix(e)
	if filters {
		e = p.filters(e)
	}
	return e
}

func (p *parser) primary() expression {
	t := p.next()
	switch t.kind {
	case "name":
		switch t.text {
		case "true", "True":
			return constant{true}
		case "false", "False":
			return constant{false}
		case "none", "None":
			return constant{nil}
		}
		if p.is("(") {
			if _, ok := functions[t.text]; !ok {
				p.lacks(t.at, "function", t.text)
			}
			return functionName(t.text)
		}
		p.load(t.text)
		return variable(t.text)
	case "string":
		s := t.text
		for p.is("string") {
			s += p.next().text
		}
		return constant{s}
	case "int":
		if n, err := strconv.ParseInt(t.text, 0, 64); err == nil {
			return constant{n}
		}
		if n, err := strconv.ParseInt(t.text, 10, 64); err == nil { // zeros before it
			return constant{n}
		}
		return constant{bigInteger(t.text)}
	case "float":
		return constant{python.ParseFloat(t.text)}
	case "(":
		var e expression = &listExpr{tuple: true}
		if !p.is(")") {
			e = p.tuple()
		}
		p.want(")")
		return e
	case "[":
		list := &listExpr{}
		for !p.is("]") {
			if len(list.items) > 0 {
				p.want(",")
				if p.is("]") {
					break
				}
			}
			list.items = append(list.items, p.expr())
		}
		p.want("]")
		return list
	case "{":
		return p.dict()
	}
	if p.at > 0 && t.kind != "eof" {
		p.at--
	}
	p.unexpected("a value")
	return nil
}

func (p *parser) dict() expression {
	d := &dictExpr{}
	for !p.is("}") {
		if len(d.keys) > 0 {
			p.want(",")
			if p.is("}") {
				break
			}
		}
		d.keys = append(d.keys, p.expr())
		p.want(":")
		d.values = append(d.values, p.expr())
	}
	p.want("}")
	return d
}

// postfix reads .member, [item] and (call).
func (p *parser) postfix(e expression) expression {
	for n := 0; ; n++ {
		p.chained(n)
		switch {
		case p.take("."):
			t := p.next()
			switch {
			case t.kind == "int":
				e = &itemExpr{of: e, key: constant{parseInteger(t.text)}}
			case t.kind != "name":
				p.at--
				p.unexpected("a member's name")
			case p.is("("):
				if !slices.Contains(strings.Fields(methodNames), t.text) {
					p.lacks(t.at, "method", t.text)
				}
				e = &methodExpr{of: e, name: t.text, args: p.arguments()}
			default:
				e = &itemExpr{of: e, key: constant{t.text}, member: true}
			}
		case p.take("["):
			e = p.subscript(e)
		case p.is("("):
			f, ok := e.(functionName)
			if !ok {
				failAt(p.now().at, "calls what is not a function")
			}
			e = &callExpr{name: string(f), args: p.arguments()}
		default:
			return e
		}
	}
}

func parseInteger(digits string) any {
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return bigInteger(digits)
	}
	return n
}

func (p *parser) subscript(of expression) expression {
	s := &sliceExpr{of: of}
	slice := false
	for i := range s.bounds {
		if !p.is(":") && !p.is("]") {
			s.bounds[i] = p.expr()
		}
		if i == 2 || !p.take(":") {
			break
		}
		slice = true
	}
	p.want("]")
	if slice {
		return s
	}
	if s.bounds[0] == nil {
		p.unexpected("an index")
	}
	return &itemExpr{of: of, key: s.bounds[0]}
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

func (p *parser) filter(of expression) *filterExpr {
	t := p.want("name")
	f, ok := filters[t.text]
	if !ok {
		p.lacks(t.at, "filter", t.text)
	}
	c := &filterExpr{of: of, name: t.text, filter: f}
	if p.is("(") {
		c.args = p.arguments()
		p.applied(t, c.args)
	}
	return c
}

// applied doubts a filter or a test that another filter is told to apply by its name: {{ list|map("upper") }}.
func (p *parser) applied(t token, a *argumentExprs) {
	at := map[string]int{"map": 0, "select": 0, "reject": 0, "selectattr": 1, "rejectattr": 1}
	i, applies := at[t.text]
	if !applies || i >= len(a.list) || slices.Contains(a.names, "attribute") {
		return
	}

	constant, _ := a.list[i].(constant)
	name, isText := constant.value.(string)
	if !isText {
		return
	}

	if t.text == "map" && filters[name] == nil {
		p.doubt(t.at, "filter", name)
	} else if t.text != "map" && tests[name] == nil {
		p.doubt(t.at, "test", name)
	}
}

func (p *parser) test(of expression) expression {
	negated := p.takeName("not")
	t := p.want("name")
	test, ok := tests[t.text]
	if !ok {
		p.lacks(t.at, "test", t.text)
	}
	c := &testExpr{of: of, name: t.text, test: test}
	switch k := p.now().kind; {
	case k == "(":
		c.args = p.arguments()
	case k == "name" && slices.Contains([]string{"else", "or", "and", "if", "is", "not", "in"}, p.now().text):
	case slices.Contains([]string{"name", "string", "int", "float", "[", "{"}, k):
		c.args = &argumentExprs{list: []expression{p.postfix(p.primary())}}
	}
	if negated {
		return &notExpr{c}
	}
	return c
}

// arguments reads (a, b, name=c).
func (p *parser) arguments() *argumentExprs {
	a := &argumentExprs{}
	p.want("(")
	for n := 0; !p.is(")"); n++ {
		if n > 0 {
			p.want(",")
			if p.is(")") {
				break
			}
		}
		if p.is("*") || p.is("**") {
			p.lacks(p.now().at, "argument", p.now().text)
		}
		if p.is("name") && p.tokens[p.at+1].kind == "=" {
			a.names = append(a.names, p.next().text)
			p.at++
			a.named = append(a.named, p.expr())
			continue
		}
		if len(a.names) > 0 {
			p.unexpected("a named argument")
		}
		a.list = append(a.list, p.expr())
	}
	p.want(")")
	return a
}
