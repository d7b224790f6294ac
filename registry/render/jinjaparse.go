package render

import (
	"slices"
	"strings"
)

// jinjaParser reads tokens into nodes.
type jinjaParser struct {
	tokens []jinjaToken
	at     int
	depth  int
	bound  []map[string]bool // names that were set, by scope
	used   names             // variables
}

func (p *jinjaParser) now() jinjaToken { return p.tokens[p.at] }

func (p *jinjaParser) next() jinjaToken {
	t := p.tokens[p.at]
	if t.kind != "eof" {
		p.at++
	}
	return t
}

// is says whether the token at hand is an operator, or the end of a tag.
func (p *jinjaParser) is(kind string) bool { return p.now().kind == kind }

func (p *jinjaParser) isName(name string) bool {
	return p.now().kind == "name" && p.now().text == name
}

// take moves on if it is.
func (p *jinjaParser) take(kind string) bool {
	if p.is(kind) {
		p.at++
		return true
	}
	return false
}

func (p *jinjaParser) takeName(name string) bool {
	if p.isName(name) {
		p.at++
		return true
	}
	return false
}

func (p *jinjaParser) want(kind string) jinjaToken {
	if !p.is(kind) {
		p.unexpected(kind)
	}
	return p.next()
}

func (p *jinjaParser) unexpected(wanted string) {
	t := p.now()
	found := t.text
	if found == "" {
		found = t.kind
	}
	jinjaFail("has %q on line %d, where %s is wanted", shorten(found), t.line, wanted)
}

// lacks refuses by name what Jinja has and we do not.
func (p *jinjaParser) lacks(line int, what, name string) {
	panic(&jinjaError{message: "uses the " + what + " " + shorten(name) + " on line " + itoa(line) + ", which jinja2 templates here do not have", lacking: true})
}

// nested guards the recursion of the parser.
func (p *jinjaParser) nested(f func()) {
	if p.depth++; p.depth > jinjaDepthMax {
		jinjaFail("is nested deeper than %d on line %d", jinjaDepthMax, p.now().line)
	}
	f()
	p.depth--
}

func (p *jinjaParser) scoped(f func()) {
	p.bound = append(p.bound, map[string]bool{})
	f()
	p.bound = p.bound[:len(p.bound)-1]
}

func (p *jinjaParser) bind(name string) { p.bound[len(p.bound)-1][name] = true }

func (p *jinjaParser) load(name string) {
	if !slices.ContainsFunc(p.bound, func(m map[string]bool) bool { return m[name] }) {
		p.used.add(name)
	}
}

// body reads up to a tag that is one of until, whose name is left to be read, or to the end of the text.
func (p *jinjaParser) body(until string) (nodes []jinjaNode) {
	p.nested(func() {
		for {
			t := p.now()
			switch t.kind {
			case "eof":
				if until != "" {
					jinjaFail("ends where {%% %s %%} is wanted", strings.ReplaceAll(until, " ", " or "))
				}
				return
			case "data":
				p.at++
				nodes = append(nodes, jinjaData(t.text))
			case "{{":
				p.at++
				nodes = append(nodes, jinjaOutput{p.tuple()})
				p.want("}}")
			default: // {%
				p.at++
				if name := p.now(); name.kind == "name" && slices.Contains(strings.Fields(until), name.text) {
					return
				}
				nodes = append(nodes, p.tag())
			}
		}
	})
	return nodes
}

// jinjaLacking are the tags that Jinja has, or its extensions, and we do not.
const jinjaLacking = "macro call include import from extends block do trans pluralize autoescape break continue debug"

func (p *jinjaParser) tag() jinjaNode {
	t := p.want("name")
	switch t.text {
	case "if":
		return p.ifTag()
	case "for":
		return p.forTag()
	case "set":
		return p.setTag()
	case "with":
		return p.withTag()
	case "filter":
		return p.filterTag()
	}
	if slices.Contains(strings.Fields(jinjaLacking), t.text) {
		p.lacks(t.line, "tag", t.text)
	}
	jinjaFail("has the tag %s on line %d, which does not belong there", shorten(t.text), t.line)
	return nil
}

func (p *jinjaParser) ifTag() jinjaNode {
	n := &jinjaIf{cond: p.expr()}
	p.want("%}")
	n.then = p.body("elif else endif")
	switch p.next().text {
	case "elif":
		p.nested(func() { n.otherwise = []jinjaNode{p.ifTag()} })
		return n // the inner one took the endif
	case "else":
		p.want("%}")
		n.otherwise = p.body("endif")
		p.next()
	}
	p.want("%}")
	return n
}

func (p *jinjaParser) forTag() jinjaNode {
	n := &jinjaFor{}
	targets := p.targets()
	if !p.takeName("in") {
		p.unexpected("in")
	}
	n.over = p.tupleWithoutIf()
	p.scoped(func() {
		for _, name := range targets {
			p.bind(name)
		}
		n.targets = targets
		if p.takeName("if") {
			n.cond = p.expr()
		}
		p.bind("loop")
		if p.isName("recursive") {
			p.lacks(p.now().line, "loop", "recursive")
		}
		p.want("%}")
		n.body = p.body("else endfor")
	})
	if p.next().text == "else" {
		p.want("%}")
		p.scoped(func() { n.otherwise = p.body("endfor") })
		p.next()
	}
	p.want("%}")
	return n
}

// targets are the names that something is assigned to.
func (p *jinjaParser) targets() []string {
	parenthesis := p.take("(")
	list := []string{p.target()}
	for p.take(",") {
		if !p.is("name") || p.isName("in") {
			break
		}
		list = append(list, p.target())
	}
	if parenthesis {
		p.want(")")
	}
	return list
}

func (p *jinjaParser) target() string {
	t := p.want("name")
	if slices.Contains([]string{"true", "false", "none", "True", "False", "None", "loop"}, t.text) {
		jinjaFail("assigns to %s on line %d, which cannot be assigned to", t.text, t.line)
	}
	return t.text
}

func (p *jinjaParser) setTag() jinjaNode {
	n := &jinjaSet{targets: p.targets()}
	if len(n.targets) == 1 && p.take(".") {
		p.load(n.targets[0])
		n.attribute = p.want("name").text
	}
	if p.take("=") {
		n.value = p.tuple()
		p.want("%}")
	} else {
		for p.take("|") {
			n.filters = append(n.filters, p.filter(nil))
		}
		p.want("%}")
		p.scoped(func() { n.body = p.body("endset") })
		p.next()
		p.want("%}")
	}
	if n.attribute == "" {
		for _, name := range n.targets {
			p.bind(name)
		}
	}
	return n
}

func (p *jinjaParser) withTag() jinjaNode {
	n := &jinjaWith{}
	for !p.is("%}") {
		if len(n.names) > 0 {
			p.want(",")
		}
		n.names = append(n.names, p.target())
		p.want("=")
		n.values = append(n.values, p.expr())
	}
	p.want("%}")
	p.scoped(func() {
		for _, name := range n.names {
			p.bind(name)
		}
		n.body = p.body("endwith")
	})
	p.next()
	p.want("%}")
	return n
}

func (p *jinjaParser) filterTag() jinjaNode {
	n := &jinjaSet{filters: []*jinjaFilterCall{p.filter(nil)}}
	for p.take("|") {
		n.filters = append(n.filters, p.filter(nil))
	}
	p.want("%}")
	p.scoped(func() { n.body = p.body("endfilter") })
	p.next()
	p.want("%}")
	return n
}
