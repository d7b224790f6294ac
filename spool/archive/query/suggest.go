package query

import (
	"cmp"
	"slices"
	"strings"

	"promptspool/api/wire"
	"promptspool/spool/archive/rowcode"
)

// Bounds of suggestions.
const (
	suggestionsDefault = 50
	suggestionsSeenMax = 10_000  // distinct values, including those without the prefix
	suggestionBytesMax = 1 << 10 // a longer value is not picked from a list
)

// suggestionFields maps the peer's names to those that fields have in a filter.
var suggestionFields = map[string]string{
	"prompt":                "prompt_name",
	"metadata_values":       "metadata",
	"output_values":         "output",
	"input_variable_values": "input_variables",
}

// Suggestion collects values of one field, as suggestions for the value of a filter.
type Suggestion struct {
	field  field
	key    string
	prefix string // lower case
	inside bool   // of a word of the value
	limit  int
	seen   map[string]bool
	Values []string
}

// NewSuggestion checks a question and returns an empty Suggestion.
func NewSuggestion(s wire.SuggestQuery) (*Suggestion, error) {
	name := s.Field
	if other, ok := suggestionFields[name]; ok {
		name = other
	}

	// Ids are as many as records: a list of some does not help.
	f, ok := fields[name]
	switch {
	case !ok || f.text == nil && f.content == nil || f.column == rowcode.ColumnID:
		return nil, invalid("field", "must be one of: %s", strings.Join(suggestible(), ", "))
	case f.nested == keyRequired && s.Key == "":
		return nil, invalid("metadata_key", "is missing: whose values are wanted")
	case s.Limit < 0 || s.Limit > wire.PageItemsMax:
		return nil, invalid("limit", "must be an integer from 1 to %d", wire.PageItemsMax)
	}

	return &Suggestion{
		field:  f,
		key:    cmp.Or(f.key, s.Key),
		prefix: strings.ToLower(s.Prefix),
		inside: s.Inside,
		limit:  cmp.Or(s.Limit, suggestionsDefault),
		seen:   make(map[string]bool),
		Values: []string{},
	}, nil
}

// suggestible returns the fields whose values can be suggested, sorted.
func suggestible() (names []string) {
	for _, name := range fieldNames {
		if f := fields[name]; (f.text != nil || f.content != nil) && f.column != rowcode.ColumnID {
			names = append(names, name)
		}
	}

	names = append(names, sortedKeys(suggestionFields)...)
	slices.Sort(names)
	return names
}

// Column returns the column from which the values are read.
func (g *Suggestion) Column() rowcode.Column { return g.field.column }

// Add takes the values of one record and reports whether more are wanted.
func (g *Suggestion) Add(s *Subject) (more bool) {
	var values []string
	if g.field.content != nil {
		values = g.field.content(s.Read(), g.key)
	} else {
		values = g.field.text(s.Row, g.key)
	}

	for _, v := range values {
		if v == "" || len(v) > suggestionBytesMax || rowcode.IsReference(v) || g.seen[v] {
			continue
		}
		if len(g.Values) == g.limit || len(g.seen) == suggestionsSeenMax {
			return false
		}

		// Clones, because the store uses the row's memory again.
		g.seen[strings.Clone(v)] = true
		if g.begins(strings.ToLower(v)) {
			g.Values = append(g.Values, strings.Clone(v))
		}
	}

	return true
}

// begins reports whether a value in lower case begins with the prefix, or one of its words.
func (g *Suggestion) begins(value string) bool {
	if strings.HasPrefix(value, g.prefix) {
		return true
	}
	for from := 0; g.inside; {
		at := strings.IndexAny(value[from:], wordEnds)
		if at < 0 {
			return false
		}
		from += at + 1
		if strings.HasPrefix(value[from:], g.prefix) {
			return true
		}
	}

	return false
}

// wordEnds are the characters after which a word of a value begins.
const wordEnds = "/-_.:@ "
