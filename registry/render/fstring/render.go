package fstring

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"promptspool/api/wire/jsonscan"
	"promptspool/registry/render/language"
	"promptspool/registry/render/python"
)

// Bounds of one rendering, over all texts of a blueprint.
const (
	workBytesMax = 128 << 20 // bytes of variables read: {a[0]} reads a up to its end
	reprCost     = 8         // a byte that is written as Python's repr takes the work of so many that are read
)

var (
	errWork = errors.New("takes too much work to render; give the parts of large values as variables of their own")
)

// Render fills in the variables, which are JSON values: a string gives its text, anything else what Python's str() would
// print. A field without a value renders as empty text; missing names it, each once. On an error there is no text: the values do
// not fit the format specs (as when Python raises ValueError or TypeError), or a bound was met. With vars nil nothing is
// known, which is different from Prepared.Kwargs, where nil leaves texts as they are.
func (f *Format) Render(vars map[string]json.RawMessage) (text string, missing []string, err error) {
	r := language.NewRendering(vars)
	b, err := f.AppendTo(nil, &r)
	return string(b), r.Missing, err
}

// AppendTo renders f behind b.
func (f *Format) AppendTo(b []byte, r *language.Rendering) ([]byte, error) {
	for i := range f.parts {
		p := &f.parts[i]
		if r.Output -= len(p.literal); r.Output < 0 {
			return nil, language.ErrOutput
		}
		b = append(b, p.literal...)
		if p.field == nil {
			continue
		}
		before := len(b)
		var err error
		if b, err = p.field.appendTo(b, r); err != nil {
			return nil, err
		}
		if r.Output -= len(b) - before; r.Output < 0 {
			return nil, language.ErrOutput
		}
	}
	return b, nil
}

// pay takes what reading a value costs off the work that may still be done.
func read(r *language.Rendering, v json.RawMessage, cost int) error {
	if r.Work += cost * len(v); r.Work > workBytesMax {
		return errWork
	}
	return nil
}

func (f *field) appendTo(b []byte, r *language.Rendering) ([]byte, error) {
	value, err := f.find(r)
	if value == nil || err != nil {
		return b, err
	}
	cost := 1
	if value[0] != '"' || f.conversion == 'r' || f.conversion == 'a' {
		cost = reprCost
	}
	if err := read(r, value, cost); err != nil {
		return nil, err
	}
	spec := f.spec
	if f.nested != nil {
		text, err := f.nested.AppendTo(nil, r)
		if err == nil {
			spec, err = python.ParseSpec(string(text))
		}
		if err != nil {
			return nil, err
		}
	}
	if !spec.IsGiven() && (f.conversion == 0 || f.conversion == 's') {
		return python.AppendStr(b, value), nil
	}
	var text string
	switch f.conversion {
	case 0:
		text, err = spec.Format(value)
	case 's':
		text, err = spec.Text(python.Str(value))
	default:
		text, err = spec.Text(string(python.AppendRepr(nil, value, f.conversion == 'a')))
	}
	if err != nil {
		return nil, fmt.Errorf("has {%s}, %w", language.Shorten(f.source), err)
	}
	return append(b, text...), nil
}

// find returns the value of a field; nil if there is none, which it notes.
func (f *field) find(r *language.Rendering) (json.RawMessage, error) {
	value, ok := r.Variables[f.name]
	if !ok {
		r.Miss(f.name)
		return nil, nil
	}
	for _, step := range f.path {
		if err := read(r, value, 1); err != nil {
			return nil, err
		}
		if value = reach(value, step); value == nil {
			r.Miss(f.source)
			return nil, nil
		}
	}
	return value, nil
}

// reach returns a member of an object or an element of an array; nil if there is none. Of a member that is there
// twice it returns the last, as Python's json does.
func reach(value json.RawMessage, step string) (found json.RawMessage) {
	switch value[0] {
	case '{':
		for m := range jsonscan.Members(value) {
			if m.Name == step {
				found = m.Value
			}
		}
	case '[':
		index, err := strconv.ParseUint(step, 10, 31)
		if err != nil {
			return nil
		}
		for i, e := range jsonscan.Elements(value) {
			if i == int(index) {
				return e
			}
		}
	}
	return found
}
