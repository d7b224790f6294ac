package query

import (
	"slices"
	"strings"

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
	isGap := func(c rune) bool { return !words.IsWord(c) }
	first, last := strings.IndexFunc(want, isGap), strings.LastIndexFunc(want, isGap)+1
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
