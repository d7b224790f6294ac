package fstring

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"promptspool/api/wire/jsonscan"
	"promptspool/registry/render/language"
)

// Bounds of one rendering, over all texts of a blueprint.
const (
	// workBytesMax bounds the bytes of variables that are read: {a[0]} reads a up to its
	// end.
	workBytesMax = 128 << 20

	// reprCost is how many bytes could be read in the time that it takes to write one as
	// Python's repr.
	reprCost = 8
)

var errWork = errors.New(
	"takes too much work to render; pass the parts of large values as separate variables")

// AppendTo appends the rendered text to b. A string gives its text, anything else what
// Python's str() would print. A field without a value renders as empty text, and is noted
// as missing.
//
// With an error there is no text: the values do not fit the format specs (Python would
// raise ValueError or TypeError), or a bound was exceeded.
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
		// Counted after writing: how long a field becomes is known only then. One
		// field is bounded by its value and its width.
		before := len(b)
		var err error
		b, err = p.field.appendTo(b, r)
		if err != nil {
			return nil, err
		}
		if r.Output -= len(b) - before; r.Output < 0 {
			return nil, language.ErrOutput
		}
	}

	return b, nil
}

// read spends what reading a value costs.
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

	// A string is copied as it is; anything else is written token by token.
	cost := 1
	if value[0] != '"' || f.conversion == 'r' {
		cost = reprCost
	}
	if err := read(r, value, cost); err != nil {
		return nil, err
	}

	if !f.spec.given && f.conversion != 'r' {
		// The usual case, without a copy.
		return language.AppendStr(b, value), nil
	}

	text, err := f.formatted(value)
	if err != nil {
		return nil, fmt.Errorf("has {%s}, %w", language.Shorten(f.source), err)
	}

	return append(b, text...), nil
}

func (f *field) formatted(value json.RawMessage) (string, error) {
	switch f.conversion {
	case 0:
		return f.spec.format(value)
	case 's':
		return f.spec.text(language.Str(value))
	}

	return f.spec.text(string(language.AppendRepr(nil, value)))
}

// find returns the value of a field. If there is none it returns nil and notes the
// missing variable.
func (f *field) find(r *language.Rendering) (json.RawMessage, error) {
	value, ok := r.Variables[f.name]
	if !ok {
		r.Miss(f.name)
		return nil, nil
	}

	for _, step := range f.path {
		// A member is found by reading the value up to it.
		if err := read(r, value, 1); err != nil {
			return nil, err
		}
		value = reach(value, step)
		if value == nil {
			r.Miss(f.source)
			return nil, nil
		}
	}

	return value, nil
}

// reach returns a member of an object or an element of an array; nil if there is none. Of
// a member that appears twice it returns the last, as Python's json does.
func reach(value json.RawMessage, step string) (found json.RawMessage) {
	switch value[0] {
	case '{':
		for m := range jsonscan.Members(value) {
			if m.Name == step {
				// The last of several, as JSON is read elsewhere.
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
