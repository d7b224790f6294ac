package otlp

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"promptspool/api/wire/jsonscan"
)

// jsonLevelsMax is how deep brackets of a request may nest. A level of a value takes up to
// four.
const jsonLevelsMax = 4*levelsMax + 32

// jsonRequest reads a request, such as an ExportTraceServiceRequest. It is read like a
// message of protobuf: what is not of the type that OTLP defines does not exist.
func (d *decoding) jsonRequest(body []byte) error {
	return eachJSON(body, func(name, value []byte) error {
		if string(name) != d.signal.resources {
			return nil
		}
		return eachElement(value, d.jsonResource)
	})
}

// eachJSON is eachMember for a whole request.
func eachJSON(body []byte, fn func(name, value []byte) error) error {
	i := jsonscan.SkipSpace(body, 0)
	end := jsonscan.CheckValue(body, i, jsonLevelsMax)
	switch {
	case end < 0 || jsonscan.SkipSpace(body, end) < len(body):
		return fmt.Errorf("%w: it is not valid JSON, or nested too deep", ErrMalformed)
	case body[i] != '{':
		return fmt.Errorf("%w: it is JSON, but not an object", ErrMalformed)
	}

	return eachMember(body[i:end], fn)
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
		if isNull(value) { // a member that is not set
			continue
		}
		if err := fn(camelCase(c.Name), value); err != nil {
			return err
		}
	}

	return nil
}

// eachElement calls fn with the elements of an array. In anything else there are none.
func eachElement(array []byte, fn func(element json.RawMessage) error) error {
	if array[0] != '[' {
		return nil
	}

	for _, element := range jsonscan.Elements(array) {
		if err := fn(element); err != nil {
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

// jsonResource reads a ResourceSpans or the like.
func (d *decoding) jsonResource(object json.RawMessage) error {
	// The resource first: nothing says that it precedes its items.
	var h head
	var scopes json.RawMessage
	_ = eachMember(object, func(name, value []byte) error {
		switch {
		case string(name) == "resource":
			h.readJSON(value)
		case string(name) == "schemaUrl":
			h.schemaURL = jsonText(value)
		case slices.Contains(d.signal.scopes, string(name)):
			scopes = value
		}
		return nil
	})

	// A resource without items is allowed, and says nothing.
	if scopes == nil {
		return nil
	}

	return eachElement(scopes, func(scope json.RawMessage) error { return d.jsonScope(&h, scope) })
}

// readJSON reads a resource or a scope.
func (h *head) readJSON(object []byte) {
	_ = eachMember(object, func(name, value []byte) error {
		switch string(name) {
		case "name":
			h.name = jsonText(value)
		case "version":
			h.version = jsonText(value)
		case "attributes":
			h.attributes = list{value, jsonAttributes}
		case "droppedAttributesCount":
			h.droppedAttributes = jsonUint(value)
		}
		return nil
	})
}

// jsonScope reads a ScopeSpans or the like.
func (d *decoding) jsonScope(resource *head, object json.RawMessage) error {
	var h head
	var items json.RawMessage
	_ = eachMember(object, func(name, value []byte) error {
		switch string(name) {
		case "scope", "instrumentationLibrary":
			h.readJSON(value)
		case "schemaUrl":
			h.schemaURL = jsonText(value)
		case d.signal.items:
			items = value
		}
		return nil
	})
	if items == nil {
		return nil // as some exporters flush
	}
	if err := d.begin(resource, &h); err != nil {
		return err
	}

	return eachElement(items, func(object json.RawMessage) error {
		if !d.next() {
			return nil
		}
		return d.add(d.signal.fromJSON(object), nil)
	})
}

// jsonSpan reads a Span.
func jsonSpan(object json.RawMessage) *parts {
	var p parts
	_ = eachMember(object, func(name, value []byte) error {
		switch string(name) {
		case "traceId":
			p.traceID = jsonID(value, 16)
		case "spanId":
			p.spanID = jsonID(value, 8)
		case "traceState":
			p.traceState = jsonText(value)
		case "parentSpanId":
			p.parent = jsonShownID(value, 8)
		case "flags":
			p.flags = jsonUint(value)
		case "name":
			p.name = jsonText(value)
		case "kind":
			p.kind = jsonEnum(value, "SPAN_KIND_", spanKinds)
		case "startTimeUnixNano":
			p.start = jsonUint(value)
		case "endTimeUnixNano":
			p.end = jsonUint(value)
		case "attributes":
			p.attributes = list{value, jsonAttributes}
		case "droppedAttributesCount":
			p.droppedAttributes = jsonUint(value)
		case "events":
			p.events = list{value, jsonEvents}
		case "droppedEventsCount":
			p.droppedEvents = jsonUint(value)
		case "links":
			p.links = list{value, jsonLinks}
		case "droppedLinksCount":
			p.droppedLinks = jsonUint(value)
		case "status":
			p.readStatus(value)
		}
		return nil
	})

	return &p
}

// readStatus reads a Status.
func (p *parts) readStatus(object []byte) {
	_ = eachMember(object, func(name, value []byte) error {
		switch string(name) {
		case "message":
			p.message = jsonText(value)
		case "code":
			p.code = jsonEnum(value, "STATUS_CODE_", statusCodes)
		}
		return nil
	})
}

// The lists of objects that are not of KeyValues.
var (
	jsonEvents = objectsOf(jsonEvent)
	jsonLinks  = objectsOf(jsonLink)
)

// objectsOf returns a writer of the elements of an array.
func objectsOf(element func(o *output, object []byte)) writer {
	return func(o *output, array []byte, _ int) error {
		return eachElement(array, func(value json.RawMessage) error {
			if o.full {
				return errLarge
			}
			element(o, value)
			return nil
		})
	}
}

// jsonEvent writes a Span.Event.
func jsonEvent(o *output, object []byte) {
	var e event
	_ = eachMember(object, func(name, value []byte) error {
		switch string(name) {
		case "timeUnixNano":
			e.at = jsonUint(value)
		case "name":
			e.name = jsonText(value)
		case "attributes":
			e.attributes = list{value, jsonAttributes}
		case "droppedAttributesCount":
			e.droppedAttributes = jsonUint(value)
		}
		return nil
	})
	_ = e.write(o) // JSON was checked before
}

// jsonLink writes a Span.Link.
func jsonLink(o *output, object []byte) {
	var l link
	_ = eachMember(object, func(name, value []byte) error {
		switch string(name) {
		case "traceId":
			l.traceID = jsonShownID(value, 16)
		case "spanId":
			l.spanID = jsonShownID(value, 8)
		case "traceState":
			l.traceState = jsonText(value)
		case "attributes":
			l.attributes = list{value, jsonAttributes}
		case "droppedAttributesCount":
			l.droppedAttributes = jsonUint(value)
		case "flags":
			l.flags = jsonUint(value)
		}
		return nil
	})
	_ = l.write(o) // JSON was checked before
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
func jsonWord(value []byte) (word []byte, ok bool) {
	t := jsonText(value)
	if len(t.b) > wordMax {
		return nil, false
	}
	return t.next(wordMax), true
}

// jsonUint returns a number that is sent as a number, a string, or an object of its
// halves; 0 if it is none of these.
func jsonUint(value []byte) uint64 {
	if value[0] == '{' {
		low, _ := jsonscan.Lookup(value, "low")
		high, _ := jsonscan.Lookup(value, "high")
		return uint64(uint32(jsonHalf(high)))<<32 | uint64(uint32(jsonHalf(low)))
	}

	word, _ := jsonWord(value)
	if n, err := strconv.ParseUint(string(word), 10, 64); err == nil {
		return n
	}
	// Some write 64 bits as a double, which loses the last digits: better than the time.
	f, err := jsonFloat(word)
	if err != nil || !(0 <= f && f < math.MaxUint64) {
		return 0
	}

	return uint64(f)
}

// jsonHalf returns 32 bits, which may be written as a negative number.
func jsonHalf(value []byte) int64 {
	if len(value) > wordMax {
		return 0
	}
	n, _ := strconv.ParseInt(string(value), 10, 64)
	return n
}

// jsonID decodes an id of n bytes from hexadecimal digits or base64; nil if it is neither.
func jsonID(value []byte, n int) []byte {
	// OTLP wants digits; what turns protobuf into JSON by its own rules writes base64.
	word, _ := jsonWord(value)
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

	word, _ := jsonWord(value)
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
	word, _ := jsonWord(value)
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
