package otel

import (
	"cmp"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strings"

	"promptspool/api/otlp"
	"promptspool/api/wire"
)

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
