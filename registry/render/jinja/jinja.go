// Package jinja parses and renders a subset of Jinja's template language. Templates and
// variables come from callers, so steps, memory, output and nesting are bounded; every
// bound is in this file. Within the package failures travel as panics, which never leave
// it: see recoverFailure.
package jinja

import (
	"fmt"
	"slices"

	"promptspool/registry/render/language"
)

// Template is a text in a subset of Jinja's template language. The language is the one of
// "Template Designer Documentation",
// https://jinja.palletsprojects.com/en/stable/templates/, with the defaults of Jinja's
// environment: no autoescape, keep_trailing_newline and trim_blocks off.
//
// It never changes and is safe for concurrent use. It sees its variables and nothing
// else.
//
// Supported are the tags if, elif, else, for (with else, a condition, and loop), set (of
// one name, of several, of a namespace's attribute, of a block), filter, raw, macro (with
// defaults and caller) and call; comments; whitespace control; expressions with decimal
// numbers; slices from and to, and [::-1]; the functions range, dict and namespace; and
// these filters, tests and methods:
//
//	filters  abs capitalize count d default dictsort first float format indent int items
//	         join last length list lower map max min reject rejectattr replace reverse
//	         round safe select selectattr sort string title tojson trim truncate unique
//	         upper
//	tests    boolean defined eq equalto false float ge gt in integer iterable le lt mapping
//	         ne none number sequence string true undefined == != < <= > >=
//	methods  of strings: upper lower title capitalize strip lstrip rstrip split splitlines
//	         replace startswith endswith find rfind index join;
//	         of mappings: get items keys values; of lists: index
//
// That is what public prompts use. The rest of Jinja is reported by name when a template is
// published: includes, inheritance, with, do, break and recursive loops; other filters,
// tests, methods, functions and members of loop; the operator **, % of a text, and chains of
// comparisons; %x and the like in a format; arguments given as * and **.
//
// Five things differ from Jinja. A macro has no varargs and kwargs, nor members such as
// name. A call tag may call one that does not use caller. A member of an undefined value
// is undefined too, and an undefined value is an empty string wherever a string is
// expected. A member named like a method, without a call, is the member. Integers beyond
// 64 bits can be written but not calculated with.
type Template struct {
	body      []node
	variables []string
}

// Parse reads a text. Its error names the fault and its place.
func Parse(source string) (*Template, error) {
	t, err := parse(source)

	return t, language.Locate(err, source)
}

func parse(source string) (t *Template, err error) {
	if len(source) > sourceBytesMax {
		message := fmt.Sprintf("is longer than %d KiB of jinja2", sourceBytesMax>>10)
		return nil, &language.Error{Message: message}
	}
	defer recoverFailure(&err)

	p := &parser{bound: []map[string]bool{{}}}
	p.tokens = lex(source)
	p.macros = macroNames(p.tokens)
	body := p.body("", token{})

	return &Template{body: body, variables: p.used.List}, nil
}

// Variables lists the variables that the text uses but does not set, each once, in order
// of appearance.
func (t *Template) Variables() []string { return slices.Clone(t.variables) }

// AppendTo appends the rendered text to b. It notes as missing the variables that it would
// have written or iterated over.
//
// With an error there is no text: the values do not fit what the text does with them, or
// a bound was exceeded.
func (t *Template) AppendTo(b []byte, r *language.Rendering) (out []byte, err error) {
	defer recoverFailure(&err)

	x := &run{r: r, out: b, scope: &scope{}}
	x.runBody(t.body)
	return x.out, nil
}

// The bounds of a template and of its rendering. Those of a rendering hold for all texts
// of a blueprint together.
const (
	sourceBytesMax = 256 << 10 // bytes of one text
	depthMax       = 100       // nesting of blocks and of expressions
	chainMax       = 1000      // parts of an expression in a row: a + b + c

	stepsMax      = 1_000_000 // steps of one rendering
	stepsPerCheck = 1000      // steps between checks whether the caller still waits
	bytesPerStep  = 256       // bytes of a string that can be read in one step
	valueBytesMax = 32 << 20  // bytes of all values that one rendering makes
	valueDepthMax = 600       // nesting of values
	callsMax      = 200       // macros that call each other or themselves
	rangeMax      = 100_000   // elements of range(), the same as in Jinja's own sandbox
)

// Within a parse and a rendering, errors travel as panics, as in text/template: nearly
// every step can fail, and none handles the failure of another. Every panic of the
// package starts in fail or failAt and ends in recoverFailure.

// recoverFailure turns a panic into an error. Call it deferred.
func recoverFailure(err *error) {
	switch r := recover().(type) {
	case nil:
	case *language.Error:
		*err = r
	// A text that triggers a bug of ours must not end the process.
	default:
		*err = &language.Error{Message: fmt.Sprintf("met a mistake in promptspool, please report it: %v", r)}
	}
}

// fail ends the rendering.
func fail(format string, args ...any) { failAt(0, format, args...) }

// failAt ends the parse because of what is at a byte of the text.
func failAt(at int, format string, args ...any) {
	panic(&language.Error{Message: fmt.Sprintf(format, args...), At: at})
}
