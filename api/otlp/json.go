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
func jsonWord(value []byte) (word []byte, ok bool) {
	t := jsonText(value)
	if len(t.b) > wordMax {
		return nil, false
	}
	return t.beginning(wordMax), true
}

// jsonUint returns a number that is sent as a number or a string, or the nanoseconds since 1970 of an
// ISO 8601 time; 0 if it is none of these.
func jsonUint(value []byte) uint64 {
	word, _ := jsonWord(value)
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
