package otel

import (
	"cmp"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"promptspool/api/calls/otel/dialect"
	"promptspool/api/otlp"
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
			lines = append(lines, m.at("content").shown())
		}
	}

	return strings.Join(lines, "\n")
}

// evaluationKey begins the keys of metadata that hold what a score cannot.
const evaluationKey = "evaluation."

// judges has which of wire.ScoreSources the libraries' kinds of evaluators are, in lower case.
var judges = map[string]string{
	// annotator_kind of OpenInference (Phoenix), in spec/annotations.md of Arize-ai/openinference.
	"human": "human", "llm": "model", "code": "code",
	// evaluator.type as open-telemetry/semantic-conventions-genai proposes it (#359), and as its
	// reference for DeepEval and Grafana's agento11y write it.
	"llm_judge": "model", "deterministic": "code",
}

// olderParts are names that Pydantic Evals had before, in pydantic_evals/_otel_emit.py.
var olderParts = map[string]string{
	"gen_ai.evaluation.evaluator.source":  "logfire.evaluation.evaluator_source",
	"gen_ai.evaluation.evaluator.version": "logfire.evaluation.evaluator_version",
}

// scores returns the evaluations of the span. Whatever a score cannot hold of them becomes metadata.
func (s *span) scores(g *metadataSet) []wire.Score {
	// Of one slot the last counts, as if they were sent one by one.
	scores := map[wire.ScoreSlot]wire.Score{}
	add := func(prefix string, get func(string) value) {
		if score := evaluation(prefix, get, g); score.Kind != wire.ScoreNone {
			scores[score.ScoreSlot] = score
		}
	}

	for _, e := range s.events {
		if e.name == otlp.Evaluation {
			add("gen_ai.evaluation.", func(part string) value {
				if v := e.at(part); !v.absent() {
					return v
				}
				return e.at(olderParts[part])
			})
		}
	}
	// Both are names of OpenInference.
	for _, member := range []string{"annotation", "evaluation"} {
		for _, a := range s.own.items(member + "s.") {
			add(member+".", a.get)
		}
	}
	// A number for each name, of Braintrust's SDKs (eval.go of braintrustdata/braintrust-sdk-go).
	numbers := objectOf(s.own.get("braintrust.scores").inner())
	for _, name := range sortedNames(numbers) {
		parts := map[string]value{"name": quoted(name), "score": numbers[name]}
		add("", func(part string) value { return parts[part] })
	}

	return slices.SortedFunc(maps.Values(scores), wire.CompareScores)
}

// evaluation reads an evaluation, each part of which get returns by its name. A score of no kind says
// nothing.
func evaluation(prefix string, get func(string) value, g *metadataSet) wire.Score {
	first := func(names ...string) value {
		for _, name := range names {
			if v := get(prefix + name); !v.absent() {
				return v
			}
		}
		return nil
	}
	name := cmp.Or(wire.Clip(first("name").text(), wire.NameRunesMax), wire.DefaultScoreName)
	author := first("evaluator.id", "identifier").shown()
	// Pydantic Evals has an object.
	if author == "" {
		author = first("evaluator.source").inner().at("name").text()
	}
	author = wire.Clip(strings.ReplaceAll(author, "\x00", ""), wire.NameRunesMax)
	score := wire.Score{
		ScoreSlot:  wire.ScoreSlot{Name: name, Author: author},
		ScoreValue: wire.ScoreValue{Kind: wire.ScoreNone},
	}

	number, label := first("score.value", "score"), first("score.label", "label").text()
	x, isNumber := number.number()
	category, isCategory := wire.CategoryScore(label)
	switch text := string(number); {
	case text == "true":
		score.ScoreValue = wire.ScoreValue{Kind: wire.ScoreBoolean, Number: 1}
	case text == "false":
		score.ScoreValue = wire.ScoreValue{Kind: wire.ScoreBoolean}
	case isNumber && math.Abs(x) <= wire.ScoreNumberMax:
		score.ScoreValue = wire.NumberScore(x)
	case isNumber:
		g.add(evaluationKey+name, number.shown())
	case isCategory:
		score.ScoreValue, label = category, ""
	}
	g.add(evaluationKey+name+".label", label)

	d := wire.ScoreDetails{
		Source:        judges[strings.ToLower(first("evaluator.type", "annotator_kind").text())],
		AuthorVersion: wire.Clip(first("evaluator.version").shown(), wire.NameRunesMax),
		Reason:        first("explanation").text(),
	}
	if score.Kind == wire.ScoreNone {
		g.add(evaluationKey+name+".explanation", d.Reason)
	} else if d != (wire.ScoreDetails{}) {
		score.Details = &d
	}

	return score
}

// Evaluation returns the scores in a stored log record. The metadata has what a score cannot hold.
func Evaluation(stored json.RawMessage) ([]wire.Score, map[string]string) {
	g := metadataSet{all: map[string]string{}}
	s := span{events: []event{newEvent(value(stored).at("log"))}}

	return s.scores(&g), g.all
}
