package otlp

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"strings"

	"promptspool/api/wire"
	"promptspool/api/wire/jsonscan"
	"promptspool/api/wire/secrets"
)

// jsonLevelsMax is how deep brackets of a request may nest. A value's own bound, which refuses only its
// span, takes less than 500 of them.
const jsonLevelsMax = 20_000

// jsonRequest checks a request, such as an ExportTraceServiceRequest. It is read like a message of
// protobuf: what is not of the type that OTLP defines does not exist.
func jsonRequest(body []byte) (value, error) {
	i := jsonscan.SkipSpace(body, 0)
	end := jsonscan.CheckValue(body, i, jsonLevelsMax)
	switch {
	case end < 0 || jsonscan.SkipSpace(body, end) < len(body):
		return value{}, fmt.Errorf("%w: it is not valid JSON, or nested too deep", ErrMalformed)
	case body[i] != '{':
		return value{}, fmt.Errorf("%w: it is JSON, but not an object", ErrMalformed)
	}

	return value{json: body[i:end]}, nil
}

// eachMember calls fn with the members of an object, in lowerCamelCase and without those
// that are null. In anything else there are none.
func eachMember(object []byte, fn func(name, value []byte) error) error {
	if len(object) == 0 || object[0] != '{' {
		return nil
	}

	for c := jsonscan.Enter(object, 0); c.Next(); {
		start := c.At
		c.At = jsonscan.SkipValue(object, start)
		value := object[start:c.At:c.At]
		// A member that is not set is null.
		if isNull(value) {
			continue
		}
		if err := fn(camelCase(c.Name), value); err != nil {
			return err
		}
	}

	return nil
}

func isNull(value []byte) bool { return string(value) == "null" }

// nameMax is longer than the name of any member that OTLP defines.
const nameMax = 40

// camelCase returns the name of a member in lowerCamelCase, which some senders write in snake_case.
// Of a longer one than OTLP defines it returns nothing.
func camelCase(quoted []byte) []byte {
	// To resolve a long one, and to join its parts, would take memory and quadratic time.
	if len(quoted) > escapeBytes*nameMax {
		return nil
	}
	name := jsonscan.UnquoteBytes(quoted)
	if len(name) > nameMax || bytes.IndexByte(name, '_') < 0 {
		return name
	}

	first, rest, _ := strings.Cut(string(name), "_")
	for part := range strings.SplitSeq(rest, "_") {
		if part != "" {
			first += strings.ToUpper(part[:1]) + part[1:]
		}
	}

	return []byte(first)
}

// jsonText returns a string's text, and of anything else its JSON.
func jsonText(value []byte) text {
	if value[0] != '"' {
		return text{b: value}
	}
	return text{b: value[1 : len(value)-1], escaped: true}
}

// wordMax is the length of the longest text that is read as a number, an id or a name of an enum.
const wordMax = 512

// jsonWord is jsonText of a text that has at most wordMax bytes. Of another one nothing is read.
func jsonWord(value []byte) []byte {
	t := jsonText(value)
	if len(t.b) > wordMax {
		return nil
	}
	return t.beginning(wordMax)
}

// jsonUint returns a number that is sent as a number or a string, or the nanoseconds since 1970 of an
// ISO 8601 time; 0 if it is none of these.
func jsonUint(value []byte) uint64 {
	word := jsonWord(value)
	if n, err := strconv.ParseUint(string(word), 10, 64); err == nil {
		return n
	}
	// Some write 64 bits as a double, which loses the last digits: better than the time.
	f, err := jsonFloat(word)
	if at, ok := wire.ParseTime(string(word)); ok && err != nil {
		return uint64(max(at.UnixNano(), 0))
	}
	if err != nil || !(0 <= f && f < math.MaxUint64) {
		return 0
	}

	return uint64(f)
}

// jsonID decodes an id of n bytes from hexadecimal digits or base64; nil if it is neither.
func jsonID(value []byte, n int) []byte {
	// OTLP wants digits; what turns protobuf into JSON by its own rules writes base64.
	word := jsonWord(value)
	if len(word) == 2*n {
		id, err := hex.AppendDecode(nil, word)
		if err == nil {
			return id
		}
	}

	id, err := decodeBase64(word)
	if err != nil || len(id) != n {
		return nil
	}

	return id
}

// jsonShownID returns an id as it is written: as it was sent, if it is none.
func jsonShownID(value []byte, n int) []byte {
	if id := jsonID(value, n); id != nil {
		return shownID(id)
	}

	word := jsonWord(value)
	if len(word) > shownMax {
		return nil
	}

	return word
}

// decodeBase64 decodes either alphabet, padded or not.
func decodeBase64(text []byte) ([]byte, error) {
	// Both forms are about: of protobuf's own JSON, and of URLs.
	text = bytes.TrimRight(text, "=")
	if bytes.ContainsAny(text, "-_") {
		return base64.RawURLEncoding.AppendDecode(nil, text)
	}
	return base64.RawStdEncoding.AppendDecode(nil, text)
}

// The enums of a span, by the names that some senders write.
var (
	spanKinds   = []string{"UNSPECIFIED", "INTERNAL", "SERVER", "CLIENT", "PRODUCER", "CONSUMER"}
	statusCodes = []string{"UNSET", "OK", "ERROR"}
)

// jsonEnum returns an enum's value as JSON, nothing for zero. A name that is not known
// stays.
func jsonEnum(value []byte, prefix string, names []string) []byte {
	word := jsonWord(value)
	text := string(word)
	if n, err := jsonFloat(word); err == nil && n == math.Trunc(n) && math.Abs(n) < math.MaxInt32 {
		return enum(uint64(int64(n)))
	}

	short := strings.TrimPrefix(text, prefix)
	for n, name := range names {
		if short == name {
			return enum(uint64(n))
		}
	}
	if text == "" || len(text) > shownMax {
		return nil
	}

	return jsonscan.AppendString(nil, text)
}

// writeAttributes writes attributes as the elements of a list. In JSON they are a list of pairs, or
// from some senders an object.
func writeAttributes(o *output, v value) error {
	switch {
	case v.json == nil:
		return protobufElements(o, v.within, 1, v.number, protobufPair)
	case v.json[0] == '[':
		jsonPairs(o, v.json, 0, 1)
	case v.json[0] == '{':
		plainMembers(o, v.json, 0, 1)
	}

	return nil
}

// writeBody writes the body of a LogRecord. Without one it has none; an empty one is a value that is
// not set.
func writeBody(o *output, v value) error {
	if v.json == nil {
		return protobufValue(o, v.bytes, 1)
	}
	jsonValue(o, v.json, 0, 1)

	return nil
}

// The functions below write the value that begins at json[i], and return the index after it;
// -1 if the output is full. They go through a value once, however deep it is nested.

// stopped is the index after a value that was not written to its end. A cursor ends there.
const stopped = -1

// jsonPairs writes the KeyValues of an array.
func jsonPairs(o *output, json []byte, i, level int) int {
	c := jsonscan.Enter(json, i)
	for c.Next() {
		switch {
		case o.full:
			return stopped
		case json[c.At] == '{':
			c.At = jsonPair(o, json, c.At, level)
		default:
			c.At = jsonscan.SkipValue(json, c.At)
		}
	}

	return c.At
}

// jsonPair writes a KeyValue, unless it has neither a key nor a value. Both are always written, as if
// they were sent in protobuf.
func jsonPair(o *output, json []byte, i, level int) int {
	key, ok := jsonscan.Lookup(json[i:], "key")
	if !ok {
		key = []byte(`""`)
	}

	before := len(o.b)
	o.begin()
	o.member("key")
	o.string(jsonText(key))
	o.member("value")
	done := false
	c := jsonscan.Enter(json, i)
	for c.Next() {
		if done || string(c.Name) != `"value"` {
			c.At = jsonscan.SkipValue(json, c.At)
			continue
		}
		done = true
		// Masked before it is ever written: what the value looks like says nothing.
		if isSecret(key) {
			o.put(maskedValue)
			c.At = jsonscan.SkipValue(json, c.At)
		} else {
			c.At = jsonValue(o, json, c.At, level)
		}
	}
	if !done {
		o.put(`{}`)
	}
	o.endPair(before)

	return c.At
}

// isSecret reports whether a key, as JSON, names a credential. No such key is longer than a word.
func isSecret(key []byte) bool {
	word := jsonWord(key)
	return secrets.IsAttribute(word)
}

// jsonValue writes an AnyValue. Of several members the first counts that is not null.
func jsonValue(o *output, json []byte, i, level int) int {
	if level > levelsMax {
		o.fail(errDeep)
		return jsonscan.SkipValue(json, i)
	}
	if json[i] != '{' || !isAnyValue(json, i) {
		return plainValue(o, json, i, level)
	}

	done := false
	c := jsonscan.Enter(json, i)
	for c.Next() {
		// A double that is not a number is written as null.
		if done || json[c.At] == 'n' && string(c.Name) != `"doubleValue"` {
			c.At = jsonscan.SkipValue(json, c.At)
			continue
		}
		c.At, done = jsonMember(o, json, &c, level)
	}
	if !done {
		o.put(`{}`)
	}

	return c.At
}

// jsonMember writes the AnyValue that has this member. ok is false if OTLP has no such member.
func jsonMember(o *output, json []byte, c *jsonscan.Cursor, level int) (end int, ok bool) {
	name := camelCase(c.Name)
	switch string(name) {
	case "arrayValue":
		return jsonValues(o, json, c.At, level, `{"arrayValue":{"values":[`, plainElements), true
	case "kvlistValue":
		return jsonValues(o, json, c.At, level, `{"kvlistValue":{"values":[`, jsonPairs), true
	}

	end = jsonscan.SkipValue(json, c.At)
	raw := json[c.At:end]
	switch string(name) {
	case "stringValue":
		o.stringValue(jsonText(raw))
	case "boolValue":
		jsonBool(o, raw)
	case "intValue":
		jsonInt(o, raw)
	case "doubleValue":
		jsonDouble(o, raw)
	case "bytesValue":
		o.put(`{"bytesValue":`)
		o.string(jsonText(raw))
		o.put("}")
	default:
		return end, false
	}

	return end, true
}

// jsonValues writes an ArrayValue or a KeyValueList: an object with a list called values.
func jsonValues(
	o *output, json []byte, i, level int, opening string,
	elements func(o *output, json []byte, i, level int) int,
) (end int) {
	o.put(opening)
	switch json[i] {
	// It is without the object around it.
	case '[':
		end = elements(o, json, i, level+1)
	case '{':
		// Whatever else the object has is skipped, so that the index after it is right.
		c := jsonscan.Enter(json, i)
		for done := false; c.Next(); {
			if done || string(c.Name) != `"values"` || json[c.At] != '[' {
				c.At = jsonscan.SkipValue(json, c.At)
				continue
			}
			c.At = elements(o, json, c.At, level+1)
			done = true
		}
		end = c.At
	default:
		end = jsonscan.SkipValue(json, i)
	}
	o.put(`]}}`)

	return end
}

// plainElements writes the elements of an array.
func plainElements(o *output, json []byte, i, level int) int {
	c := jsonscan.Enter(json, i)
	for c.Next() {
		if o.full {
			return stopped
		}
		o.comma()
		c.At = jsonValue(o, json, c.At, level)
	}

	return c.At
}

// plainMembers writes the members of an object, as KeyValues.
func plainMembers(o *output, json []byte, i, level int) int {
	c := jsonscan.Enter(json, i)
	for c.Next() {
		if o.full {
			return stopped
		}
		o.begin()
		o.member("key")
		o.string(jsonText(c.Name))
		o.member("value")
		if isSecret(c.Name) {
			o.put(maskedValue)
			c.At = jsonscan.SkipValue(json, c.At)
		} else {
			c.At = jsonValue(o, json, c.At, level)
		}
		o.end()
	}

	return c.At
}

// isAnyValue reports whether an object is empty, or begins with a member of an AnyValue.
func isAnyValue(json []byte, i int) bool {
	c := jsonscan.Enter(json, i)
	if !c.Next() {
		return true
	}
	// Its first member decides: to look at all of them would cost each level of nesting again.
	switch string(camelCase(c.Name)) {
	case "stringValue", "boolValue", "intValue", "doubleValue", "arrayValue", "kvlistValue", "bytesValue":
		return true
	}

	return false
}

// plainValue writes a value that is sent without an AnyValue around it.
func plainValue(o *output, json []byte, i, level int) (end int) {
	switch json[i] {
	case '[':
		o.put(`{"arrayValue":{"values":[`)
		end = plainElements(o, json, i, level+1)
		o.put(`]}}`)
		return end
	case '{':
		o.put(`{"kvlistValue":{"values":[`)
		end = plainMembers(o, json, i, level+1)
		o.put(`]}}`)
		return end
	}

	end = jsonscan.SkipValue(json, i)
	raw := json[i:end]
	switch raw[0] {
	case '"':
		o.stringValue(jsonText(raw))
	case 't', 'f':
		o.boolValue(raw[0] == 't')
	case 'n':
		o.put(`{}`)
	default:
		// Kinds of numbers are told apart by how they are written, as JSON has one only.
		if bytes.ContainsAny(raw, ".eE") {
			jsonDouble(o, raw)
		} else {
			jsonInt(o, raw)
		}
	}

	return end
}

func jsonBool(o *output, raw []byte) {
	// Some senders put it between quotes.
	word := jsonWord(raw)
	if value := string(word); value == "true" || value == "false" {
		o.boolValue(value == "true")
		return
	}
	o.stringValue(jsonText(raw))
}

// jsonInt writes an integer, which some senders write like 1.0 or 1e300.
func jsonInt(o *output, raw []byte) {
	word := jsonWord(raw)
	if n, err := strconv.ParseInt(string(word), 10, 64); err == nil {
		o.intValue(n)
		return
	}

	f, err := jsonFloat(word)
	switch {
	case err != nil:
		o.stringValue(jsonText(raw))
	case f == math.Trunc(f) && -1<<63 <= f && f < 1<<63:
		o.intValue(int64(f))
	default:
		o.doubleValue(f)
	}
}

// jsonFloat returns a number, which may be NaN or infinite.
func jsonFloat(word []byte) (float64, error) {
	if len(word) > 0 && jsonscan.Valid(word) {
		return jsonscan.Float(string(word))
	}

	return strconv.ParseFloat(string(word), 64)
}

func jsonDouble(o *output, raw []byte) {
	if isNull(raw) {
		o.put(`{"doubleValue":null}`)
		return
	}

	word := jsonWord(raw)
	f, err := jsonFloat(word)
	// Beyond what a double holds is infinite.
	if err != nil && !math.IsInf(f, 0) {
		o.stringValue(jsonText(raw))
		return
	}
	o.doubleValue(f)
}
