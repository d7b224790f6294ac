package render

import (
	"slices"
	"strconv"
	"strings"
)

// tuple reads an expression, or several with commas between them.
func (p *jinjaParser) tuple() jinjaExpr { return p.several(p.expr) }

// tupleWithoutIf is tuple where an if would belong to the tag.
func (p *jinjaParser) tupleWithoutIf() jinjaExpr { return p.several(p.or) }

func (p *jinjaParser) several(one func() jinjaExpr) jinjaExpr {
	first := one()
	if !p.is(",") {
		return first
	}
	list := &jinjaListExpr{items: []jinjaExpr{first}, tuple: true}
	for p.take(",") {
		if p.is("}}") || p.is("%}") || p.is(")") || p.is("=") {
			break
		}
		list.items = append(list.items, one())
	}
	return list
}

// expr reads an expression: [a if b else c].
func (p *jinjaParser) expr() (e jinjaExpr) {
	p.nested(func() {
		e = p.or()
		for n := 0; p.takeName("if"); n++ {
			p.chained(n)
			c := &jinjaCond{then: e, cond: p.or()}
			if p.takeName("else") {
				c.otherwise = p.expr()
			}
			e = c
		}
	})
	return e
}

func (p *jinjaParser) or() jinjaExpr {
	e := p.and()
	for n := 0; p.takeName("or"); n++ {
		p.chained(n)
		e = &jinjaBool{left: e, right: p.and(), or: true}
	}
	return e
}

func (p *jinjaParser) and() jinjaExpr {
	e := p.not()
	for n := 0; p.takeName("and"); n++ {
		p.chained(n)
		e = &jinjaBool{left: e, right: p.not()}
	}
	return e
}

func (p *jinjaParser) not() (e jinjaExpr) {
	if !p.takeName("not") {
		return p.compare()
	}
	p.nested(func() { e = &jinjaNot{p.not()} })
	return e
}

func (p *jinjaParser) compare() jinjaExpr {
	e := p.sum()
	c := &jinjaCompare{first: e}
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
func (p *jinjaParser) chained(n int) {
	if n > jinjaChainMax {
		jinjaFailAt(p.now().at, "has an expression of more than %d parts", jinjaChainMax)
	}
}

func (p *jinjaParser) binary(one func() jinjaExpr, ops ...string) jinjaExpr {
	e := one()
	for n := 0; slices.Contains(ops, p.now().kind); n++ {
		p.chained(n)
		op := p.next().kind
		e = &jinjaBinary{op: op, left: e, right: one()}
	}
	return e
}

func (p *jinjaParser) sum() jinjaExpr     { return p.binary(p.concat, "+", "-") }
func (p *jinjaParser) concat() jinjaExpr  { return p.binary(p.product, "~") }
func (p *jinjaParser) product() jinjaExpr { return p.binary(p.power, "*", "/", "//", "%") }
func (p *jinjaParser) power() jinjaExpr {
	return p.binary(func() jinjaExpr { return p.unary(true) }, "**")
}

func (p *jinjaParser) unary(filters bool) (e jinjaExpr) {
	if op := p.now().kind; op == "-" || op == "+" {
		p.at++
		p.nested(func() { e = &jinjaSign{minus: op == "-", of: p.unary(false)} })
	} else {
		e = p.primary()
	}
	e = p.postfix(e)
	if filters {
		e = p.filters(e)
	}
	return e
}

func (p *jinjaParser) primary() jinjaExpr {
	t := p.next()
	switch t.kind {
	case "name":
		switch t.text {
		case "true", "True":
			return jinjaConst{true}
		case "false", "False":
			return jinjaConst{false}
		case "none", "None":
			return jinjaConst{nil}
		}
		if p.is("(") {
			if _, ok := jinjaFunctions[t.text]; !ok {
				p.lacks(t.at, "function", t.text)
			}
			return jinjaFunction(t.text)
		}
		p.load(t.text)
		return jinjaName(t.text)
	case "string":
		s := t.text
		for p.is("string") {
			s += p.next().text
		}
		return jinjaConst{s}
	case "int":
		if n, err := strconv.ParseInt(t.text, 0, 64); err == nil {
			return jinjaConst{n}
		}
		if n, err := strconv.ParseInt(t.text, 10, 64); err == nil { // zeros before it
			return jinjaConst{n}
		}
		return jinjaConst{jinjaBig(t.text)}
	case "float":
		return jinjaConst{parseFloat(t.text)}
	case "(":
		var e jinjaExpr = &jinjaListExpr{tuple: true}
		if !p.is(")") {
			e = p.tuple()
		}
		p.want(")")
		return e
	case "[":
		list := &jinjaListExpr{}
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

func (p *jinjaParser) dict() jinjaExpr {
	d := &jinjaDictExpr{}
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
func (p *jinjaParser) postfix(e jinjaExpr) jinjaExpr {
	for n := 0; ; n++ {
		p.chained(n)
		switch {
		case p.take("."):
			t := p.next()
			switch {
			case t.kind == "int":
				e = &jinjaItem{of: e, key: jinjaConst{jinjaInt(t.text)}}
			case t.kind != "name":
				p.at--
				p.unexpected("a member's name")
			case p.is("("):
				if !slices.Contains(strings.Fields(jinjaMethods), t.text) {
					p.lacks(t.at, "method", t.text)
				}
				e = &jinjaMethod{of: e, name: t.text, args: p.arguments()}
			default:
				e = &jinjaItem{of: e, key: jinjaConst{t.text}, member: true}
			}
		case p.take("["):
			e = p.subscript(e)
		case p.is("("):
			f, ok := e.(jinjaFunction)
			if !ok {
				jinjaFailAt(p.now().at, "calls what is not a function")
			}
			e = &jinjaCall{name: string(f), args: p.arguments()}
		default:
			return e
		}
	}
}

func jinjaInt(digits string) any {
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return jinjaBig(digits)
	}
	return n
}

func (p *jinjaParser) subscript(of jinjaExpr) jinjaExpr {
	s := &jinjaSlice{of: of}
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
	return &jinjaItem{of: of, key: s.bounds[0]}
}

// filters reads |filter and is test.
func (p *jinjaParser) filters(e jinjaExpr) jinjaExpr {
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

func (p *jinjaParser) filter(of jinjaExpr) *jinjaFilterCall {
	t := p.want("name")
	f, ok := jinjaFilters[t.text]
	if !ok {
		p.lacks(t.at, "filter", t.text)
	}
	c := &jinjaFilterCall{of: of, name: t.text, filter: f}
	if p.is("(") {
		c.args = p.arguments()
		p.applied(t, c.args)
	}
	return c
}

// applied doubts a filter or a test that another filter is told to apply by its name: {{ list|map("upper") }}.
func (p *jinjaParser) applied(t jinjaToken, a *jinjaArguments) {
	at := map[string]int{"map": 0, "select": 0, "reject": 0, "selectattr": 1, "rejectattr": 1}
	i, applies := at[t.text]
	if !applies || i >= len(a.list) || slices.Contains(a.names, "attribute") {
		return
	}

	constant, _ := a.list[i].(jinjaConst)
	name, isText := constant.value.(string)
	if !isText {
		return
	}

	if t.text == "map" && jinjaFilters[name] == nil {
		p.doubt(t.at, "filter", name)
	} else if t.text != "map" && jinjaTests[name] == nil {
		p.doubt(t.at, "test", name)
	}
}

func (p *jinjaParser) test(of jinjaExpr) jinjaExpr {
	negated := p.takeName("not")
	t := p.want("name")
	test, ok := jinjaTests[t.text]
	if !ok {
		p.lacks(t.at, "test", t.text)
	}
	c := &jinjaTestCall{of: of, name: t.text, test: test}
	switch k := p.now().kind; {
	case k == "(":
		c.args = p.arguments()
	case k == "name" && slices.Contains([]string{"else", "or", "and", "if", "is", "not", "in"}, p.now().text):
	case slices.Contains([]string{"name", "string", "int", "float", "[", "{"}, k):
		c.args = &jinjaArguments{list: []jinjaExpr{p.postfix(p.primary())}}
	}
	if negated {
		return &jinjaNot{c}
	}
	return c
}

// arguments reads (a, b, name=c).
func (p *jinjaParser) arguments() *jinjaArguments {
	a := &jinjaArguments{}
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
