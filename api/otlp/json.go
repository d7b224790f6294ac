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
	"unicode/utf8"

	"promptspool/api/wire/jsonscan"
)

// jsonLevelsMax is how deep brackets of a request may nest. A level of a value takes up to
// four.
const jsonLevelsMax = 4*levelsMax + 32

// jsonRequest reads a request, such as an ExportTraceServiceRequest. It is read like a
// message of protobuf: what is not of the type that OTLP defines does not exist.
func (d *decoding) jsonRequest(body []byte) error {
	return eachJSON(body, func(name string, value json.RawMessage) error {
		if name != d.signal.resources {
			return nil
		}
		return eachElement(value, d.jsonResource)
	})
}

// eachJSON is eachMember for a whole request.
func eachJSON(body []byte, fn func(name string, value json.RawMessage) error) error {
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
func eachMember(object json.RawMessage, fn func(name string, value json.RawMessage) error) error {
	if len(object) == 0 || object[0] != '{' {
		return nil
	}

	for m := range jsonscan.Members(object) {
		if isNull(m.Value) { // a member that is not set
			continue
		}
		if err := fn(camelCase(m.Name), m.Value); err != nil {
			return err
		}
	}

	return nil
}

// eachElement calls fn with the elements of an array. In anything else there are none.
func eachElement(array json.RawMessage, fn func(element json.RawMessage) error) error {
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

func isNull(value json.RawMessage) bool { return string(value) == "null" }

// nameMax is longer than the name of any member that OTLP defines.
const nameMax = 40

// camelCase returns a name in lowerCamelCase, which some senders write in snake_case.
func camelCase(name string) string {
	// Joining the parts of a long name would take quadratic time.
	if len(name) > nameMax || !strings.Contains(name, "_") {
		return name
	}

	first, rest, _ := strings.Cut(name, "_")
	for part := range strings.SplitSeq(rest, "_") {
		if part != "" {
			first += strings.ToUpper(part[:1]) + part[1:]
		}
	}

	return first
}

// jsonResource reads a ResourceSpans or the like.
func (d *decoding) jsonResource(object json.RawMessage) error {
	// The resource first: nothing says that it precedes its items.
	var h head
	var scopes json.RawMessage
	_ = eachMember(object, func(name string, value json.RawMessage) error {
		switch {
		case name == "resource":
			h.readJSON(value)
		case name == "schemaUrl":
			h.schemaURL = jsonText(value)
		case slices.Contains(d.signal.scopes, name):
			scopes = value
		}
		return nil
	})

	// A resource without items is allowed, and says nothing.
	written := h.appendResource()
	if scopes == nil {
		return nil
	}

	return eachElement(scopes, func(scope json.RawMessage) error { return d.jsonScope(written, scope) })
}

// readJSON reads a resource or a scope.
func (h *head) readJSON(object json.RawMessage) {
	_ = eachMember(object, func(name string, value json.RawMessage) error {
		switch name {
		case "name":
			h.name = jsonText(value)
		case "version":
			h.version = jsonText(value)
		case "attributes":
			h.attributes = jsonAttributes(value)
		case "droppedAttributesCount":
			h.droppedAttributes = jsonUint(value)
		}
		return nil
	})
}

// jsonScope reads a ScopeSpans or the like.
func (d *decoding) jsonScope(resource []byte, object json.RawMessage) error {
	var h head
	var items json.RawMessage
	_ = eachMember(object, func(name string, value json.RawMessage) error {
		switch name {
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

	// The scope is written once, although its items may come first.
	d.scope = h.name
	written := h.appendScope()

	return eachElement(items, func(object json.RawMessage) error {
		return d.add(resource, written, d.signal.fromJSON(object), nil)
	})
}

// jsonSpan reads a Span.
func jsonSpan(object json.RawMessage) *parts {
	var p parts
	_ = eachMember(object, func(name string, value json.RawMessage) error {
		switch name {
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
			p.attributes = jsonAttributes(value)
		case "droppedAttributesCount":
			p.droppedAttributes = jsonUint(value)
		case "events":
			p.events = jsonList(value, jsonEvent)
		case "droppedEventsCount":
			p.droppedEvents = jsonUint(value)
		case "links":
			p.links = jsonList(value, jsonLink)
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
func (p *parts) readStatus(object json.RawMessage) {
	_ = eachMember(object, func(name string, value json.RawMessage) error {
		switch name {
		case "message":
			p.message = jsonText(value)
		case "code":
			p.code = jsonEnum(value, "STATUS_CODE_", statusCodes)
		}
		return nil
	})
}

// jsonList returns the elements of a list as element writes them.
func jsonList(array json.RawMessage, element func(b []byte, object json.RawMessage) []byte) (b []byte) {
	_ = eachElement(array, func(value json.RawMessage) error {
		b = element(b, value)
		return nil
	})

	return b
}

// jsonEvent appends a Span.Event to a list.
func jsonEvent(b []byte, object json.RawMessage) []byte {
	var e event
	_ = eachMember(object, func(name string, value json.RawMessage) error {
		switch name {
		case "timeUnixNano":
			e.at = jsonUint(value)
		case "name":
			e.name = jsonText(value)
		case "attributes":
			e.attributes = jsonAttributes(value)
		case "droppedAttributesCount":
			e.droppedAttributes = jsonUint(value)
		}
		return nil
	})

	return e.append(b)
}

// jsonLink appends a Span.Link to a list.
func jsonLink(b []byte, object json.RawMessage) []byte {
	var l link
	_ = eachMember(object, func(name string, value json.RawMessage) error {
		switch name {
		case "traceId":
			l.traceID = jsonShownID(value, 16)
		case "spanId":
			l.spanID = jsonShownID(value, 8)
		case "traceState":
			l.traceState = jsonText(value)
		case "attributes":
			l.attributes = jsonAttributes(value)
		case "droppedAttributesCount":
			l.droppedAttributes = jsonUint(value)
		case "flags":
			l.flags = jsonUint(value)
		}
		return nil
	})

	return l.append(b)
}

// jsonText returns a string's text, and of anything else its JSON.
func jsonText(value json.RawMessage) []byte {
	if value[0] != '"' {
		return value
	}

	text := jsonscan.UnquoteBytes(value)
	if bytes.Contains(text, replacement) && bytes.Contains(value, []byte(`\u`)) {
		return unquoteHalves(value)
	}
	return text
}

// replacement is U+FFFD, which stands for what is not a character.
var replacement = []byte("\uFFFD")

// unquoteHalves is UnquoteBytes, but keeps half of a surrogate pair as the three bytes
// that it would have in UTF-8.
func unquoteHalves(quoted json.RawMessage) (text []byte) {
	inner := quoted[1 : len(quoted)-1]
	for {
		i := bytes.Index(inner, []byte(`\`))
		if i < 0 {
			return append(text, inner...)
		}
		text = append(text, inner[:i]...)
		inner = inner[i:]

		// Two escapes may be one character, so they are read together.
		n := 2
		if inner[1] == 'u' {
			n = 6
			if len(inner) >= 12 && inner[6] == '\\' && inner[7] == 'u' {
				pair := jsonscan.UnquoteBytes(quote(inner[:12]))
				if r, size := utf8.DecodeRune(pair); size == 4 {
					text, inner = utf8.AppendRune(text, r), inner[12:]
					continue
				}
			}
		}

		half, err := strconv.ParseUint(string(inner[2:n]), 16, 16)
		if n == 6 && err == nil && 0xd800 <= half && half < 0xe000 {
			text = append(text, 0xe0|byte(half>>12), 0x80|byte(half>>6)&0x3f, 0x80|byte(half)&0x3f)
		} else {
			text = append(text, jsonscan.UnquoteBytes(quote(inner[:n]))...)
		}
		inner = inner[n:]
	}
}

// quote returns the JSON string with these bytes inside.
func quote(inner []byte) []byte { return append(append([]byte{'"'}, inner...), '"') }

// jsonUint returns a number that is sent as a number, a string, or an object of its
// halves; 0 if it is none of these.
func jsonUint(value json.RawMessage) uint64 {
	if value[0] == '{' {
		low, _ := jsonscan.Lookup(value, "low")
		high, _ := jsonscan.Lookup(value, "high")
		return uint64(uint32(jsonHalf(high)))<<32 | uint64(uint32(jsonHalf(low)))
	}

	text := string(jsonText(value))
	if n, err := strconv.ParseUint(text, 10, 64); err == nil {
		return n
	}
	// Some write 64 bits as a double, which loses the last digits: better than the time.
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || !(0 <= f && f < math.MaxUint64) {
		return 0
	}

	return uint64(f)
}

// jsonHalf returns 32 bits, which may be written as a negative number.
func jsonHalf(value json.RawMessage) int64 {
	n, _ := strconv.ParseInt(string(value), 10, 64)
	return n
}

// jsonID decodes an id of n bytes from hexadecimal digits or base64; nil if it is neither.
func jsonID(value json.RawMessage, n int) []byte {
	// OTLP wants digits; what turns protobuf into JSON by its own rules writes base64.
	text := jsonText(value)
	if len(text) == 2*n {
		id, err := hex.DecodeString(string(text))
		if err == nil {
			return id
		}
	}

	id, err := decodeBase64(text)
	if err != nil || len(id) != n {
		return nil
	}

	return id
}

// jsonShownID returns an id as it is written: as it was sent, if it is none.
func jsonShownID(value json.RawMessage, n int) []byte {
	if id := jsonID(value, n); id != nil {
		return shownID(id)
	}

	text := jsonText(value)
	if len(text) > shownMax {
		return nil
	}

	return text
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
func jsonEnum(value json.RawMessage, prefix string, names []string) []byte {
	text := string(jsonText(value))
	if n, err := strconv.ParseFloat(text, 64); err == nil && n == math.Trunc(n) && math.Abs(n) < math.MaxInt32 {
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
