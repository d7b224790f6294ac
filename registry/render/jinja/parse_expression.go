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

// How tightly operators bind. not stands between and and the comparisons.
const (
	orLevel = iota + 1
	andLevel
	notLevel
	comparisonLevel
	sumLevel
	concatLevel
	productLevel
	powerLevel
)

var levels = map[string]int{
	"or": orLevel, "and": andLevel,
	"==": comparisonLevel, "!=": comparisonLevel, "<": comparisonLevel, "<=": comparisonLevel,
	">": comparisonLevel, ">=": comparisonLevel, "in": comparisonLevel, "not in": comparisonLevel,
	"+": sumLevel, "-": sumLevel, "~": concatLevel,
	"*": productLevel, "/": productLevel, "//": productLevel, "%": productLevel, "**": powerLevel,
}

// or reads an expression without an if.
func (p *parser) or() expression { return p.operation(orLevel) }

// operation reads values with the operators between them that bind at least so tightly.
func (p *parser) operation(least int) (e expression) {
	if least <= notLevel && p.takeName("not") {
		p.nested(func() { e = &notExpr{p.operation(notLevel)} })
	} else {
		e = p.filtered()
	}

	for n := 0; ; n++ {
		p.chained(n)
		at, op := p.now().at, p.operator()
		level := levels[op]
		if level < least {
			return e
		}
		p.checkOperator(at, op, e)
		p.at += len(strings.Fields(op))
		e = operationOf(op, e, p.operation(level+1))

		if level == comparisonLevel && levels[p.operator()] == comparisonLevel {
			failAt(p.now().at, "has a chain of comparisons, which is not supported; write a < b and b < c")
		}
	}
}

// operator returns the operator that follows; "" if none does.
func (p *parser) operator() string {
	t := p.now()
	switch {
	case t.kind != "name":
		return t.kind
	// A name is never the last token, so another follows.
	case t.text == "not" && p.tokens[p.at+1].kind == "name" && p.tokens[p.at+1].text == "in":
		return "not in"
	}

	return t.text
}

// checkOperator rejects an operator that Jinja has and we do not.
func (p *parser) checkOperator(at int, op string, left expression) {
	format, isConstant := left.(constant)
	switch {
	case op == "**":
		p.unsupported(at, "operator", op)
	case op == "%" && isConstant && isString(format.value):
		p.unsupported(at, "operator", "% of a text")
	}
}

func operationOf(op string, left, right expression) expression {
	switch level := levels[op]; {
	case level <= andLevel:
		return &boolExpr{left: left, right: right, or: op == "or"}
	case level == comparisonLevel:
		return &compareExpr{op: op, left: left, right: right}
	}

	return &binaryExpr{op: op, left: left, right: right}
}

// chained bounds expressions that nest to the left: a + b + c.
func (p *parser) chained(n int) {
	if n > chainMax {
		failAt(p.now().at, "has an expression of more than %d parts", chainMax)
	}
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

	isCall, isMacro := p.is("("), p.isMacro(t.text)
	if isCall && !isMacro {
		if functions[t.text] == nil {
			p.unsupported(t.at, "function", t.text)
		}
		return &callExpr{name: t.text, args: p.arguments()}
	}
	p.load(t.text)
	if isCall {
		return &macroCallExpr{name: variable(t.text), args: p.arguments()}
	}

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

// postfix reads .member and [item].
func (p *parser) postfix(e expression) expression {
	for n := 0; ; n++ {
		p.chained(n)

		switch {
		case p.take("."):
			e = p.member(e)
		case p.take("["):
			e = p.subscript(e)
		case p.is("("):
			failAt(p.now().at, "calls what is not a function")
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
		if textMethods[t.text] == nil && !slices.Contains(dictMethods, t.text) {
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
