package otlp

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"

	"promptspool/api/wire/jsonscan"
	"promptspool/api/wire/secrets"
)

// jsonAttributes returns attributes as the elements of a list. They are a list of pairs,
// or from some senders an object.
func jsonAttributes(value json.RawMessage) []byte {
	var b []byte
	switch value[0] {
	case '[':
		b, _ = jsonPairs(nil, value, 0, 1)
	case '{':
		b, _ = plainMembers(nil, value, 0, 1)
	}

	return b
}

// The functions below append the value that begins at json[i], and return the index
// behind it. They go through a value once, however deep it is nested.

// jsonPairs appends the KeyValues of an array to a list.
func jsonPairs(b, json []byte, i, level int) ([]byte, int) {
	c := jsonscan.Enter(json, i)
	for c.Next() {
		if json[c.At] != '{' {
			c.At = jsonscan.SkipValue(json, c.At)
			continue
		}
		b, c.At = jsonPair(b, json, c.At, level)
	}

	return b, c.At
}

// jsonPair appends a KeyValue to a list. Its members stay in their order, so that no value
// has to be looked at twice.
func jsonPair(b, json []byte, i, level int) ([]byte, int) {
	o := begin(appendComma(b))
	hasKey, hasValue, secret := false, false, false
	valueAt, valueEnd := 0, 0 // in what is written

	c := jsonscan.Enter(json, i)
	for c.Next() {
		switch name := string(c.Name); {
		case name == `"key"` && !hasKey:
			end := jsonscan.SkipValue(json, c.At)
			key := jsonText(json[c.At:end])
			o.textAlways("key", key)
			hasKey, c.At, secret = true, end, secrets.IsAttribute(key)
		case name == `"value"` && !hasValue:
			o.member("value")
			valueAt = len(o.b)
			o.b, c.At = jsonValue(o.b, json, c.At, level)
			hasValue, valueEnd = true, len(o.b)
		default:
			// Unknown to us, or there already: of members with one name the first counts.
			c.At = jsonscan.SkipValue(json, c.At)
		}
	}

	// The key may have come behind its value.
	if secret && hasValue {
		rest := string(o.b[valueEnd:])
		o.b = append(append(o.b[:valueAt], maskedValue...), rest...)
	}

	// Both are always there, as in what was sent in protobuf.
	if !hasKey {
		o.textAlways("key", nil)
	}
	if !hasValue {
		o.raw("value", []byte(`{}`))
	}

	return o.end(), c.At
}

// jsonValue appends an AnyValue. Of several members the first counts that is not null.
func jsonValue(b, json []byte, i, level int) ([]byte, int) {
	// Deeper ones are JSON within a text, which readers need not follow.
	if level == plainLevelsMax {
		inner, end := jsonValue(nil, json, i, level+1)
		return appendNested(b, inner), end
	}
	if json[i] != '{' || !isAnyValue(json, i) {
		return plainValue(b, json, i, level)
	}

	done := false
	c := jsonscan.Enter(json, i)
	for c.Next() {
		// A double that is no number is written as null.
		if done || json[c.At] == 'n' && string(c.Name) != `"doubleValue"` {
			c.At = jsonscan.SkipValue(json, c.At)
			continue
		}
		b, c.At, done = jsonMember(b, json, &c, level)
	}
	if !done {
		b = append(b, `{}`...)
	}

	return b, c.At
}

// jsonMember appends the AnyValue that has this member. ok is false if OTLP has no such
// member.
func jsonMember(b, json []byte, c *jsonscan.Cursor, level int) (_ []byte, end int, ok bool) {
	name := camelCase(jsonscan.Unquote(c.Name))
	switch name {
	case "arrayValue":
		b, end = jsonValues(b, json, c.At, level, `{"arrayValue":{"values":[`, plainElements)
		return b, end, true
	case "kvlistValue":
		b, end = jsonValues(b, json, c.At, level, `{"kvlistValue":{"values":[`, jsonPairs)
		return b, end, true
	}

	end = jsonscan.SkipValue(json, c.At)
	raw := json[c.At:end]
	switch name {
	case "stringValue":
		return appendString(b, jsonText(raw)), end, true
	case "boolValue":
		return appendJSONBool(b, raw), end, true
	case "intValue":
		return appendJSONInt(b, raw), end, true
	case "doubleValue":
		return appendJSONDouble(b, raw), end, true
	case "bytesValue":
		return appendJSONBytes(b, raw), end, true
	}

	return b, end, false
}

// jsonValues appends an ArrayValue or a KeyValueList: an object with a list called values.
func jsonValues(
	b, json []byte, i, level int, opening string,
	elements func(b, json []byte, i, level int) ([]byte, int),
) ([]byte, int) {
	b = append(b, opening...)
	if json[i] == '[' { // without the object around it
		b, i = elements(b, json, i, level+1)
		return append(b, `]}}`...), i
	}
	if json[i] != '{' {
		return append(b, `]}}`...), jsonscan.SkipValue(json, i)
	}

	// Whatever else the object has is skipped, so that the index behind it is right.
	c := jsonscan.Enter(json, i)
	for done := false; c.Next(); {
		if done || string(c.Name) != `"values"` || json[c.At] != '[' {
			c.At = jsonscan.SkipValue(json, c.At)
			continue
		}
		b, c.At = elements(b, json, c.At, level+1)
		done = true
	}

	return append(b, `]}}`...), c.At
}

// plainElements appends the elements of an array to a list.
func plainElements(b, json []byte, i, level int) ([]byte, int) {
	c := jsonscan.Enter(json, i)
	for c.Next() {
		b, c.At = jsonValue(appendComma(b), json, c.At, level)
	}

	return b, c.At
}

// plainMembers appends the members of an object to a list, as KeyValues.
func plainMembers(b, json []byte, i, level int) ([]byte, int) {
	c := jsonscan.Enter(json, i)
	for c.Next() {
		o := begin(appendComma(b))
		key := jsonText(c.Name)
		o.textAlways("key", key)
		o.member("value")
		if secrets.IsAttribute(key) {
			o.b, c.At = append(o.b, maskedValue...), jsonscan.SkipValue(json, c.At)
		} else {
			o.b, c.At = jsonValue(o.b, json, c.At, level)
		}
		b = o.end()
	}

	return b, c.At
}

// isAnyValue reports whether an object is empty, or begins with a member of an AnyValue.
func isAnyValue(json []byte, i int) bool {
	c := jsonscan.Enter(json, i)
	if !c.Next() {
		return true
	}
	// Its first member decides: to look at all of them would cost each level of nesting anew.
	switch camelCase(jsonscan.Unquote(c.Name)) {
	case "stringValue", "boolValue", "intValue", "doubleValue", "arrayValue", "kvlistValue", "bytesValue":
		return true
	}

	return false
}

// plainValue appends a value that is written without an AnyValue around it.
func plainValue(b, json []byte, i, level int) ([]byte, int) {
	switch json[i] {
	case '[':
		b, i = plainElements(append(b, `{"arrayValue":{"values":[`...), json, i, level+1)
		return append(b, `]}}`...), i
	case '{':
		b, i = plainMembers(append(b, `{"kvlistValue":{"values":[`...), json, i, level+1)
		return append(b, `]}}`...), i
	}

	end := jsonscan.SkipValue(json, i)
	raw := json[i:end]
	switch raw[0] {
	case '"':
		b = appendString(b, jsonText(raw))
	case 't', 'f':
		b = appendBool(b, raw[0] == 't')
	case 'n':
		b = append(b, `{}`...)
	default:
		// Kinds of numbers are told apart by how they are written, as JSON has one only.
		if bytes.ContainsAny(raw, ".eE") {
			b = appendJSONDouble(b, raw)
		} else {
			b = appendJSONInt(b, raw)
		}
	}

	return b, end
}

func appendJSONBool(b []byte, raw json.RawMessage) []byte {
	// Some senders put it between quotes.
	text := jsonText(raw)
	if value := string(text); value == "true" || value == "false" {
		return appendBool(b, value == "true")
	}
	return appendMalformed(b, text)
}

// appendJSONInt appends an integer, which some senders write like 1.0 or 1e300.
func appendJSONInt(b []byte, raw json.RawMessage) []byte {
	text := jsonText(raw)
	if n, err := strconv.ParseInt(string(text), 10, 64); err == nil {
		return appendInt(b, n)
	}

	f, err := strconv.ParseFloat(string(text), 64)
	switch {
	case err != nil:
		return appendMalformed(b, text)
	case f == math.Trunc(f) && -1<<63 <= f && f < 1<<63:
		return appendInt(b, int64(f))
	}

	return appendDouble(b, f)
}

func appendJSONDouble(b []byte, raw json.RawMessage) []byte {
	if isNull(raw) {
		return append(b, `{"doubleValue":null}`...)
	}

	text := jsonText(raw)
	f, err := strconv.ParseFloat(string(text), 64)
	if err != nil && !math.IsInf(f, 0) { // beyond what a double holds is infinite
		return appendMalformed(b, text)
	}

	return appendDouble(b, f)
}

func appendJSONBytes(b []byte, raw json.RawMessage) []byte {
	text := jsonText(raw)
	value, err := decodeBase64(text)
	if err != nil {
		return appendMalformed(b, text)
	}
	return appendBytes(b, value)
}
