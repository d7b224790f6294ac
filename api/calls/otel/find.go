package otel

import (
	"strings"

	"promptspool/api/calls/otel/dialect"
)

// line is an attribute, with what finds it.
type line struct {
	dialect.Attribute
	mark keyMark
}

// tables are the dialects that a span may follow.
type tables struct {
	dialects []*dialect.Dialect

	// byMeaning has them by what a reader looks for: lines of the same meaning, in the order of
	// their dialects.
	byMeaning map[dialect.Meaning][]line
}

// The tables of coding agents, and of all other spans; and the keys that a table names in full,
// which no * stands for.
var (
	exact             = map[string]bool{}
	ofAgents, general = newTables(true), newTables(false)
)

// newTables returns those of the dialects that all spans may follow, and perhaps those of agents.
func newTables(agents bool) *tables {
	t := &tables{byMeaning: map[dialect.Meaning][]line{}}
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
				t.byMeaning[a.Means] = append(t.byMeaning[a.Means], line{a, mark(a.Key)})
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
func (s *span) attribute(l *line) (v value) {
	if s.own.has(&l.mark) {
		v = s.own.get(l.Key)
	}
	if v == nil && s.resource.has(&l.mark) && ofResource(l.Means) {
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
		lines := s.tables.byMeaning[means]
		for i := range lines {
			if v := s.attribute(&lines[i]); v != nil {
				return v
			}
		}
	}

	return nil
}

// each visits all attributes with a meaning, with the name that the table gives them, or
// what the * in it stands for.
func (s *span) each(means dialect.Meaning, visit func(name string, v value)) {
	lines := s.tables.byMeaning[means]
	for i := range lines {
		l := &lines[i]
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
