package otel

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"promptspool/api/calls/otel/dialect"
	"promptspool/api/wire/jsonscan"
)

// attributes are those of a span, a log record, a scope or a resource, by their keys. The
// values are plain JSON, and may alias what they were read from.
type attributes struct {
	byKey   map[string]value
	keys    []string // in their order
	lengths uint64   // has a bit for the length of each key
}

// get returns the value of an attribute, empty if it is not there. The dialects ask for hundreds of
// keys, of which a span has a few.
func (a *attributes) get(key string) value {
	if a.lengths&(1<<(len(key)%64)) == 0 {
		return nil
	}
	return a.byKey[key]
}

// add adds an attribute. Of equal keys the first one counts.
func (a *attributes) add(key string, v value) {
	if _, known := a.byKey[key]; known {
		return
	}
	if a.byKey == nil {
		a.byKey = map[string]value{}
	}
	a.byKey[key] = v
	a.lengths |= 1 << (len(key) % 64)
	a.keys = append(a.keys, key)
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
	for _, key := range a.keys {
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

// items collects a flattened list: of "prefix.N.rest" it returns for each N, in order, the
// attributes by their rest. Indices may have gaps, and may be hostile.
func (a *attributes) items(prefix string) []attributes {
	var byIndex map[int]*attributes
	for _, key := range a.keys {
		rest, ok := strings.CutPrefix(key, prefix)
		if !ok {
			continue
		}
		digits, rest, _ := strings.Cut(rest, ".")
		index, err := strconv.Atoi(digits)
		if err != nil || index < 0 {
			continue
		}

		if byIndex[index] == nil {
			if len(byIndex) >= itemsMax {
				continue
			}
			if byIndex == nil {
				byIndex = map[int]*attributes{}
			}
			byIndex[index] = &attributes{}
		}
		byIndex[index].add(rest, a.get(key))
	}

	// Most spans have no such list.
	if byIndex == nil {
		return nil
	}
	var list []attributes
	for _, index := range slices.Sorted(maps.Keys(byIndex)) {
		list = append(list, *byIndex[index])
	}

	return list
}

// tables are the dialects that a span may follow.
type tables struct {
	dialects []*dialect.Dialect

	// byMeaning has them by what a reader looks for: lines of the same meaning, in the order of
	// their dialects.
	byMeaning map[dialect.Meaning][]dialect.Attribute
}

// The tables of coding agents, and of all other spans; and the keys that a table names in full,
// which no * stands for.
var (
	exact             = map[string]bool{}
	ofAgents, general = newTables(true), newTables(false)
)

// newTables returns those of the dialects that all spans may follow, and perhaps those of agents.
func newTables(agents bool) *tables {
	t := &tables{byMeaning: map[dialect.Meaning][]dialect.Attribute{}}
	// The keys that a dialect of agents has taken.
	taken := map[string]bool{}
	for _, d := range dialect.All {
		limited := len(d.Of) > 0
		if limited && !agents {
			continue
		}

		t.dialects = append(t.dialects, d)
		for _, a := range d.Table {
			exact[a.Key] = true
			if !taken[a.Key] {
				t.byMeaning[a.Means] = append(t.byMeaning[a.Means], a)
				taken[a.Key] = limited
			}
		}
	}

	return t
}

// ofResource reports whether an attribute with this meaning may be on the resource too,
// which then speaks for all its spans.
func ofResource(means dialect.Meaning) bool {
	switch means {
	case dialect.Metadata, dialect.MetadataMap, dialect.Tags, dialect.PromptName, dialect.PromptVersion,
		dialect.PromptLabel:
		return true
	}

	return false
}

// attribute returns the value of an attribute. The span's own wins over its resource's.
func (s *span) attribute(l dialect.Attribute) value {
	v := s.own.get(l.Key)
	if v == nil && ofResource(l.Means) {
		v = s.resource.get(l.Key)
	}
	// Spring AI has none where no model answered.
	if v.absent() || string(v) == `""` || string(v) == `"none"` && l.Means == dialect.ResponseModel {
		return nil
	}

	return v
}

// find returns the first attribute with one of the meanings; an earlier meaning wins.
func (s *span) find(meanings ...dialect.Meaning) value {
	for _, means := range meanings {
		for _, l := range s.tables.byMeaning[means] {
			if v := s.attribute(l); v != nil {
				return v
			}
		}
	}

	return nil
}

// each visits all attributes with a meaning, with the name that the table gives them, or
// what the * in it stands for.
func (s *span) each(means dialect.Meaning, visit func(name string, v value)) {
	for _, l := range s.tables.byMeaning[means] {
		if prefix, many := strings.CutSuffix(l.Key, "*"); many {
			s.eachOf(prefix, means, visit)
		} else if v := s.attribute(l); v != nil {
			visit(l.As, v)
		}
	}
}

// eachOf visits the attributes that begin with a prefix, except those that a table names.
func (s *span) eachOf(prefix string, means dialect.Meaning, visit func(name string, v value)) {
	s.own.eachOf(prefix, visit)
	if ofResource(means) {
		s.resource.eachOf(prefix, visit)
	}
}

func (a *attributes) eachOf(prefix string, visit func(name string, v value)) {
	for _, key := range a.sorted(prefix) {
		if !exact[key] {
			visit(key[len(prefix):], a.get(key))
		}
	}
}

// anything reads an attribute that may hold anything that went in or came out: a provider's request
// or response, messages, or a text.
func anything(s *span, key, role string) conversation {
	return contentOf(s.own.get(key), role)
}

func contentOf(v value, role string) conversation {
	if role == userRole {
		return inputOf(v)
	}
	return outputOf(v)
}

// inputOf reads what went in.
func inputOf(v value) conversation {
	switch in := v.inner(); {
	case v.absent():
		return conversation{}
	case in.isArray():
		if looksLikeMessages(in) || v.isArray() && in.element().isText() {
			return messagesOf(in, "user")
		}
	case in.isObject():
		if in.at("messages").isArray() {
			return requestMessages(in)
		}
		if in.has("contents", "prompt", "input", "inputs", "inputText", "system", "message", "chat_history") {
			return conversation{raw: in}
		}
		if looksLikeMessage(in) {
			return messagesOf(in, "user")
		}
	}

	return oneText("user", v.shown())
}

// requestMessages reads a request that has messages. Its other members stay beside them.
func requestMessages(request value) conversation {
	c := messagesOf(request.at("messages"), "user")
	rest := objectOf(request)
	delete(rest, "messages")
	if len(rest) > 0 {
		c.raw = encoded(rest)
	}

	return c
}

// outputOf reads what came out.
func outputOf(v value) conversation {
	switch out := v.inner(); {
	case v.absent():
		return conversation{}
	case out.isArray():
		first := out.element()
		switch kind := first.texts("type"); {
		case first.at("message").isObject():
			return conversation{raw: encoded(map[string]value{"choices": out})}
		// These are of OpenAI's responses.
		case kind == "reasoning" || strings.HasSuffix(kind, "_call"):
			return conversation{raw: encoded(map[string]value{"output": out})}
		case looksLikeMessages(out) || v.isArray() && first.isText():
			return messagesOf(out, "assistant")
		}
	case out.isObject():
		if isResponse(out) {
			return conversation{raw: out}
		}
		if m := out.at("message"); m.isObject() {
			return messagesOf(m, "assistant")
		}
		if m := out.at("messages"); looksLikeMessages(m) {
			return messagesOf(m, "assistant")
		}
		if looksLikeMessage(out) {
			return messagesOf(out, "assistant")
		}
	}

	return oneText("assistant", v.shown())
}

// isResponse reports whether an object is a response of a provider's API, or its error.
func isResponse(v value) bool {
	for _, list := range []string{"choices", "candidates", "generations", "output", "content"} {
		if v.at(list).isArray() {
			return true
		}
	}

	return v.at("completion").isText() || v.at("generation").isText() || v.has("embeddings", "embedding") ||
		v.at("results").element().has("outputText") || v.at("outputs").element().has("text") ||
		v.at("data").element().has("embedding", "b64_json") || v.at("output", "message").isObject() ||
		v.at("error", "message").isText() && v.at("error").has("type", "code") ||
		v.at("promptFeedback").has("blockReason")
}

// looksLikeMessages reports whether a list holds messages, or lists of them.
func looksLikeMessages(list value) bool {
	first := list.element()
	if first.isArray() {
		first = first.element()
	}

	return looksLikeMessage(first)
}

func looksLikeMessage(v value) bool {
	return v.isObject() && (v.has("role", "lc", "parts", "tool_calls") ||
		v.has("content") && !v.has("score", "metadata", "page_content") || v.has("data") && v.has("type"))
}
