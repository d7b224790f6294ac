package jinja

import (
	"slices"
	"strconv"
	"strings"

	"promptspool/registry/render/language"
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

// expr reads an expression: a, or a if b else c.
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
	op := p.comparison()
	if op == "" {
		return e
	}
	e = &compareExpr{op: op, left: e, right: p.sum()}

	at := p.now().at
	if p.comparison() != "" {
		failAt(at, "has a chain of comparisons, which is not supported; write a < b and b < c")
	}

	return e
}

// comparison reads an operator that compares; "" if there is none.
func (p *parser) comparison() string {
	op := p.now().kind
	switch {
	case slices.Contains([]string{"==", "!=", "<", "<=", ">", ">="}, op):
		p.at++
		return op
	case p.takeName("in"):
		return "in"
	// A name is never the last token, so another follows.
	case p.isName("not") && p.tokens[p.at+1].kind == "name" && p.tokens[p.at+1].text == "in":
		p.at += 2
		return "not in"
	}

	return ""
}

// chained bounds expressions that nest to the left: a + b + c.
func (p *parser) chained(n int) {
	if n > chainMax {
		failAt(p.now().at, "has an expression of more than %d parts", chainMax)
	}
}

func (p *parser) binary(one func() expression, ops ...string) expression {
	e := one()
	for n := 0; slices.Contains(ops, p.now().kind); n++ {
		p.chained(n)
		at, op := p.now().at, p.next().kind
		if format, ok := e.(constant); ok && op == "%" && isString(format.value) {
			p.unsupported(at, "operator", "% of a text")
		}
		e = &binaryExpr{op: op, left: e, right: one()}
	}

	return e
}

// Operators by precedence, those that bind loosest first.
func (p *parser) sum() expression     { return p.binary(p.concat, "+", "-") }
func (p *parser) concat() expression  { return p.binary(p.product, "~") }
func (p *parser) product() expression { return p.binary(p.power, "*", "/", "//", "%") }

// power reads a value, which no power can follow here.
func (p *parser) power() expression {
	e := p.filtered()
	if p.is("**") {
		p.unsupported(p.now().at, "operator", "**")
	}

	return e
}

// filtered reads a value with its filters and tests.
func (p *parser) filtered() expression { return p.filters(p.unary()) }

// unary reads a value with its signs.
func (p *parser) unary() (e expression) {
	if op := p.now().kind; op == "-" || op == "+" {
		p.at++
		p.nested(func() { e = &signExpr{minus: op == "-", operand: p.unary()} })
	} else {
		e = p.primary()
	}

	return p.postfix(e)
}

func (p *parser) primary() expression {
	t := p.next()
	switch t.kind {
	case "name":
		return p.name(t)
	case "string":
		// Adjacent strings are joined in one step: there may be tens of thousands.
		parts := []string{t.text}
		for p.is("string") {
			parts = append(parts, p.next().text)
		}
		return constant{strings.Join(parts, "")}
	case "int":
		return constant{parseInteger(t.text)}
	case "float":
		return constant{language.ParseFloat(t.text)}

	case "(":
		var e expression = &listExpr{tuple: true}
		if !p.is(")") {
			e = p.tuple()
		}
		p.want(")")
		return e
	case "[":
		return p.list()
	case "{":
		return p.dict()
	}

	// The error is about the token that was read.
	if p.at > 0 && t.kind != "eof" {
		p.at--
	}
	p.unexpected("a value")
	return nil
}

func (p *parser) name(t token) expression {
	switch t.text {
	case "true", "True":
		return constant{true}
	case "false", "False":
		return constant{false}
	case "none", "None":
		return constant{nil}
	}

	if p.is("(") && !p.isMacro(t.text) {
		if _, ok := functions[t.text]; !ok {
			p.unsupported(t.at, "function", t.text)
		}
		return functionName(t.text)
	}
	p.load(t.text)

	return variable(t.text)
}

func (p *parser) list() expression {
	list := &listExpr{}
	p.commas("]", func() { list.items = append(list.items, p.expr()) })

	return list
}

func (p *parser) dict() expression {
	d := &dictExpr{}
	p.commas("}", func() {
		d.keys = append(d.keys, p.expr())
		p.want(":")
		d.values = append(d.values, p.expr())
	})

	return d
}

// commas reads what is between brackets: one reads an item of it. A comma may follow the
// last.
func (p *parser) commas(end string, one func()) {
	for n := 0; !p.is(end); n++ {
		if n > 0 {
			p.want(",")
			if p.is(end) {
				break
			}
		}
		one()
	}
	p.want(end)
}

// parseInteger reads decimal digits.
func parseInteger(digits string) any {
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return bigInteger(digits)
	}

	return n
}
