package otlp

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"iter"
	"math"
	"strconv"
	"unicode/utf8"

	"promptspool/api/wire"
	"promptspool/api/wire/jsonscan"
)

// object writes a JSON object, and leaves out members that are empty or zero.
type object struct {
	b     []byte
	comma bool
}

// begin opens an object behind b.
func begin(b []byte) object { return object{b: append(b, '{')} }

// end closes the object and returns all bytes.
func (o *object) end() []byte { return append(o.b, '}') }

// member writes a name, behind which the caller appends the value to o.b.
func (o *object) member(name string) {
	if o.comma {
		o.b = append(o.b, ',')
	}
	o.comma = true
	o.b = append(append(append(o.b, '"'), name...), `":`...)
}

// text writes a text, with U+FFFD for what is not UTF-8. Its bytes are not kept in any other form:
// nothing would find the secrets in it.
func (o *object) text(name string, text []byte) {
	if len(text) > 0 {
		o.textAlways(name, text)
	}
}

// textAlways is text for a member that is written even if it is empty.
func (o *object) textAlways(name string, text []byte) {
	o.member(name)
	o.b = appendText(o.b, text)
}

// textStep is how much of a text is written at once.
const textStep = 64 << 10

// appendText appends a text as a JSON string. Beyond the largest body it stops, because the span
// is going to be refused: escaped, a text may take six times its memory.
func appendText(b, text []byte) []byte {
	b = append(b, '"')
	for len(text) > 0 && len(b) <= wire.BodyBytesMax {
		n := min(textStep, len(text))
		for range utf8.UTFMax - 1 { // not within a character
			if n < len(text) && !utf8.RuneStart(text[n]) {
				n--
			}
		}
		b = jsonscan.AppendEscaped(b, string(text[:n]))
		text = text[n:]
	}

	return append(b, '"')
}

// number writes a number as a JSON number.
func (o *object) number(name string, n uint64) {
	if n != 0 {
		o.member(name)
		o.b = strconv.AppendUint(o.b, n, 10)
	}
}

// nanos writes a time, as a string like every 64-bit number of OTLP/JSON.
func (o *object) nanos(name string, n uint64) {
	if n != 0 {
		o.member(name)
		o.b = append(strconv.AppendUint(append(o.b, '"'), n, 10), '"')
	}
}

// raw writes JSON as it is.
func (o *object) raw(name string, value []byte) {
	if len(value) > 0 {
		o.member(name)
		o.b = append(o.b, value...)
	}
}

// list writes the elements of a list, which is left out if it has none.
func (o *object) list(name string, elements []byte) {
	if len(elements) > 0 {
		o.member(name)
		o.b = append(append(append(o.b, '['), elements...), ']')
	}
}

// appendBase64 appends bytes as a JSON string.
func appendBase64(b, data []byte) []byte {
	b = append(b, '"')
	b = base64.StdEncoding.AppendEncode(b, data)
	return append(b, '"')
}

// appendString appends the value of a text.
func appendString(b, text []byte) []byte {
	if !utf8.Valid(text) {
		return appendMalformed(b, text)
	}

	o := begin(b)
	o.textAlways("stringValue", text)

	return o.end()
}

// appendMalformed appends a text that is not of the type it should be, or not UTF-8.
func appendMalformed(b, text []byte) []byte {
	o := begin(b)
	o.textAlways("stringValue", text)
	o.raw("malformed", []byte("true"))
	return o.end()
}

// appendNested appends a value that is too deep, as the text of its JSON.
func appendNested(b, value []byte) []byte {
	o := begin(b)
	o.textAlways("stringValue", value)
	o.raw("nested", []byte("true"))
	return o.end()
}

func appendBool(b []byte, value bool) []byte {
	return append(strconv.AppendBool(append(b, `{"boolValue":`...), value), '}')
}

func appendInt(b []byte, value int64) []byte {
	return append(strconv.AppendInt(append(b, `{"intValue":"`...), value, 10), `"}`...)
}

func appendDouble(b []byte, value float64) []byte {
	b = append(b, `{"doubleValue":`...)
	switch {
	case math.IsNaN(value):
		b = append(b, `"NaN"`...)
	case math.IsInf(value, 1):
		b = append(b, `"Infinity"`...)
	case math.IsInf(value, -1):
		b = append(b, `"-Infinity"`...)
	default:
		b = strconv.AppendFloat(b, value, 'g', -1, 64)
	}

	return append(b, '}')
}

func appendBytes(b, value []byte) []byte {
	return append(appendBase64(append(b, `{"bytesValue":`...), value), '}')
}

// appendComma appends a comma unless b is empty or an opening bracket is right before it.
func appendComma(b []byte) []byte {
	if n := len(b); n > 0 && b[n-1] != '[' {
		b = append(b, ',')
	}
	return b
}

// maskedValue stands for the value of a credential.
const maskedValue = `{"stringValue":"[masked]"}`

// isZero reports whether all bytes are zero.
func isZero(id []byte) bool { return len(bytes.Trim(id, "\x00")) == 0 }

// written yields the keys and values of attributes that were written as the elements of a
// list.
func written(attributes []byte) iter.Seq2[[]byte, json.RawMessage] {
	return func(yield func(key []byte, value json.RawMessage) bool) {
		for i := 0; i < len(attributes); i++ { // past the comma
			var key []byte
			var value json.RawMessage

			c := jsonscan.Enter(attributes, i)
			for c.Next() {
				start := c.At
				c.At = jsonscan.SkipValue(attributes, start)
				if string(c.Name) == `"key"` {
					key = jsonscan.UnquoteBytes(attributes[start:c.At])
				} else {
					value = attributes[start:c.At]
				}
			}
			if !yield(key, value) {
				return
			}
			i = c.At
		}
	}
}
