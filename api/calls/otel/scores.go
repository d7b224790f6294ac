package otel

import (
	"encoding/hex"
	"encoding/json"
	"math"
	"slices"
	"sort"

	"promptspool/api/otlp"
	"promptspool/api/wire"
)

// evaluationKey begins the keys of metadata that hold what a score cannot.
const evaluationKey = "evaluation."

// evaluationEvent is the name of an event that judges a call.
const evaluationEvent = "gen_ai.evaluation.result"

// scores returns the evaluations of the span. Numbers from 0 to 1 become scores from 0 to
// 100; labels, explanations and other numbers become metadata.
func (s *span) scores(g *metadataSet) []wire.Score {
	var all []wire.Score
	add := func(name string, number value, label, explanation string) {
		if name = clip(name, wire.NameRunesMax); name == "" {
			name = wire.DefaultScoreName
		}
		if score, ok := percent(number); ok {
			all = append(all, wire.IntegerScore(name, score))
		} else if _, is := number.number(); is {
			g.add(evaluationKey+name, number.shown())
		}
		g.add(evaluationKey+name+".label", label)
		g.add(evaluationKey+name+".explanation", explanation)
	}

	for _, e := range s.events {
		if e.name == evaluationEvent {
			add(e.at("gen_ai.evaluation.name").text(), e.at("gen_ai.evaluation.score.value"),
				e.at("gen_ai.evaluation.score.label").text(), e.at("gen_ai.evaluation.explanation").text())
		}
	}
	for _, list := range []struct{ prefix, member string }{
		{"annotations.", "annotation."}, {"evaluations.", "evaluation."},
	} {
		for _, a := range s.own.items(list.prefix) {
			add(a.text(list.member+"name"), a.get(list.member+"score"), a.text(list.member+"label"),
				a.text(list.member+"explanation"))
		}
	}

	// Of one name the last counts, as it does for scores that are sent one by one.
	slices.Reverse(all)
	seen := map[string]bool{}
	all = slices.DeleteFunc(all, func(score wire.Score) bool {
		again := seen[score.Name]
		seen[score.Name] = true
		return again
	})
	sort.Slice(all, func(i, j int) bool { return all[i].Name < all[j].Name })

	return all
}

// Evaluation returns the scores in a stored log record. The metadata has what a score cannot hold.
func Evaluation(stored json.RawMessage) ([]wire.Score, map[string]string) {
	g := metadataSet{all: map[string]string{}}
	s := span{events: []event{newEvent(value(stored).at("log"))}}

	return s.scores(&g), g.all
}

// JudgedResponse returns the response id of the call that a log record judges. It is empty if the
// record names the call's span.
func JudgedResponse(log json.RawMessage, traceID string) string {
	e := newEvent(value(log))
	id := e.get("gen_ai.response.id").text()
	if trace, _ := otlp.ResponseIDs(id); hex.EncodeToString(trace[:]) != traceID {
		return ""
	}

	return id
}

// percent returns a number from 0 to 1 as a score.
func percent(v value) (int, bool) {
	x, ok := v.number()
	if !ok || x < 0 || x > 1 {
		return 0, false
	}

	return int(math.Round(x * 100)), true
}
