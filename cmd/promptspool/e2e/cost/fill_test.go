//go:build linux

package cost

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// filling is JSON with one list or map that can have any number of elements.
type filling struct {
	place   string // of the list or map, such as choices[].delta
	before  string
	element string
	after   string
	counted bool // element has a %x, so that each has a name of its own
}

// text returns the filling with about size bytes.
func (f *filling) text(size int) string {
	n := max(1, (size-len(f.before)-len(f.after))/(len(f.element)+1))
	if !f.counted {
		return f.before + elements(n, f.element) + f.after
	}

	var b strings.Builder
	b.WriteString(f.before)
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, f.element, i)
	}
	b.WriteString(f.after)

	return b.String()
}

// within returns the filling inside of other text.
func (f filling) within(before, after string) filling {
	f.before, f.after = before+f.before, f.after+after

	return f
}

func (f *filling) String() string { return f.place + " of " + f.element }

// smallest are the smallest elements of a list.
var smallest = []string{"{}", "[]", "0", `""`}

// selects are members that decide how the others of an object are read.
var selects = []string{"type", "role", "lc", "kind", "operator", "field", "logic"}

// siblingBytes bounds the members that stay beside one whose lists are filled.
const siblingBytes = 60

// fillings returns an example with each of its lists and maps filled with each of its smallest
// elements: empty ones, and what is left of those in the example if all but one member is taken
// away at each level.
func fillings(example any) (all []filling) {
	switch v := example.(type) {
	case []any:
		kinds := slices.Clone(smallest)
		for i, e := range v {
			kinds = append(kinds, skeletons(e, skeletonLevels)...)

			// What the others are does not matter, except the first one of a stream.
			before, after := "[", "]"
			if i > 0 {
				before += jsonOf(v[0]) + ","
			}
			for _, f := range fillings(e) {
				f.place = "[]" + f.place
				all = append(all, f.within(before, after))
			}
		}
		for _, kind := range distinct(kinds) {
			all = append(all, filling{before: "[", element: kind, after: "]"})
		}

	case map[string]any:
		all = append(all, filling{before: "{", element: `"":0`, after: "}"})
		all = append(all, filling{before: "{", element: `"%x":0`, after: "}", counted: true})
		siblings := map[string]string{}
		for name, value := range v {
			if text := jsonOf(value); len(text) <= siblingBytes {
				siblings[name] = text
			}
		}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			inner := fillings(v[name])
			before := "{"
			for other, text := range inOrder(siblings) {
				if other != name && len(inner) > 0 {
					before += quoted(other) + ":" + text + ","
				}
			}
			before += quoted(name) + ":"
			for _, f := range inner {
				f.place = "." + name + f.place
				all = append(all, f.within(before, "}"))
			}

			// The same name again and again.
			all = append(all, filling{before: "{", element: quoted(name) + ":" + skeletons(v[name], 0)[0], after: "}"})
		}
	}

	return all
}

// skeletonLevels is how deep the members of an element are looked for.
const skeletonLevels = 5

// skeletons returns what an example becomes if all but one member of each object, and all but
// one element of each list, is taken away. The shortest is the first.
func skeletons(example any, levels int) (all []string) {
	switch v := example.(type) {
	case []any:
		all = append(all, "[]")
		for _, e := range v {
			if levels == 0 {
				break
			}
			for _, s := range skeletons(e, levels-1) {
				all = append(all, "["+s+"]")
			}
		}
	case map[string]any:
		all = append(all, "{}")
		if levels == 0 {
			break
		}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			before := "{"
			for _, other := range selects {
				if _, ok := v[other].(string); ok && other != name {
					before += quoted(other) + ":" + jsonOf(v[other]) + ","
				}
			}
			for _, s := range skeletons(v[name], levels-1) {
				all = append(all, before+quoted(name)+":"+s+"}")
			}
		}
	default:
		all = append(all, jsonOf(v))
	}

	return distinct(all)
}

// distinct returns all texts once, in their order.
func distinct(all []string) (kept []string) {
	seen := map[string]bool{}
	for _, s := range all {
		if !seen[s] {
			kept = append(kept, s)
		}
		seen[s] = true
	}

	return kept
}

// jsonOf returns a value as JSON.
func jsonOf(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}

	return string(text)
}

// parsedJSON returns the value that a text is.
func parsedJSON(text []byte) (v any) {
	if err := json.Unmarshal(text, &v); err != nil {
		panic(fmt.Sprintf("%v in %.300s", err, text))
	}

	return v
}
