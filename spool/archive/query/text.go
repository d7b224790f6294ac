package query

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"promptspool/api/calls"
	"promptspool/api/wire"
	"promptspool/api/wire/jsonscan"
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
func (q *Query) Candidates(keep func(t textindex.Term, d *textindex.Docs)) textindex.Docs {
	docs := textindex.All()
	keepCandidates(q.Where, keep, &docs)

	return docs
}

func keepCandidates(c Condition, keep func(textindex.Term, *textindex.Docs), docs *textindex.Docs) {
	none := textindex.Docs{}
	// An alternative that no index can judge makes it useless for the others.
	if !narrows(c) || *docs == none {
		return
	}

	switch c := c.(type) {
	case All:
		for _, part := range c {
			keepCandidates(part, keep, docs)
		}

	case Any:
		any := none
		for _, part := range c {
			one := *docs
			keepCandidates(part, keep, &one)
			for i := range any {
				any[i] |= one[i]
			}
		}
		*docs = any

	case *Test:
		for _, term := range c.terms {
			keep(term, docs)
		}
	}
}

// Terms returns the terms that Candidates asks for, in order. Without any, an index cannot help.
func (q *Query) Terms() (all []textindex.Term) {
	q.Candidates(func(t textindex.Term, _ *textindex.Docs) { all = append(all, t) })
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

	// A condition that must not hold may do so for reasons that no index knows.
	return false
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

// Content is what searches look for in a request's body: the texts of both directions
// and the variables.
type Content struct {
	Input, Output string            // all texts, one a line
	Variables     map[string]string // of the template, as text
}

// ReadContent reads a body. Parts that cannot be read are left out, as are those not read
// when ctx ended.
func ReadContent(ctx context.Context, body []byte) *Content {
	if len(body) > 0 && body[0] == '[' {
		return readJoint(ctx, body)
	}
	object, err := wire.ParseObject(body)
	if err != nil {
		return &Content{}
	}
	call := calls.ReadObject(ctx, object)
	variables, _ := object.Get("prompt_input_variables")
	content := &Content{Variables: textValues(variables)}
	content.Input, content.Output = call.Searched()

	return content
}

// readJoint reads several bodies: what the first lacks comes from the next.
func readJoint(ctx context.Context, joint []byte) *Content {
	var all Content
	for _, body := range jsonscan.Elements(joint) {
		c := ReadContent(ctx, body)
		all.Input, all.Output = cmp.Or(all.Input, c.Input), cmp.Or(all.Output, c.Output)
		if all.Variables == nil {
			all.Variables = c.Variables
		}
	}

	return &all
}

// Terms returns what an index of words has of the content; see textindex.Terms.
func (c *Content) Terms() []textindex.Term { return textindex.Terms(c.Input, c.Output) }

func (c *Content) texts(string) []string { return append(c.inputText(""), c.outputText("")...) }

func (c *Content) inputText(string) []string { return some(c.Input, c.Input != "") }

func (c *Content) outputText(string) []string { return some(c.Output, c.Output != "") }

// outputKeys returns the keys of an output that is a JSON object.
func (c *Content) outputKeys(string) []string {
	return slices.Sorted(maps.Keys(c.outputObject()))
}

func (c *Content) outputValues(key string) []string { return valueOf(c.outputObject(), key) }

// outputObject returns the values of an output that is a JSON object, otherwise nil.
func (c *Content) outputObject() map[string]string {
	return textValues([]byte(c.Output))
}

func (c *Content) variableKeys(string) []string { return slices.Sorted(maps.Keys(c.Variables)) }

func (c *Content) variableValues(key string) []string { return valueOf(c.Variables, key) }

func (c *Content) userIntent(string) []string { return classify(c.Input, userIntents) }

func (c *Content) agentIntent(string) []string { return classify(c.Output, agentIntents) }

// valueOf returns the value under a key, or none.
func valueOf(m map[string]string, key string) []string {
	if v, ok := m[key]; ok {
		return []string{v}
	}
	return nil
}

// textValues returns the members of a JSON object, with their values as text: strings as they
// are, anything else as JSON. It returns nil for anything but an object.
func textValues(object []byte) map[string]string {
	var inner map[string]json.RawMessage
	if json.Unmarshal(object, &inner) != nil {
		return nil
	}

	m := make(map[string]string, len(inner))
	for key, raw := range inner {
		var s string
		if json.Unmarshal(raw, &s) != nil {
			s = string(raw)
		}
		m[key] = s
	}

	return m
}

// The peer classifies texts by their tone. We look for phrases: an intent holds if one of
// its phrases occurs.
var (
	userIntents = map[string][]string{
		"frustrated": {
			"not working", "doesn't work", "does not work", "frustrat", "annoy", "useless", "terrible",
			"waste of time", "still broken", "fed up",
		},
		"satisfied": {
			"thank", "perfect", "awesome", "great job", "love it", "that works", "that worked",
			"excellent", "well done",
		},
		"curious": {
			"how do", "how does", "how can", "why ", "what is", "what are", "wonder", "curious",
			"explain", "tell me more",
		},
	}
	agentIntents = map[string][]string{
		"apologetic": {"sorry", "apolog", "my mistake", "regret"},
		"refusal": {
			"i can't", "i cannot", "i'm unable", "i am unable", "i won't", "not able to help",
			"can't help with", "cannot help with", "must decline",
		},
		"uncertain": {
			"not sure", "uncertain", "i don't know", "i do not know", "might be", "it's possible",
			"it is possible", "hard to say", "unclear",
		},
	}
)

func intentNames(intents map[string][]string) []string { return slices.Sorted(maps.Keys(intents)) }

// classify returns the names of the intents that a text shows.
func classify(text string, intents map[string][]string) (names []string) {
	// Models and people write both forms of the apostrophe.
	text = strings.ReplaceAll(strings.ToLower(text), "’", "'")
	occurs := func(phrase string) bool { return strings.Contains(text, phrase) }

	for _, name := range intentNames(intents) {
		if slices.ContainsFunc(intents[name], occurs) {
			names = append(names, name)
		}
	}
	return names
}
