package jinja

import (
	"cmp"
	"slices"
	"strings"

	"promptspool/registry/render/language"
)

// parser turns tokens into nodes.
type parser struct {
	tokens []token
	at     int
	depth  int
	bound  []map[string]bool // names that were set, by scope
	used   language.Names    // variables
	macros map[string]bool   // the names of all macros of the text
}

func (p *parser) now() token { return p.tokens[p.at] }

func (p *parser) next() token {
	t := p.tokens[p.at]
	// The last token stays, so that no caller runs beyond the end.
	if t.kind != "eof" {
		p.at++
	}
	return t
}

// is reports whether the current token is an operator, or the end of a tag.
func (p *parser) is(kind string) bool { return p.now().kind == kind }

func (p *parser) isName(name string) bool {
	return p.now().kind == "name" && p.now().text == name
}

// take moves past the token if it is of this kind.
func (p *parser) take(kind string) bool {
	if p.is(kind) {
		p.at++
		return true
	}

	return false
}

func (p *parser) takeName(name string) bool {
	if p.isName(name) {
		p.at++
		return true
	}

	return false
}

func (p *parser) want(kind string) token {
	if !p.is(kind) {
		p.unexpected(kind)
	}

	return p.next()
}

func (p *parser) unexpected(wanted string) {
	t := p.now()
	found := cmp.Or(t.text, t.kind)

	failAt(t.at, "has %q where %s is expected", language.Shorten(found), wanted)
}

// unsupported rejects by name what Jinja has and we do not.
func (p *parser) unsupported(at int, kind, name string) {
	hint := "; let the app compute the value and give it as a variable"
	switch {
	case name == "with":
		hint = "; write {% set %}"
	case kind == "tag", kind == "loop":
		hint = ""
	}

	failAt(at, "uses the %s %s, which is not supported%s", kind, language.Shorten(name), hint)
}

// nested bounds the recursion of the parser.
func (p *parser) nested(f func()) {
	if p.depth++; p.depth > depthMax {
		failAt(p.now().at, "is nested deeper than %d", depthMax)
	}
	f()
	p.depth--
}

// scoped calls f in a new scope.
func (p *parser) scoped(f func()) {
	p.bound = append(p.bound, map[string]bool{})
	f()
	p.bound = p.bound[:len(p.bound)-1]
}

func (p *parser) bind(name string) { p.bound[len(p.bound)-1][name] = true }

func (p *parser) isBound(name string) bool {
	return slices.ContainsFunc(p.bound, func(m map[string]bool) bool { return m[name] })
}

// load notes the use of a name: it is a variable unless the text has set it.
func (p *parser) load(name string) {
	if !p.isBound(name) && !p.macros[name] {
		p.used.Add(name)
	}
}

// body reads up to a tag that is one of until, whose name is left to be read, or to the
// end of the text. tag is the one whose body it is.
func (p *parser) body(until string, tag token) (nodes []node) {
	p.nested(func() {
		ends := strings.Fields(until)
		for {
			t := p.now()
			switch t.kind {
			case "eof":
				if until != "" {
					failAt(tag.at, "has a {%% %s %%} that is not closed with {%% %s %%}",
						tag.text, ends[len(ends)-1])
				}
				return
			case "data":
				p.at++
				nodes = append(nodes, dataNode(t.text))
			case "{{":
				p.at++
				nodes = append(nodes, outputNode{p.tuple()})
				p.want("}}")
			// A tag.
			default:
				p.at++
				if name := p.now(); name.kind == "name" && slices.Contains(ends, name.text) {
					return
				}
				nodes = append(nodes, p.tag(t.at))
			}
		}
	})

	return nodes
}

// missingTags lists the tags of Jinja and its extensions that are not supported.
var missingTags = strings.Fields(
	"include import from extends block do call filter trans pluralize autoescape break continue debug with")

// tag reads a tag, whose {% began at a byte.
func (p *parser) tag(began int) node {
	t := p.want("name")
	tag := token{text: t.text, at: began}
	switch t.text {
	case "if":
		return p.ifTag(tag)
	case "for":
		return p.forTag(tag)
	case "set":
		return p.setTag(tag)
	case "macro":
		return p.macroTag(tag)
	}

	if slices.Contains(missingTags, t.text) {
		p.unsupported(began, "tag", t.text)
	}
	failAt(began, "has the tag %s, which does not belong there", language.Shorten(t.text))
	return nil
}

func (p *parser) ifTag(tag token) node {
	n := &ifNode{cond: p.expr()}
	p.want("%}")
	n.then = p.body("elif else endif", tag)

	switch p.next().text {
	case "elif":
		// An elif is an if within the else, so a long chain of them counts as nesting.
		p.nested(func() { n.otherwise = []node{p.ifTag(tag)} })
		// The inner one took the endif.
		return n
	case "else":
		p.want("%}")
		n.otherwise = p.body("endif", tag)
		p.next()
	}
	p.want("%}")

	return n
}

func (p *parser) forTag(tag token) node {
	n := &forNode{targets: p.targets()}
	if !p.takeName("in") {
		p.unexpected("in")
	}
	// Before the names are bound: a list may be called like one of its elements.
	n.over = p.tupleWithoutIf()

	p.scoped(func() {
		for _, name := range n.targets {
			p.bind(name)
		}
		if p.takeName("if") {
			n.cond = p.expr()
		}
		// Bound now: the condition does not see it.
		p.bind("loop")
		if p.isName("recursive") {
			p.unsupported(p.now().at, "loop", "recursive")
		}
		p.want("%}")
		n.body = p.body("else endfor", tag)
	})

	if p.next().text == "else" {
		p.want("%}")
		p.scoped(func() { n.otherwise = p.body("endfor", tag) })
		p.next()
	}
	p.want("%}")

	return n
}

// targets reads the names that something is assigned to.
func (p *parser) targets() []string {
	parenthesis := p.take("(")
	list := []string{p.target()}
	for p.take(",") {
		// A comma at the end makes a tuple of one, as in Python.
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

var notAssignable = strings.Fields("true false none True False None loop")

func (p *parser) target() string {
	t := p.want("name")
	if slices.Contains(notAssignable, t.text) {
		failAt(t.at, "assigns to %s, which cannot be assigned to", t.text)
	}

	return t.text
}

func (p *parser) setTag(tag token) node {
	n := &setNode{targets: p.targets()}
	// The namespace is used, not set: it may be a variable.
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
		n.body = p.block("endset", tag)
	}

	// Bound last: the value may use a variable of the same name.
	if n.attribute == "" {
		for _, name := range n.targets {
			p.bind(name)
		}
	}

	return n
}

// block reads the end of a tag, and its body up to the end of the tag that closes it. The
// body is in a new scope, which has the names.
func (p *parser) block(end string, tag token, names ...string) (body []node) {
	p.want("%}")
	p.scoped(func() {
		for _, name := range names {
			p.bind(name)
		}
		body = p.body(end, tag)
	})
	p.next()
	p.want("%}")

	return body
}
