package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	"promptspool/api/wire/jsonscan"
)

// Object is the members of a body, one strict JSON object, in the order they came.
type Object []jsonscan.Member

// ParseObject checks that body is one strict JSON object and lists its members, which
// alias body. Strict is RFC 8259 with valid UTF-8, no trailing bytes, at most
// JSONDepthMax levels, and no repeated or more than ObjectMembersMax members at the top.
// Errors are CodeBadJSON, or CodeInvalid for such a member.
func ParseObject(body []byte) (Object, error) { return Object(nil).Parse(body) }

// Parse is ParseObject, but reuses o's memory: o's members are overwritten. A name that o
// had in the same place is not allocated again.
func (o Object) Parse(body []byte) (Object, error) {
	// The members of the body before: their names are mostly the same, and save a copy.
	before := o[:cap(o)]
	o = o[:0]
	if o == nil {
		o = make(Object, 0, 8)
	}

	i := jsonscan.SkipSpace(body, 0)
	if i == len(body) || body[i] != '{' || !utf8.Valid(body) {
		return nil, syntaxError(body)
	}

	c := jsonscan.Enter(body, i)
	for c.Next() {
		m := jsonscan.Member{Start: c.Start}
		m.End = jsonscan.CheckValue(body, c.At, JSONDepthMax-1)
		if m.End < 0 {
			return nil, syntaxError(body)
		}
		m.Value = body[c.At:m.End:m.End]
		c.At = m.End

		// One member too many is enough to report, but malformed JSON after it has
		// precedence.
		if len(o) > ObjectMembersMax {
			continue
		}

		name := jsonscan.UnquoteBytes(c.Name)
		if n := len(o); n < len(before) && before[n].Name == string(name) {
			m.Name = before[n].Name
		} else {
			m.Name = string(name)
		}
		o = append(o, m)
	}
	if c.At < 0 || jsonscan.SkipSpace(body, c.At) < len(body) {
		return nil, syntaxError(body)
	}

	if fault := o.fault(); fault != nil {
		return nil, Invalid(*fault)
	}

	return o, nil
}

// syntaxError tells why body is not one strict JSON object.
func syntaxError(body []byte) error {
	if err := encodingError(body); err != nil {
		return err
	}
	if bytes.HasPrefix(body, []byte("\ufeff")) {
		return Errorf(CodeBadJSON, "The body is not JSON: it begins with a byte order mark. Send UTF-8 without one.")
	}
	if d := jsonscan.Depth(body, JSONDepthMax); d > JSONDepthMax {
		return Errorf(CodeBadJSON, "The body is nested %d deep or more; at most %d is accepted.",
			d, JSONDepthMax)
	}
	if !jsonscan.Valid(body) || body[jsonscan.SkipSpace(body, 0)] == '{' {
		return Errorf(CodeBadJSON, "The body is not JSON%s. Send one JSON object with Content-Type: application/json.",
			syntaxPlace(body))
	}

	return Errorf(CodeBadJSON, "The body is JSON, but not an object. Send one JSON object.")
}

// encodingError returns where body is not UTF-8, or nil. Such a body is refused, not kept with U+FFFD: a
// record is given out as it was sent, and one such byte makes a whole page or export unreadable as JSON.
func encodingError(body []byte) error {
	for at := 0; at < len(body); {
		r, n := utf8.DecodeRune(body[at:])
		if r == utf8.RuneError && n == 1 {
			line, column := jsonscan.Position(body, at)
			return Errorf(CodeBadJSON, "The body is not valid UTF-8 (line %d, column %d: byte 0x%02X). "+
				"Send JSON in UTF-8.", line, column, body[at])
		}
		at += n
	}

	return nil
}

// syntaxPlace describes where and why a body is not JSON, or returns "" if encoding/json
// accepts it.
func syntaxPlace(body []byte) string {
	var value json.RawMessage
	fault := new(json.SyntaxError)
	if err := json.Unmarshal(body, &value); !errors.As(err, &fault) {
		return ""
	}

	at := int(max(fault.Offset-1, 0))
	line, column := jsonscan.Position(body, at)
	reason := fault.Error()
	// As Python's json.dumps writes them.
	for _, word := range []string{"NaN", "Infinity"} {
		if bytes.HasPrefix(body[at:], []byte(word)) {
			reason = word + " is no value of JSON: send null; in Python json.dumps(..., allow_nan=False) shows where"
		}
	}

	return fmt.Sprintf(" (line %d, column %d: %s)", line, column, reason)
}

// pairwiseMax is up to how many members are compared with each other; more than that go
// through a map.
const pairwiseMax = 24

// fault returns what is wrong with the first member that is repeated or one too many, or
// nil.
func (o Object) fault() *FieldError {
	var seen map[string]bool
	if len(o) > pairwiseMax {
		seen = make(map[string]bool, len(o))
	}

	for i := range o {
		name := o[i].Name
		switch {
		case i == ObjectMembersMax:
			reason := fmt.Sprintf("is one field too many; at most %d are accepted", ObjectMembersMax)
			return &FieldError{Field: name, Reason: reason}
		case seen[name], seen == nil && o[:i].Has(name):
			return &FieldError{Field: name, Reason: "is given twice"}
		case seen != nil:
			seen[name] = true
		}
	}

	return nil
}

// ParseOptional is Parse for an optional body: empty, white space and null give nil, nil.
func (o Object) ParseOptional(body []byte) (Object, error) {
	if b := bytes.TrimSpace(body); len(b) == 0 || string(b) == "null" {
		return nil, nil
	}
	return o.Parse(body)
}

// Get returns the value of the member called name, and whether it exists and is not null.
func (o Object) Get(name string) (json.RawMessage, bool) {
	for i := range o {
		if o[i].Name == name {
			return o[i].Value, string(o[i].Value) != "null"
		}
	}
	return nil, false
}

// Has reports whether the member called name exists, null or not.
func (o Object) Has(name string) bool {
	return slices.ContainsFunc(o, func(m jsonscan.Member) bool { return m.Name == name })
}
