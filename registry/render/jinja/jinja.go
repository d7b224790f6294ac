package jinja

import (
	"encoding/json"
	"fmt"
	"slices"

	"promptspool/registry/render/language"
)

// Template is a text in a subset of Jinja's template language, as its documentation has it ("Template Designer
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
type Template struct {
	body      []node
	variables []string
	doubted   []*language.Error // what fails whenever it is reached, and not before
}

// Parse reads a text. Its error says what is wrong and where.
func Parse(source string) (*Template, error) {
	j, err := parse(source)
	if err != nil {
		return nil, language.Locate(err, source)
	}
	for _, doubt := range j.doubted {
		_ = language.Locate(doubt, source)
	}

	return j, nil
}

func parse(source string) (j *Template, err error) {
	if len(source) > sourceBytesMax {
		return nil, &language.Error{Message: fmt.Sprintf("is longer than %d KiB of jinja2", sourceBytesMax>>10)}
	}
	defer recoverFailure(&err)

	p := &parser{bound: []map[string]bool{{}}}
	p.tokens = lex(source)
	body := p.body("", token{})

	return &Template{body: body, variables: p.used.List, doubted: p.doubts}, nil
}

// Variables lists the variables that the text uses and does not set itself, in order of appearance, each once.
func (j *Template) Variables() []string { return slices.Clone(j.variables) }

// Doubts lists what of the text fails whenever it is reached, and not before.
func (j *Template) Doubts() []*language.Error { return j.doubted }

// AppendTo renders j behind b.
func (j *Template) AppendTo(b []byte, r *language.Rendering) (out []byte, err error) {
	defer recoverFailure(&err)
	x := &run{r: r, out: b, scope: &scope{}}
	x.runBody(j.body)
	return x.out, nil
}

// Render fills in the variables, which are JSON values. missing names those that were written out or walked through and are not
// there, each once. On an error there is no text: the values do not fit what the text does with them, or a bound was met.
func (j *Template) Render(vars map[string]json.RawMessage) (text string, missing []string, err error) {
	r := language.NewRendering(vars)
	b, err := j.AppendTo(nil, &r)
	return string(b), r.Missing, err
}
