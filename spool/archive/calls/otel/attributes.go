package otel

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"promptspool/api/wire/jsonscan"
)

// attributes are those of a span, a log record, a scope or a resource, by their keys. The
// values are plain JSON.
type attributes map[string]value

// readAttributes reads a list of KeyValues, or a plain object. Of equal keys the first one
// counts. Null, {} and NaN are absent.
func readAttributes(list value) attributes {
	all := attributes{}
	add := func(key string, plain value) {
		if _, known := all[key]; !known && !plain.absent() {
			all[key] = plain
		}
	}

	switch {
	case list.isArray():
		for _, e := range jsonscan.Elements(json.RawMessage(list)) {
			kv := value(e)
			if held := kv.at("value"); held != nil {
				plain, _ := appendPlain(nil, held, 0)
				add(kv.at("key").text(), plain)
			}
		}
	case list.isObject():
		for m := range jsonscan.Members(json.RawMessage(list)) {
			add(m.Name, value(m.Value))
		}
	}

	return all
}

// text returns the first non-empty text among the attributes called keys.
func (a attributes) text(keys ...string) string {
	for _, key := range keys {
		if s := a[key].text(); s != "" {
			return s
		}
	}

	return ""
}

// is reports whether an attribute is the boolean true, or says so as text.
func (a attributes) is(key string) bool { return strings.EqualFold(a[key].shown(), "true") }

// sorted returns the keys that begin with prefix, in order.
func (a attributes) sorted(prefix string) []string {
	var keys []string
	for key := range a {
		if strings.HasPrefix(key, prefix) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)

	return keys
}

// itemsMax bounds the items of a flattened list. Each took at least one attribute, so it
// only guards the sorting.
const itemsMax = 10_000

// items gathers a flattened list: of "prefix.N.rest" it returns for each N, in order, the
// attributes by their rest. Indices may have gaps, and may be hostile.
func (a attributes) items(prefix string) []attributes {
	byIndex := map[int]attributes{}
	for key, v := range a {
		rest, ok := strings.CutPrefix(key, prefix)
		if !ok {
			continue
		}
		digits, rest, _ := strings.Cut(rest, ".")
		index, err := strconv.Atoi(digits)
		if err != nil || index < 0 || len(byIndex) >= itemsMax {
			continue
		}
		if byIndex[index] == nil {
			byIndex[index] = attributes{}
		}
		byIndex[index][rest] = v
	}

	indices := make([]int, 0, len(byIndex))
	for index := range byIndex {
		indices = append(indices, index)
	}
	slices.Sort(indices)
	list := make([]attributes, len(indices))
	for i, index := range indices {
		list[i] = byIndex[index]
	}

	return list
}
