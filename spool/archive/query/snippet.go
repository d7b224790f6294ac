package query

import (
	"slices"

	"promptspool/api/wire"
	"promptspool/api/words"
)

// snippetRunes is about how many characters are on each side of a hit.
const snippetRunes = 60

// Seeks reports whether the query looks for words or parts of texts, so that rows have snippets.
func (q *Query) Seeks() bool { return seeks(q.Where) }

func seeks(c Condition) bool {
	t, isTest := c.(*Test)

	return isTest && t.sought != nil || slices.ContainsFunc(partsOf(c), seeks)
}

// Snippet returns where a record that matches has what the query looks for in texts: the last place
// in its input, or else the first in its output, by the first condition that has one. It is nil if
// there is none.
func (q *Query) Snippet(s *Subject) (*wire.Snippet, error) { return snippet(q.Where, s), s.Err }

func snippet(c Condition, s *Subject) *wire.Snippet {
	if t, isTest := c.(*Test); isTest && t.sought != nil {
		content := s.Read()
		if found := t.snippetIn("input", content.Input); found != nil {
			return found
		}
		return t.snippetIn("output", content.Output)
	}

	for _, part := range partsOf(c) {
		if found := snippet(part, s); found != nil {
			return found
		}
	}

	return nil
}

// snippetIn returns a place of a text that has what the test looks for, nil if the test does not
// look there.
func (t *Test) snippetIn(in, text string) (found *wire.Snippet) {
	if t.Field != "text" && t.Field != in+"_text" {
		return nil
	}

	from, to := 0, 0
	for start, end := range t.sought(text) {
		from, to = start, end
		// A prompt begins with what calls have in common, and ends with what this one is about.
		if in == "output" {
			break
		}
	}
	if from == to {
		return nil
	}
	before, match, after := words.Around(text, from, to, snippetRunes)

	return &wire.Snippet{In: in, Before: before, Match: match, After: after}
}

// partsOf returns the conditions that a condition consists of.
func partsOf(c Condition) []Condition {
	switch c := c.(type) {
	case All:
		return c
	case Any:
		return c
	}

	return nil
}
