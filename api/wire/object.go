package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"unicode/utf8"
)

// Member is one member of a JSON object. Value aliases the object's bytes.
type Member struct {
	Name  string // unescaped
	Value json.RawMessage
	start int // where the member's name begins
	end   int // just behind its value
}

// Object is the members of a JSON object in the order they came.
type Object []Member

// ParseObject checks that body is one strict JSON object (RFC 8259: valid UTF-8, no trailing bytes, nested
// at most JSONDepthMax deep, no member twice at the top) and lists its members. They alias body. Its errors are 400
// or, for a repeated member, 422.
func ParseObject(body []byte) (Object, error) { return Object(nil).Parse(body) }

// Parse is ParseObject with the members in the place of o's, which are gone. A name that stood there before, and is the same again,
// is not copied anew.
func (o Object) Parse(body []byte) (Object, error) {
	before := o[:cap(o)]
	o = o[:0]
	if o == nil {
		o = make(Object, 0, 8)
	}

	i := SkipSpace(body, 0)
	if i == len(body) || body[i] != '{' || !utf8.Valid(body) {
		return nil, refusal(body)
	}

	c := Enter(body, i)
	for c.Next() {
		m := Member{start: c.Start}
		if m.end = checkValue(body, c.At, JSONDepthMax-1); m.end < 0 {
			return nil, refusal(body)
		}
		m.Value = body[c.At:m.end:m.end]
		c.At = m.end
		if len(o) > ObjectMembersMax {
			continue // there is one too many; but is it JSON?
		}

		name := UnquoteBytes(c.Name)
		if n := len(o); n < len(before) && before[n].Name == string(name) {
			m.Name = before[n].Name
		} else {
			m.Name = string(name)
		}
		o = append(o, m)
	}
	if c.At < 0 || SkipSpace(body, c.At) < len(body) {
		return nil, refusal(body)
	}

	if fault := o.fault(); fault != nil {
		return nil, Invalid(*fault)
	}
	return o, nil
}

// refusal is why a body is not one strict JSON object.
func refusal(body []byte) error {
	if !utf8.Valid(body) {
		return Errorf(CodeBadJSON, "The body is not valid UTF-8. Send JSON in UTF-8.")
	}
	if d := depth(body); d > JSONDepthMax {
		return Errorf(CodeBadJSON, "The body is nested %d deep or more; at most %d is accepted.", d, JSONDepthMax)
	}
	if !IsJSON(body) || body[SkipSpace(body, 0)] == '{' {
		return Errorf(CodeBadJSON, "The body is not JSON. Send one JSON object with Content-Type: application/json.")
	}
	return Errorf(CodeBadJSON, "The body is JSON, but not an object. Send one JSON object.")
}

// comparedMax is how many members are compared one by one; of more, a map is made.
const comparedMax = 24

// fault returns what is wrong with the first member that cannot stand behind those before it, or nil.
func (o Object) fault() *FieldError {
	var seen map[string]bool
	if len(o) > comparedMax {
		seen = make(map[string]bool, len(o))
	}
	for i := range o {
		name := o[i].Name
		switch {
		case i == ObjectMembersMax:
			return &FieldError{name, fmt.Sprintf("is one field too many; at most %d are accepted", ObjectMembersMax)}
		case seen[name], seen == nil && o[:i].Has(name):
			return &FieldError{name, "is given twice"}
		case seen != nil:
			seen[name] = true
		}
	}

	return nil
}

// ParseOptional is Parse for a body that may be left out: an empty one, a blank one and null are no object and no
// error.
func (o Object) ParseOptional(body []byte) (Object, error) {
	if b := bytes.TrimSpace(body); len(b) == 0 || string(b) == "null" {
		return nil, nil
	}
	return o.Parse(body)
}

// Get returns the value of the member called name, and whether it is there and not null: null means absent.
func (o Object) Get(name string) (json.RawMessage, bool) {
	for i := range o {
		if o[i].Name == name {
			return o[i].Value, string(o[i].Value) != "null"
		}
	}
	return nil, false
}

// Has says whether the member called name is there, null or not.
func (o Object) Has(name string) bool {
	return slices.ContainsFunc(o, func(m Member) bool { return m.Name == name })
}
