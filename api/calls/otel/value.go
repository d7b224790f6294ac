package otel

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"promptspool/api/wire/jsonscan"
)

// value is a valid JSON value, or empty where there is none. Every method works on every
// value: what does not fit is treated as absent.
type value json.RawMessage

// levelsMax bounds the nesting of a value that is put into a request's body, which itself
// may nest wire.JSONDepthMax levels.
const levelsMax = 400

func (v value) kind() byte {
	if len(v) == 0 {
		return 0
	}

	return v[0]
}

func (v value) isText() bool   { return v.kind() == '"' }
func (v value) isObject() bool { return v.kind() == '{' }
func (v value) isArray() bool  { return v.kind() == '[' }

// absent reports whether there is no value, or null.
func (v value) absent() bool { return len(v) == 0 || v[0] == 'n' }

// at follows names into nested objects. The name 0 stands for the first element of a list.
func (v value) at(names ...string) value {
	raw := json.RawMessage(v)
	for _, name := range names {
		member, ok := jsonscan.Lookup(raw, name)
		if name == "0" && !ok {
			member, ok = json.RawMessage(value(raw).element()), true
		}
		if !ok {
			return nil
		}
		raw = member
	}

	return value(raw)
}

// first returns the first member among names that exists and is not null.
func (v value) first(names ...string) value {
	for _, name := range names {
		if member := v.at(name); !member.absent() {
			return member
		}
	}

	return nil
}

// has reports whether any of the names is a member, null or not.
func (v value) has(names ...string) bool {
	for _, name := range names {
		if v.at(name) != nil {
			return true
		}
	}

	return false
}

// text returns the content of a string, "" for anything else.
func (v value) text() string {
	if !v.isText() {
		return ""
	}

	return jsonscan.Unquote(json.RawMessage(v))
}

// texts returns the first non-empty text among the members called names.
func (v value) texts(names ...string) string {
	for _, name := range names {
		if s := v.at(name).text(); s != "" {
			return s
		}
	}

	return ""
}

// shown returns a value as a person reads it: the content of a string, otherwise JSON.
func (v value) shown() string {
	switch {
	case v.absent():
		return ""
	case v.isText():
		return v.text()
	}

	return string(v)
}

// elementsMax bounds the elements of a list that are read: each becomes many times its bytes. Package
// calls reads no more of them either.
const elementsMax = 1 << 17

// elements returns the elements of an array, but for those that say nothing: {}, [], "" and null.
// There are elementsMax at most.
func (v value) elements() []value {
	if !v.isArray() {
		return nil
	}

	var all []value
	for _, e := range jsonscan.Elements(json.RawMessage(v)) {
		if len(all) == elementsMax {
			break
		}
		if e := value(e); len(e) > 2 && !e.absent() || e.isNumber() {
			all = append(all, e)
		}
	}

	return all
}

// element returns the first element of an array.
func (v value) element() value {
	if v.isArray() {
		for _, e := range jsonscan.Elements(json.RawMessage(v)) {
			return value(e)
		}
	}

	return nil
}

// number returns a finite number, also one that was sent as text.
func (v value) number() (float64, bool) {
	if v.absent() {
		// Most are, and an error of strconv is an allocation.
		return 0, false
	}

	text := string(v)
	if v.isText() {
		text = strings.TrimSpace(v.text())
	}

	if jsonscan.Valid([]byte(text)) {
		x, err := jsonscan.Float(text)
		return x, err == nil
	}
	x, err := strconv.ParseFloat(text, 64)

	return x, err == nil && !math.IsInf(x, 0) && !math.IsNaN(x)
}

// count returns a whole number of 0 or more, nil for anything else.
func (v value) count() *int64 {
	x, ok := v.number()
	if !ok || x < 0 || x > 1<<53 || x != math.Trunc(x) {
		return nil
	}
	return new(int64(x))
}

// inner returns the JSON object or array that a string holds. Anything else is returned as it is.
func (v value) inner() value {
	if !v.isText() {
		return v
	}

	// Not copied: most texts are prompts and answers, and no JSON.
	text := bytes.TrimSpace(jsonscan.UnquoteBytes(v))
	if !value(text).isObject() && !value(text).isArray() {
		return v
	}
	if !shallow(text) || !jsonscan.Valid(text) {
		return v
	}

	return value(text)
}

// quoted returns a text as a JSON value.
func quoted(s string) value { return jsonscan.AppendString(nil, s) }

// plain returns the plain JSON of an OTLP AnyValue. It aliases that where it can: prompts are
// long.
func (v value) plain() value {
	if !v.isObject() {
		// As in appendPlain.
		return v
	}
	if c := jsonscan.Enter(v, 0); c.Next() && (string(c.Name) == `"stringValue"` || string(c.Name) == `"boolValue"`) {
		end := jsonscan.SkipValue(v, c.At)
		return v[c.At:end:end]
	}
	plain, _ := appendPlain(nil, v, 0)

	return plain
}

// appendPlain appends to dst the plain JSON of the OTLP AnyValue that begins at b[i], and
// returns the index after it. NaN and infinite numbers become null.
func appendPlain(dst, b []byte, i int) ([]byte, int) {
	if b[i] != '{' {
		// Not an AnyValue; a client that writes plain attributes.
		end := jsonscan.SkipValue(b, i)
		return append(dst, b[i:end]...), end
	}

	c := jsonscan.Enter(b, i)
	start := len(dst)
	for c.Next() {
		if len(dst) > start {
			// Only the first member is the value.
			c.At = jsonscan.SkipValue(b, c.At)
			continue
		}

		switch string(c.Name) {
		case `"arrayValue"`:
			dst, c.At = appendValues(dst, b, c.At, "[")
		case `"kvlistValue"`:
			dst, c.At = appendValues(dst, b, c.At, "{")
		default:
			end := jsonscan.SkipValue(b, c.At)
			dst = appendScalar(dst, string(c.Name), b[c.At:end])
			c.At = end
		}
	}
	if len(dst) == start {
		dst = append(dst, "null"...)
	}

	return dst, c.At
}

// appendValues appends the values of an OTLP array or key-value list, in the brackets of
// the plain one.
func appendValues(dst, b []byte, i int, bracket string) ([]byte, int) {
	if b[i] != '{' {
		return append(dst, "null"...), jsonscan.SkipValue(b, i)
	}

	dst = append(dst, bracket...)
	c := jsonscan.Enter(b, i)
	for c.Next() {
		if string(c.Name) != `"values"` || b[c.At] != '[' {
			c.At = jsonscan.SkipValue(b, c.At)
			continue
		}

		each := jsonscan.Enter(b, c.At)
		for first := true; each.Next(); first = false {
			if !first {
				dst = append(dst, ',')
			}
			if bracket == "[" {
				dst, each.At = appendPlain(dst, b, each.At)
			} else {
				dst, each.At = appendMember(dst, b, each.At)
			}
		}
		c.At = each.At
	}

	// In ASCII ] and } come two after [ and {.
	return append(dst, bracket[0]+2), c.At
}

// appendMember appends a KeyValue as a member of an object.
func appendMember(dst, b []byte, i int) ([]byte, int) {
	if b[i] != '{' {
		return append(dst, `"":null`...), jsonscan.SkipValue(b, i)
	}

	key, held := []byte(`""`), -1
	c := jsonscan.Enter(b, i)
	for c.Next() {
		end := jsonscan.SkipValue(b, c.At)
		switch {
		case string(c.Name) == `"key"` && b[c.At] == '"':
			key = b[c.At:end]
		case string(c.Name) == `"value"`:
			held = c.At
		}
		c.At = end
	}

	dst = append(append(dst, key...), ':')
	if held < 0 {
		return append(dst, "null"...), c.At
	}
	dst, _ = appendPlain(dst, b, held)

	return dst, c.At
}

// appendScalar appends the plain form of a scalar member of an AnyValue.
func appendScalar(dst []byte, name string, raw value) []byte {
	switch name {
	case `"stringValue"`, `"boolValue"`:
		return append(dst, raw...)
	case `"intValue"`, `"doubleValue"`:
		if text := strings.TrimSpace(raw.shown()); jsonscan.Valid([]byte(text)) && value(text).isNumber() {
			return append(dst, text...)
		}
		return append(dst, "null"...)
	case `"bytesValue"`:
		// Some libraries send JSON as bytes.
		if text, err := base64.StdEncoding.DecodeString(raw.text()); err == nil && utf8.Valid(text) {
			return jsonscan.AppendString(dst, string(text))
		}
		return append(dst, raw...)
	}

	return append(dst, "null"...)
}

// isNumber reports whether the value is a finite JSON number.
func (v value) isNumber() bool {
	if c := v.kind(); c != '-' && (c < '0' || c > '9') {
		return false
	}
	_, err := jsonscan.Float(string(v))

	return err == nil
}

// MarshalJSON writes the value as it is.
func (v value) MarshalJSON() ([]byte, error) {
	if len(v) == 0 {
		return []byte("null"), nil
	}

	return v, nil
}

// encoded returns a Go value as JSON. It holds only texts, numbers and JSON that was parsed
// already.
func encoded(v any) value { return appendJSON(nil, v) }

// appendJSON appends a Go value as JSON.
//
// The values within it are copied as they are. encoding/json would check and compact each
// of them again, which takes most of the time of a prompt.
func appendJSON(dst []byte, v any) []byte {
	switch v := v.(type) {
	case value:
		if len(v) == 0 {
			return append(dst, "null"...)
		}
		return append(dst, v...)
	case string:
		return jsonscan.AppendString(dst, v)
	case int:
		return strconv.AppendInt(dst, int64(v), 10)
	case []value:
		return appendList(dst, v)
	case []string:
		return appendList(dst, v)
	case []choice:
		return appendList(dst, v)
	case []toolCall:
		return appendList(dst, v)
	case map[string]any:
		return appendMap(dst, v)
	case map[string]value:
		return appendMap(dst, v)
	case map[string]string:
		return appendMap(dst, v)
	case writer:
		return appendObject(dst, v)
	}

	raw, _ := jsonscan.Marshal(v)
	return append(dst, raw...)
}

// writer is a Go value that is written as an object.
type writer interface{ members(*object) }

func appendObject(dst []byte, v writer) []byte {
	o := object{dst, true}
	v.members(&o)

	return o.close()
}

func appendList[T any](dst []byte, list []T) []byte {
	dst = append(dst, '[')
	for i, v := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendJSON(dst, v)
	}

	return append(dst, ']')
}

func appendMap[T any](dst []byte, members map[string]T) []byte {
	o := object{dst, true}
	for _, name := range sortedNames(members) {
		o.add(name, members[name])
	}

	return o.close()
}

func sortedNames[T any](members map[string]T) []string {
	names := slices.AppendSeq(make([]string, 0, len(members)), maps.Keys(members))
	slices.Sort(names)

	return names
}

// object is a JSON object that is being written.
type object struct {
	b     []byte
	empty bool // so far
}

// add adds a member.
func (o *object) add(name string, v any) {
	o.name(name)
	o.b = appendJSON(o.b, v)
}

// name begins a member.
func (o *object) name(name string) {
	opener := byte(',')
	if o.empty {
		opener, o.empty = '{', false
	}
	o.b = append(jsonscan.AppendString(append(o.b, opener), name), ':')
}

// addText adds a member unless the text is empty.
func (o *object) addText(name, text string) {
	if text != "" {
		o.name(name)
		o.b = jsonscan.AppendString(o.b, text)
	}
}

// close ends the object, and returns what it was appended to.
func (o *object) close() []byte {
	if o.empty {
		return append(o.b, "{}"...)
	}

	return append(o.b, '}')
}
