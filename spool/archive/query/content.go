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
	"promptspool/spool/archive/textindex"
)

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
