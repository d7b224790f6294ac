package otel

import "strings"

// meaning is what an attribute says of a span.
type meaning string

// The meanings. Of most of them the first attribute that is there counts, in the order of
// the dialects and of their tables. Parameters, prompt variables and metadata add up.
const (
	provider      meaning = "provider"
	responseModel meaning = "model that answered"
	requestModel  meaning = "requested model"
	responseID    meaning = "response id"
	finishReason  meaning = "finish reason"
	tier          meaning = "service tier"

	input       meaning = "input"
	output      meaning = "output"
	system      meaning = "system message"
	tools       meaning = "tools"
	parameter   meaning = "parameter"
	parameters  meaning = "parameters, as JSON"
	rawResponse meaning = "the provider's own response, as JSON"
	shownInput  meaning = "input of a span that is not a call"
	shownOutput meaning = "output of a span that is not a call"

	inputTokens     meaning = "input tokens"
	outputTokens    meaning = "output tokens"
	cachedTokens    meaning = "input tokens read from the cache"
	cacheWrites     meaning = "input tokens written to the cache"
	reasoningTokens meaning = "output tokens of reasoning"
	audioInput      meaning = "input tokens of audio"
	audioOutput     meaning = "output tokens of audio"
	usageObject     meaning = "usage, as JSON"
	price           meaning = "price in US dollars"
	firstSeconds    meaning = "time to first token, in seconds"
	firstMillis     meaning = "time to first token, in milliseconds"
	firstAt         meaning = "moment of the first token"

	status       meaning = "status"
	errorType    meaning = "error type"
	errorMessage meaning = "error message"

	promptName      meaning = "prompt name"
	promptVersion   meaning = "prompt version; a label if it is not a number"
	promptLabel     meaning = "prompt label"
	promptVariables meaning = "prompt variables, as JSON"
	promptVariable  meaning = "prompt variable"

	tags        meaning = "tags"
	metadata    meaning = "metadata"
	metadataMap meaning = "metadata, as JSON"
	decides     meaning = "kind of the span, and whether it is a call"
)

// attribute is a line of a dialect's table.
type attribute struct {
	key   string // ends with * for all keys that begin so; N and M stand for indices
	means meaning
	as    string // the name of the parameter or metadata
}

// line is an attribute, with what finds it.
type line struct {
	attribute
	mark keyMark
}

// source is a line about a call's content: an attribute, or a group of them.
type source struct {
	key  string
	read func(s *span, key, role string) conversation // role is that of a message that names none
}

// dialect is how one family of libraries writes spans.
type dialect struct {
	name  string
	table []attribute

	input, output []source // the first that has anything counts
}

// dialects are asked in this order. Those of products that wrap other libraries' spans
// come before those libraries.
var dialects []*dialect

// The tables by what a reader looks for: lines of the same meaning, in the order of their
// dialects, and the keys that a table names in full, which no * stands for.
var (
	byMeaning = map[meaning][]line{}
	exact     = map[string]bool{}
)

// The tables and the functions that they name refer to each other.
func init() {
	dialects = []*dialect{
		&promptLayer, &langfuse, &genAI, &openInference, &openLLMetry, &vercel, &adk, &pydantic,
		&langSmith, &liteLLM, &others,
	}
	for _, d := range dialects {
		for _, a := range d.table {
			byMeaning[a.means] = append(byMeaning[a.means], line{a, mark(a.key)})
			exact[a.key] = true
		}
	}
}

// ofResource reports whether an attribute with this meaning may be on the resource too,
// which then speaks for all its spans.
func (m meaning) ofResource() bool {
	switch m {
	case metadata, metadataMap, tags, promptName, promptVersion, promptLabel:
		return true
	}

	return false
}

// attribute returns the value of an attribute. The span's own wins over its resource's.
func (s *span) attribute(l *line) (v value) {
	if s.own.has(&l.mark) {
		v = s.own.get(l.key)
	}
	if v == nil && s.resource.has(&l.mark) && l.means.ofResource() {
		v = s.resource.get(l.key)
	}
	if v.absent() || string(v) == `""` {
		return nil
	}

	return v
}

// find returns the first attribute with one of the meanings; an earlier meaning wins.
func (s *span) find(meanings ...meaning) value {
	for _, means := range meanings {
		lines := byMeaning[means]
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
func (s *span) each(means meaning, visit func(name string, v value)) {
	lines := byMeaning[means]
	for i := range lines {
		l := &lines[i]
		if prefix, many := strings.CutSuffix(l.key, "*"); many {
			s.eachOf(prefix, means, visit)
		} else if v := s.attribute(l); v != nil {
			visit(l.as, v)
		}
	}
}

// eachOf visits the attributes that begin with a prefix, except those that a table names.
func (s *span) eachOf(prefix string, means meaning, visit func(name string, v value)) {
	s.own.eachOf(prefix, visit)
	if means.ofResource() {
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

// The usual roles of what went in, and of what came out.
const (
	userRole      = "user"
	assistantRole = "assistant"
)

// sources returns those of what went in or came out, by its role.
func (d *dialect) sources(role string) []source {
	if role == userRole {
		return d.input
	}
	return d.output
}

// content returns what went in or came out, from the first source that has anything.
func (s *span) content(role string) conversation {
	for _, d := range dialects {
		for _, from := range d.sources(role) {
			if c := from.read(s, from.key, role); !c.empty() {
				return c
			}
		}
	}

	return conversation{}
}
