package otel

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"promptspool/api/wire/jsonscan"
)

// attributes are those of a span, a log record, a scope or a resource, by their keys. The
// values are plain JSON, and may alias what they were read from.
//
// The dialects ask for hundreds of keys, of which a span has a few. So absent ones must
// cost next to nothing.
type attributes struct {
	all    []attributeValue
	places map[string]int // in all, by the key; nil while there are few
	marks  [4]uint64      // of each key its bit
}

// attributeValue is one attribute.
type attributeValue struct {
	key string
	value
}

// fewAttributes is up to how many attributes are searched one by one.
const fewAttributes = 32

// keyMark is a key with the bit of marks that is set if the key may be there.
type keyMark struct {
	key  string
	word int
	bit  uint64
}

// mark returns a key with its bit. The keys of one dialect begin alike.
func mark(key string) keyMark {
	n := len(key)
	if n == 0 {
		return keyMark{key, 0, 1}
	}
	h := n*7 + int(key[n-1])*31 + int(key[n/2])*13

	return keyMark{key, h >> 6 & 3, 1 << (h & 63)}
}

// has reports whether a key may be there.
func (a *attributes) has(m *keyMark) bool { return a.marks[m.word&3]&m.bit != 0 }

// place returns the index of an attribute in all, or -1.
func (a *attributes) place(key string) int {
	if m := mark(key); !a.has(&m) {
		return -1
	}
	if a.places != nil {
		if i, ok := a.places[key]; ok {
			return i
		}
		return -1
	}

	for i := range a.all {
		if a.all[i].key == key {
			return i
		}
	}

	return -1
}

// get returns the value of an attribute, empty if it is not there.
func (a *attributes) get(key string) value {
	if i := a.place(key); i >= 0 {
		return a.all[i].value
	}

	return nil
}

// add adds an attribute. Of equal keys the first one counts.
func (a *attributes) add(key string, v value) {
	if a.place(key) >= 0 {
		return
	}

	if a.all == nil {
		a.all = make([]attributeValue, 0, 8)
	}
	m := mark(key)
	a.marks[m.word] |= m.bit
	a.all = append(a.all, attributeValue{key, v})
	switch {
	case a.places != nil:
		a.places[key] = len(a.all) - 1
	case len(a.all) > fewAttributes:
		// A search one by one would take quadratic time for hostile spans.
		a.places = make(map[string]int, 2*len(a.all))
		for i := range a.all {
			a.places[a.all[i].key] = i
		}
	}
}

// readAttributes reads a list of KeyValues, or a plain object. Null, {} and NaN are absent.
func readAttributes(list value) (a attributes) {
	add := func(key string, v value) {
		if !v.absent() {
			a.add(key, v)
		}
	}

	switch {
	case list.isArray():
		for c := jsonscan.Enter(list, 0); c.Next(); {
			end := jsonscan.SkipValue(list, c.At)
			kv := list[c.At:end:end]
			c.At = end
			if held := kv.at("value"); held != nil {
				add(kv.at("key").text(), held.plain())
			}
		}
	case list.isObject():
		for m := range jsonscan.Members(json.RawMessage(list)) {
			add(m.Name, value(m.Value))
		}
	}

	return a
}

// unfoldedMax bounds the members of an attribute that become attributes.
const unfoldedMax = 64

// unfold adds the members of attributes that hold an object as further attributes.
func (a *attributes) unfold(keys ...string) {
	for _, key := range keys {
		object := objectOf(a.get(key).inner())
		for i, name := range sortedNames(object) {
			if i < unfoldedMax {
				a.add(key+"."+name, object[name])
			}
		}
	}
}

// text returns the first non-empty text among the attributes called keys.
func (a *attributes) text(keys ...string) string {
	for _, key := range keys {
		if s := a.get(key).text(); s != "" {
			return s
		}
	}

	return ""
}

// is reports whether an attribute is the boolean true, or says so as text.
func (a *attributes) is(key string) bool { return strings.EqualFold(a.get(key).shown(), "true") }

// sorted returns the keys that begin with prefix, in order.
func (a *attributes) sorted(prefix string) []string {
	var keys []string
	for i := range a.all {
		if key := a.all[i].key; strings.HasPrefix(key, prefix) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)

	return keys
}

// itemsMax bounds the items of a flattened list. Each took at least one attribute, so it
// only guards the sorting.
const itemsMax = 10_000

// items collects a flattened list: of "prefix.N.rest" it returns for each N, in order, the
// attributes by their rest. Indices may have gaps, and may be hostile.
func (a *attributes) items(prefix string) []attributes {
	var indices []int
	var byIndex map[int]*attributes
	for i := range a.all {
		rest, ok := strings.CutPrefix(a.all[i].key, prefix)
		if !ok {
			continue
		}
		digits, rest, _ := strings.Cut(rest, ".")
		index, err := strconv.Atoi(digits)
		if err != nil || index < 0 {
			continue
		}

		if byIndex[index] == nil {
			if len(indices) >= itemsMax {
				continue
			}
			if byIndex == nil {
				byIndex = map[int]*attributes{}
			}
			byIndex[index] = &attributes{}
			indices = append(indices, index)
		}
		byIndex[index].add(rest, a.all[i].value)
	}

	slices.Sort(indices)
	var list []attributes
	for _, index := range indices {
		list = append(list, *byIndex[index])
	}

	return list
}
