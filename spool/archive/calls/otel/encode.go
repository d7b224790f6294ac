package otel

import (
	"maps"
	"slices"
	"strconv"

	"promptspool/api/wire/jsonscan"
)

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
	case map[string]any:
		return appendMap(dst, v)
	case map[string]value:
		return appendMap(dst, v)
	case map[string]string:
		return appendMap(dst, v)
	case interface{ members(*object) }:
		o := object{dst, true}
		v.members(&o)
		return o.close()
	}

	raw, _ := jsonscan.Marshal(v)
	return append(dst, raw...)
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
	for _, name := range slices.Sorted(maps.Keys(members)) {
		o.add(name, members[name])
	}

	return o.close()
}

// object is a JSON object that is being written.
type object struct {
	b     []byte
	empty bool // so far
}

// add adds a member.
func (o *object) add(name string, v any) {
	opener := byte(',')
	if o.empty {
		opener, o.empty = '{', false
	}
	o.b = append(jsonscan.AppendString(append(o.b, opener), name), ':')
	o.b = appendJSON(o.b, v)
}

// addText adds a member unless the text is empty.
func (o *object) addText(name, text string) {
	if text != "" {
		o.add(name, text)
	}
}

// close ends the object, and returns what it was appended to.
func (o *object) close() []byte {
	if o.empty {
		return append(o.b, "{}"...)
	}

	return append(o.b, '}')
}
