package otlp

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"iter"
	"math"
	"strconv"

	"promptspool/api/wire/jsonscan"
)

// output is the JSON that is being written. It never takes more than max bytes: it is
// full once more was written, and keeps nothing from then on.
//
// Everything is written straight into it. A list that was collected first could take many times the
// bytes of the request before its length is known.
type output struct {
	b     []byte
	max   int
	full  bool
	fault error // the first one of what was written
}

const (
	outputBytes = 64 << 10 // of a new output; what is longer is not copied for its receiver
	largeOutput = 4 << 20  // a larger one has space for everything that it may take
)

// space makes space for n more bytes, and reports whether they may be written.
func (o *output) space(n int) bool { return !o.full && (len(o.b)+n <= cap(o.b) || o.grow(n)) }

func (o *output) grow(n int) bool {
	need := len(o.b) + n
	if need > o.max {
		o.full = true
		return false
	}

	// Of a large buffer only the pages that are written take memory. Two of them, while one is
	// copied into the next, would take more.
	size := max(need, 2*cap(o.b), outputBytes)
	if size > largeOutput {
		size = o.max
	}
	o.b = append(make([]byte, 0, min(size, o.max)), o.b...)

	return true
}

// cut takes back what was written after the first n bytes.
func (o *output) cut(n int) { o.b, o.full, o.fault = o.b[:n], false, nil }

// fail notes what is wrong with the source of a value, if anything. The rest is written nevertheless.
func (o *output) fail(err error) {
	if o.fault == nil {
		o.fault = err
	}
}

// body returns the bytes written so far, for its receiver to own. The first kept bytes
// stay written.
func (o *output) body(kept int) []byte {
	if len(o.b) <= outputBytes {
		return append(make([]byte, 0, len(o.b)), o.b...)
	}

	body := o.b
	o.b = append(make([]byte, 0, max(kept, outputBytes)), body[:kept]...)

	return body
}

// put writes JSON as it is.
func (o *output) put(json string) {
	if o.space(len(json)) {
		o.b = append(o.b, json...)
	}
}

// begin opens an object or, after another one, the next object of a list.
func (o *output) begin() {
	o.comma()
	o.put("{")
}

// end closes the object.
func (o *output) end() { o.put("}") }

// comma writes a comma unless a bracket was opened just before.
func (o *output) comma() {
	if n := len(o.b); n > 0 && o.b[n-1] != '{' && o.b[n-1] != '[' && o.b[n-1] != ':' {
		o.put(",")
	}
}

// member writes a name, after which the caller writes the value.
func (o *output) member(name string) {
	o.comma()
	if o.space(len(name) + 3) {
		o.b = append(append(append(o.b, '"'), name...), `":`...)
	}
}

// text writes a text, unless it is empty. U+FFFD stands for what is not UTF-8: its bytes are not
// kept in any other form, because nothing would find the secrets in it.
func (o *output) text(name string, t text) {
	if !t.isEmpty() {
		o.member(name)
		o.string(t)
	}
}

// textStep is how much of a text is written at once.
const textStep = 16 << 10

// textMost is how many times its length a text may take when it is escaped.
const textMost = 6

// string writes a text as a JSON string.
func (o *output) string(t text) {
	o.put(`"`)
	for !t.isEmpty() {
		step := t.next(textStep)
		if !o.space(textMost * len(step)) {
			break
		}
		o.b = jsonscan.AppendEscaped(o.b, step)
	}
	o.put(`"`)
}

// number writes a number as a JSON number, unless it is zero.
func (o *output) number(name string, n uint64) {
	if n != 0 {
		o.member(name)
		o.digits(n)
	}
}

// nanos writes a time, as a string like every 64-bit number of OTLP/JSON.
func (o *output) nanos(name string, n uint64) {
	if n != 0 {
		o.member(name)
		o.put(`"`)
		o.digits(n)
		o.put(`"`)
	}
}

const digitsMax = 24 // of a number, its sign and its exponent

func (o *output) digits(n uint64) {
	if o.space(digitsMax) {
		o.b = strconv.AppendUint(o.b, n, 10)
	}
}

// raw writes JSON as it is, unless there is none.
func (o *output) raw(name string, value []byte) {
	if len(value) == 0 {
		return
	}
	o.member(name)
	if o.space(len(value)) {
		o.b = append(o.b, value...)
	}
}

// id writes the hexadecimal digits of an id.
func (o *output) id(name string, id []byte) {
	o.member(name)
	if o.space(hex.EncodedLen(len(id)) + 2) {
		o.b = append(hex.AppendEncode(append(o.b, '"'), id), '"')
	}
}

// list is the source of a list or of one value, and what writes it. The error is that of the source.
type list struct {
	value
	write func(o *output, v value) error
}

// value writes one value, unless there is none.
func (o *output) value(name string, l list) place {
	if l.write == nil {
		return place{}
	}
	o.member(name)
	begin := len(o.b)
	o.fail(l.write(o, l.value))

	return place{begin, len(o.b)}
}

// place is where a list or a value was written.
type place struct{ from, end int }

// of returns the list, empty if it was left out.
func (p place) of(written []byte) []byte { return written[p.from:p.end] }

// list writes the elements of a list, which is left out if it has none.
func (o *output) list(name string, l list) place {
	if l.write == nil {
		return place{}
	}

	before := len(o.b)
	o.member(name)
	o.put("[")
	begin := len(o.b)
	o.fail(l.write(o, l.value))
	if len(o.b) == begin {
		o.b = o.b[:before]
		return place{}
	}
	o.put("]")

	return place{begin - 1, len(o.b)}
}

// noPair is a KeyValue of which nothing is set. It has nothing to keep.
const noPair = `{"key":"","value":{}}`

// endPair closes the KeyValue that begins at o.b[begin], and takes it back if it is empty.
func (o *output) endPair(begin int) {
	o.end()
	if n := len(o.b) - len(noPair); n >= begin && n <= begin+1 && string(o.b[n:]) == noPair {
		o.b = o.b[:begin]
	}
}

// stringValue writes the value of a text.
func (o *output) stringValue(t text) {
	o.put(`{"stringValue":`)
	o.string(t)
	o.put("}")
}

func (o *output) boolValue(value bool) {
	if value {
		o.put(`{"boolValue":true}`)
	} else {
		o.put(`{"boolValue":false}`)
	}
}

func (o *output) intValue(value int64) {
	o.put(`{"intValue":"`)
	if o.space(digitsMax) {
		o.b = strconv.AppendInt(o.b, value, 10)
	}
	o.put(`"}`)
}

func (o *output) doubleValue(value float64) {
	o.put(`{"doubleValue":`)
	switch {
	case math.IsNaN(value):
		o.put(`"NaN"`)
	case math.IsInf(value, 1):
		o.put(`"Infinity"`)
	case math.IsInf(value, -1):
		o.put(`"-Infinity"`)
	case o.space(digitsMax):
		o.b = strconv.AppendFloat(o.b, value, 'g', -1, 64)
	}
	o.put("}")
}

func (o *output) bytesValue(value []byte) {
	o.put(`{"bytesValue":"`)
	if o.space(base64.StdEncoding.EncodedLen(len(value))) {
		o.b = base64.StdEncoding.AppendEncode(o.b, value)
	}
	o.put(`"}`)
}

// maskedValue stands for the value of a credential.
const maskedValue = `{"stringValue":"[masked]"}`

// written yields the keys and values of attributes that were written.
func written(attributes []byte) iter.Seq2[[]byte, json.RawMessage] {
	return func(yield func(key []byte, value json.RawMessage) bool) {
		if len(attributes) == 0 {
			return
		}

		for _, pair := range jsonscan.Elements(attributes) {
			var key []byte
			var value json.RawMessage
			for c := jsonscan.Enter(pair, 0); c.Next(); {
				start := c.At
				c.At = jsonscan.SkipValue(pair, start)
				if string(c.Name) == `"key"` {
					key = jsonscan.UnquoteBytes(pair[start:c.At])
				} else {
					value = pair[start:c.At]
				}
			}
			if !yield(key, value) {
				return
			}
		}
	}
}
