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
	case turn:
		return appendTurn(dst, v)
	case []turn:
		return appendList(dst, v)
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

func appendTurn(dst []byte, t turn) []byte {
	if t.lone != nil {
		return appendObject(dst, t.lone)
	}

	return appendJSON(dst, t.value)
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
