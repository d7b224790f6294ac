package query

import (
	"slices"
	"strings"

	"promptspool/api/wire"
	"promptspool/api/words"
	"promptspool/spool/archive/textindex"
)

// terms returns the terms of words that a text has if a positive operator holds for it. There are
// none if an index cannot help.
func (o operation) terms() []textindex.Term {
	want, _, ok := parseText(o.Value)
	if !ok {
		return nil
	}

	// At an end of what is looked for may be a part of a word, which no index knows.
	first, last := strings.IndexFunc(want, words.IsGap), strings.LastIndexFunc(want, words.IsGap)+1
	switch o.Operator {
	case "matches":
		text, prefix := strings.CutSuffix(want, "*")
		return textindex.PhraseTerms(text, prefix)
	case "is", "eq":
		first, last = 0, len(want)
	case "starts_with":
		first = 0
	case "ends_with":
		last = len(want)
	case "contains":
	default:
		return nil
	}
	if first < 0 || first >= last {
		return nil
	}

	return textindex.PhraseTerms(want[first:last], false)
}

// Candidates returns the documents of an index in which the query may find something; all others it
// does not match. keep takes out of a set the documents that do not have a term.
func (q *Query) Candidates(keep func(t textindex.Term, d *textindex.Docs) error) (textindex.Docs, error) {
	docs := textindex.All()

	return docs, keepCandidates(q.Where, keep, &docs)
}

func keepCandidates(c Condition, keep func(textindex.Term, *textindex.Docs) error, docs *textindex.Docs) error {
	none := textindex.Docs{}
	// An alternative that no index can judge makes it useless for the others.
	if !narrows(c) || *docs == none {
		return nil
	}

	switch c := c.(type) {
	case All:
		for _, part := range c {
			if err := keepCandidates(part, keep, docs); err != nil {
				return err
			}
		}

	case Any:
		any := none
		for _, part := range c {
			one := *docs
			if err := keepCandidates(part, keep, &one); err != nil {
				return err
			}
			for i := range any {
				any[i] |= one[i]
			}
		}
		*docs = any

	case *Test:
		for _, term := range c.terms {
			if err := keep(term, docs); err != nil {
				return err
			}
		}
	}

	return nil
}

// Terms returns the terms that Candidates asks for, in order. Without any, an index cannot help.
func (q *Query) Terms() (all []textindex.Term) {
	_, _ = q.Candidates(func(t textindex.Term, _ *textindex.Docs) error {
		all = append(all, t)
		return nil
	})
	slices.Sort(all)

	return slices.Compact(all)
}

// narrows reports whether an index can tell where a condition must fail.
func narrows(c Condition) bool {
	switch c := c.(type) {
	case All:
		return slices.ContainsFunc(c, narrows)
	case Any:
		return len(c) > 0 && !slices.ContainsFunc(c, func(c Condition) bool { return !narrows(c) })
	case *Test:
		return len(c.terms) > 0
	}

	return false // a condition that must not hold may do so for reasons that no index knows
}

// snippetRunes is about how many characters are on each side of a hit.
const snippetRunes = 60

// Seeks reports whether the query looks for words or parts of texts, so that rows have snippets.
func (q *Query) Seeks() bool { return seeks(q.Where) }

func seeks(c Condition) bool {
	t, isTest := c.(*Test)

	return isTest && t.sought != nil || slices.ContainsFunc(partsOf(c), seeks)
}

// Snippet returns where a record that matches has what the query looks for in texts. It is the last
// place in the input, or else the first in the output, by the first condition that has one; nil if
// none has.
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
