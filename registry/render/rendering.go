package render

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"promptspool/api/wire"
)

// Bounds of one rendering, over all texts of a blueprint.
const (
	outputBytesMax = 16 << 20  // bytes written
	workBytesMax   = 128 << 20 // bytes of variables read: {a[0]} reads a up to its end
	reprCost       = 8         // a byte that is written as Python's repr takes the work of so many that are read
	missingMax     = 100       // missing variables that are named
)

var (
	errOutput = fmt.Errorf("becomes longer than %d MiB", outputBytesMax>>20)
	errWork   = errors.New("takes too much work to render; give the parts of large values as variables of their own")
)

// Render fills in the variables, which are JSON values: a string gives its text, anything else what Python's str() would
// print. A field without a value renders as empty text; missing names it, each once. On an error there is no text: the values do
// not fit the format specs (as when Python raises ValueError or TypeError), or a bound was met. With vars nil nothing is
// known, which is different from Prepared.Kwargs, where nil leaves texts as they are.
func (f *Format) Render(vars map[string]json.RawMessage) (text string, missing []string, err error) {
	r := newRendering(vars)
	b, err := f.appendTo(nil, &r)
	return string(b), r.missing, err
}

// rendering is the state of one call: variables, what may still be spent, what was missing.
type rendering struct {
	vars    map[string]json.RawMessage
	output  int // bytes that may still be written
	work    int // bytes that may still be read
	missing []string
	text    []byte // what is being written

	// of jinja2
	steps   int             // that may still be made
	looked  int             // what steps was when done was last looked at
	done    <-chan struct{} // closed when nobody waits for the outcome any more; nil if that is not told
	ended   bool            // done was closed
	memory  int             // bytes that values may still take
	decoded map[string]any  // variables as values
}

func newRendering(vars map[string]json.RawMessage) rendering {
	return rendering{vars: vars, output: outputBytesMax, work: workBytesMax, steps: jinjaStepsMax, looked: jinjaStepsMax, memory: jinjaBytesMax}
}

// appendTo renders f behind b.
func (f *Format) appendTo(b []byte, r *rendering) ([]byte, error) {
	for i := range f.parts {
		p := &f.parts[i]
		if r.output -= len(p.literal); r.output < 0 {
			return nil, errOutput
		}
		b = append(b, p.literal...)
		if p.field == nil {
			continue
		}
		before := len(b)
		var err error
		if b, err = r.appendField(b, p.field); err != nil {
			return nil, err
		}
		if r.output -= len(b) - before; r.output < 0 {
			return nil, errOutput
		}
	}
	return b, nil
}

// pay takes what reading a value costs off the work that may still be done.
func (r *rendering) pay(v json.RawMessage, cost int) error {
	if r.work -= cost * len(v); r.work < 0 {
		return errWork
	}
	return nil
}

func (r *rendering) appendField(b []byte, f *field) ([]byte, error) {
	value, err := r.find(f)
	if value == nil || err != nil {
		return b, err
	}
	cost := 1
	if value[0] != '"' || f.conversion == 'r' || f.conversion == 'a' {
		cost = reprCost
	}
	if err := r.pay(value, cost); err != nil {
		return nil, err
	}
	spec := f.spec
	if f.nested != nil {
		text, err := f.nested.appendTo(nil, r)
		if err == nil {
			spec, err = parseSpec(string(text))
		}
		if err != nil {
			return nil, err
		}
	}
	if !spec.given && (f.conversion == 0 || f.conversion == 's') {
		return appendStr(b, value), nil
	}
	var text string
	switch f.conversion {
	case 0:
		text, err = spec.format(value)
	case 's':
		text, err = spec.text(str(value))
	default:
		text, err = spec.text(string(appendRepr(nil, value, f.conversion == 'a')))
	}
	if err != nil {
		return nil, fmt.Errorf("has {%s}, %w", shorten(f.source), err)
	}
	return append(b, text...), nil
}

// find returns the value of a field; nil if there is none, which it notes.
func (r *rendering) find(f *field) (json.RawMessage, error) {
	value, ok := r.vars[f.name]
	if !ok {
		r.miss(f.name)
		return nil, nil
	}
	for _, step := range f.path {
		if err := r.pay(value, 1); err != nil {
			return nil, err
		}
		if value = reach(value, step); value == nil {
			r.miss(f.source)
			return nil, nil
		}
	}
	return value, nil
}

func (r *rendering) miss(name string) {
	if len(r.missing) < missingMax {
		r.missing = addOnce(r.missing, name)
	}
}

// reach returns a member of an object or an element of an array; nil if there is none. Of a member that is there
// twice it returns the last, as Python's json does.
func reach(value json.RawMessage, step string) (found json.RawMessage) {
	switch value[0] {
	case '{':
		for m := range wire.Members(value) {
			if m.Name == step {
				found = m.Value
			}
		}
	case '[':
		index, err := strconv.ParseUint(step, 10, 31)
		if err != nil {
			return nil
		}
		for i, e := range wire.Elements(value) {
			if i == int(index) {
				return e
			}
		}
	}
	return found
}
