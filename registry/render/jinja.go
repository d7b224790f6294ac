package render

import (
	"encoding/json"
	"fmt"
	"slices"
)

// Bounds of jinja2.
const (
	jinjaStepsMax  = 1_000_000 // steps of one rendering, over all texts of a blueprint
	stepsPerLook   = 1000      // after which it is asked whether the caller still waits
	jinjaBytesMax  = 32 << 20  // bytes of values that one rendering makes, over all texts
	readPerStep    = 256       // bytes of text that can be read for a step
	jinjaSourceMax = 256 << 10 // bytes of one text
	jinjaDepthMax  = 100       // nesting of blocks and of expressions
	jinjaChainMax  = 1000      // parts of an expression in a row: a + b + c
	jinjaValueMax  = 600       // nesting of values
	jinjaRangeMax  = 100_000   // of range(), as Jinja's own sandbox has it
)

// Jinja is a text in a subset of Jinja's template language, as its documentation has it ("Template Designer
// Documentation", https://jinja.palletsprojects.com/en/stable/templates/), rendered as Jinja's environment does by itself: no
// autoescape, keep_trailing_newline and trim_blocks off. It never changes; safe for concurrent use. It sees its variables and nothing else.
//
// It has the tags if, elif, else, for (with else, a condition, and loop), set (of one name, of several, of a namespace's
// attribute, of a block), with, filter and raw; comments; whitespace control; all of Jinja's expressions; the functions range, dict and
// namespace; and these filters, tests and methods:
//
//	filters  abs batch capitalize center count d default dictsort e escape first float forceescape format groupby indent int items
//	         join last length list lower map max min reject rejectattr replace reverse round safe select selectattr slice sort string
//	         striptags sum title tojson trim truncate unique upper urlencode wordcount wordwrap
//	tests    boolean callable defined divisibleby eq equalto escaped even false filter float ge greaterthan gt in integer iterable
//	         le lessthan lower lt mapping ne none number odd sameas sequence string test true undefined upper == != < <= > >=
//	methods  of texts: upper lower title capitalize swapcase strip lstrip rstrip split rsplit splitlines replace startswith endswith find
//	         rfind index count join zfill center ljust rjust removeprefix removesuffix partition rpartition isdigit isdecimal
//	         isnumeric isalpha isalnum isupper islower isspace; of mappings: get items keys values; of lists: index count; of loop:
//	         cycle changed
//
// It lacks, and names in a finding when a template is published: macro, call, include, import, from, extends, block, do, trans, autoescape,
// break, continue, recursive loops; the filters attr, filesizeformat, pprint, random, urlize, xmlattr;
// functions and tests of extensions; methods that would change a value; arguments given as * and **.
//
// It differs in this: a member of what is undefined is undefined too, and what is undefined is an empty text wherever a text is wanted; a
// member called like a method, without a call, is the member; integers beyond 64 bits can be written but not calculated with.
type Jinja struct {
	body      []jinjaNode
	variables []string
	doubts    []*textError // what fails whenever it is reached, and not before
}

// ParseJinja reads a text. Its error says what is wrong and where.
func ParseJinja(source string) (*Jinja, error) {
	j, err := parseJinja(source)
	if err != nil {
		return nil, located(err, source)
	}
	for _, doubt := range j.doubts {
		_ = located(doubt, source)
	}

	return j, nil
}

func parseJinja(source string) (j *Jinja, err error) {
	if len(source) > jinjaSourceMax {
		return nil, &textError{message: fmt.Sprintf("is longer than %d KiB of jinja2", jinjaSourceMax>>10)}
	}
	defer catchJinja(&err)

	p := &jinjaParser{bound: []map[string]bool{{}}}
	p.tokens = lexJinja(source)
	body := p.body("", jinjaToken{})

	return &Jinja{body: body, variables: p.used.list, doubts: p.doubts}, nil
}

// Variables lists the variables that the text uses and does not set itself, in order of appearance, each once.
func (j *Jinja) Variables() []string { return slices.Clone(j.variables) }

// appendTo renders j behind b.
func (j *Jinja) appendTo(b []byte, r *rendering) (out []byte, err error) {
	defer catchJinja(&err)
	x := &jinjaRun{r: r, out: b, scope: &jinjaScope{}}
	x.run(j.body)
	return x.out, nil
}

// catchJinja turns the panic of a jinjaFail into an error. Within a parse and a rendering errors travel as panics, as in
// text/template: nearly every step can fail, and none handles the failure of another.
func catchJinja(err *error) {
	switch r := recover().(type) {
	case nil:
	case *textError:
		*err = r
	default: // a text that finds a mistake of ours must not end the process
		*err = &textError{message: fmt.Sprintf("met a mistake in promptspool, please report it: %v", r)}
	}
}

// jinjaFail ends the rendering.
func jinjaFail(format string, args ...any) { jinjaFailAt(0, format, args...) }

// jinjaFailAt ends the parse because of what stands at a byte of the text.
func jinjaFailAt(at int, format string, args ...any) {
	panic(&textError{message: fmt.Sprintf(format, args...), at: at})
}

// jinjaRun is the state of one rendering of one text.
type jinjaRun struct {
	r     *rendering
	out   []byte
	scope *jinjaScope
	depth int
}

// jinjaScope is what was set in a block. A for loop and a with have their own; an if has not.
type jinjaScope struct {
	names  map[string]any
	parent *jinjaScope
}

// step takes one step off those that may still be made.
func (x *jinjaRun) step() {
	x.spend(1)
}

// spend takes steps off, and ends the rendering if its caller has gone.
func (x *jinjaRun) spend(steps int) {
	if x.r.steps -= steps; x.r.steps < 0 {
		jinjaFail("takes more than %d steps to render", jinjaStepsMax)
	}
	if x.r.looked-x.r.steps < stepsPerLook {
		return
	}

	x.r.looked = x.r.steps
	select {
	case <-x.r.done:
		x.r.ended = true
		x.r.steps = 0 // for the texts that follow, too
		jinjaFail("was not rendered to its end: the call ended")
	default:
	}
}

// pay takes what a value takes off the memory that may still be used. It comes before the value is made.
func (x *jinjaRun) pay(bytes int) {
	if bytes < 0 || bytes > x.r.memory {
		x.r.memory = 0
		jinjaFail("makes more than %d MiB of values", jinjaBytesMax>>20)
	}
	x.r.memory -= bytes
}

// read takes what looking through a text costs off the steps. Whoever takes a value as a text pays for it, so that no
// filter, test or method can be made to read a large text without end.
func (x *jinjaRun) read(bytes int) {
	x.spend(bytes / readPerStep)
}

// write adds to the outcome.
func (x *jinjaRun) write(s string) {
	if x.r.output -= len(s); x.r.output < 0 {
		panic(&textError{message: errOutput.Error()})
	}
	x.out = append(x.out, s...)
}

// deeper guards the recursion of f.
func (x *jinjaRun) deeper(f func()) {
	if x.depth++; x.depth > jinjaValueMax {
		jinjaFail("makes values that are nested deeper than %d", jinjaValueMax)
	}
	f()
	x.depth--
}

func (x *jinjaRun) run(body []jinjaNode) {
	for _, n := range body {
		x.step()
		n.exec(x)
	}
}

// scoped runs a body in a scope of its own.
func (x *jinjaRun) scoped(names map[string]any, f func()) {
	x.scope = &jinjaScope{names: names, parent: x.scope}
	f()
	x.scope = x.scope.parent
}

func (x *jinjaRun) set(name string, value any) {
	if x.scope.names == nil {
		x.scope.names = make(map[string]any)
	}
	x.pay(32)
	x.scope.names[name] = value
}

// lookup is the value of a variable.
func (x *jinjaRun) lookup(name string) any {
	for s := x.scope; s != nil; s = s.parent {
		x.step()
		if v, ok := s.names[name]; ok {
			return v
		}
	}
	if raw, ok := x.r.vars[name]; ok {
		if v, ok := x.r.decoded[name]; ok {
			return v
		}
		v := x.decode(raw)
		if x.r.decoded == nil {
			x.r.decoded = make(map[string]any)
		}
		x.r.decoded[name] = v
		return v
	}
	return &jinjaUndefined{name}
}

// capture runs a body and returns what it writes.
func (x *jinjaRun) capture(body []jinjaNode) string {
	outer := x.out
	x.out = nil
	x.run(body)
	s := string(x.out)
	x.pay(len(s))
	x.out = outer
	return s
}

// Render fills in the variables, which are JSON values. missing names those that were written out or walked through and are not
// there, each once. On an error there is no text: the values do not fit what the text does with them, or a bound was met.
func (j *Jinja) Render(vars map[string]json.RawMessage) (text string, missing []string, err error) {
	r := newRendering(vars)
	b, err := j.appendTo(nil, &r)
	return string(b), r.missing, err
}
