package otel

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"promptspool/api/calls/otel/dialect"
	"promptspool/api/wire"
)

// metadataSet is metadata within the bounds of a track-request. The first value of a key
// counts.
type metadataSet struct {
	all   map[string]string
	bytes int
}

func (g *metadataSet) add(key, text string) {
	// LangChain puts the model and its settings into its own metadata.
	if _, known := g.all[key]; known || key == "" || text == "" || strings.HasPrefix(key, "ls_") {
		return
	}
	if utf8.RuneCountInString(key) > wire.MetadataKeyRunesMax || len(text) > wire.MetadataValueBytesMax ||
		len(g.all) >= wire.MetadataKeysMax || g.bytes+len(key)+len(text) > wire.MetadataBytesMax {
		// The raw attributes have it.
		return
	}

	g.all[key] = text
	g.bytes += len(key) + len(text)
}

// metadata returns the span's metadata, and its scores.
func (s *span) metadata() (map[string]string, []wire.Score) {
	g := metadataSet{all: map[string]string{}}
	s.each(dialect.Metadata, func(key string, v value) {
		if key == dialect.ServiceKey && strings.HasPrefix(v.text(), "unknown_service") {
			// An SDK writes this where the app set no name.
			return
		}
		g.add(key, v.shown())
	})
	s.eachJSON(dialect.MetadataMap, func(object map[string]value) {
		for _, key := range slices.Sorted(maps.Keys(object)) {
			g.add(key, object[key].shown())
		}
		for _, a := range dialect.Aliases {
			g.add(a.As, object[a.Key].text())
		}
	})
	if millis, ok := s.firstToken(); ok {
		g.add("time_to_first_token_ms", rounded(millis))
	}

	return g.all, s.scores(&g)
}

// eachJSON visits the attributes with a meaning that hold an object.
func (s *span) eachJSON(means dialect.Meaning, visit func(map[string]value)) {
	s.each(means, func(_ string, v value) {
		if object := v.inner(); object.isObject() {
			visit(objectOf(object))
		}
	})
}

// tags returns the tags of a list, of JSON of one, or with commas between.
func (s *span) tags() []string {
	var all []string
	s.each(dialect.Tags, func(_ string, v value) {
		list := v.inner()
		if !list.isArray() {
			for tag := range strings.SplitSeq(list.text(), ",") {
				all = append(all, strings.TrimSpace(tag))
			}
			return
		}
		for _, e := range list.elements() {
			all = append(all, e.shown())
		}
	})

	slices.Sort(all)
	all = slices.DeleteFunc(slices.Compact(all), func(tag string) bool {
		return tag == "" || utf8.RuneCountInString(tag) > wire.NameRunesMax
	})

	// Copies: a few tags would keep the whole text and the whole list in memory.
	var kept []string
	for _, tag := range all[:min(len(all), wire.TagsMax)] {
		kept = append(kept, strings.Clone(tag))
	}

	return kept
}

// prompt returns the link to a template.
func (s *span) prompt() wire.PromptLink {
	link := wire.PromptLink{
		Name:  wire.Clip(s.find(dialect.PromptName).shown(), wire.NameRunesMax),
		Label: wire.Clip(s.find(dialect.PromptLabel).shown(), wire.NameRunesMax),
	}
	if link.Name == "" {
		return wire.PromptLink{}
	}

	version := s.find(dialect.PromptVersion).shown()
	n, err := strconv.ParseInt(version, 10, 32)
	switch {
	case err == nil && n > 0:
		// The version that ran. The label may have moved since.
		link.Version, link.Label = int(n), ""
	case version != "" && link.Label == "":
		link.Label = wire.Clip(version, wire.NameRunesMax)
	}
	link.InputVariables = s.variables()

	return link
}

// variables returns the values of a template's variables, nil if there are none.
func (s *span) variables() json.RawMessage {
	all := map[string]value{}
	s.eachJSON(dialect.PromptVariables, func(object map[string]value) {
		for name, v := range object {
			if shallow(v) {
				all[name] = v
			}
		}
	})
	s.each(dialect.PromptVariable, func(name string, v value) { all[name] = v })
	if len(all) == 0 {
		return nil
	}

	return json.RawMessage(encoded(all))
}

// shown returns the first attribute with a meaning as a person reads it.
func (s *span) shown(means dialect.Meaning) string {
	if v := s.find(means); v != nil {
		return unquoted(v)
	}

	role, member := userRole, "input"
	if means == dialect.ShownOutput {
		role, member = assistantRole, "output"
	}
	if kind := s.own.text("mastra.span.type"); kind != "" {
		return unquoted(s.own.get("mastra." + kind + "." + member))
	}
	for _, d := range s.tables.dialects {
		for _, from := range sources(d, role) {
			if v := s.own.get(from.Key); !v.absent() {
				return unquoted(v)
			}
		}
	}

	var lines []string
	if len(s.events) > 0 {
		for _, m := range s.content(role).messages {
			lines = append(lines, m.json().at("content").shown())
		}
	}

	return strings.Join(lines, "\n")
}
