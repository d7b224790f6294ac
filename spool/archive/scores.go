package archive

import (
	"encoding/json"
	"maps"
	"slices"

	"promptspool/api/wire"
)

// Scores are the scores of a record by slot, with those that were taken back.
type Scores map[wire.ScoreSlot]Stamped[Judgement]

// Judgement is what a slot holds.
type Judgement struct {
	wire.ScoreValue
	Details *wire.ScoreDetails `json:"details,omitempty"`
}

// Of returns the score of a slot that holds it.
func (j Judgement) Of(slot wire.ScoreSlot) wire.Score {
	return wire.Score{ScoreSlot: slot, ScoreValue: j.ScoreValue, Details: j.Details}
}

// All returns the scores by name and author, without those that were taken back.
func (s Scores) All() []wire.Score {
	scores := make([]wire.Score, 0, len(s))
	for slot, score := range s {
		if score.Value.Kind != wire.ScoreNone {
			scores = append(scores, score.Value.Of(slot))
		}
	}
	slices.SortFunc(scores, wire.CompareScores)

	return scores
}

// putScore keeps the score with the highest stamp in its slot.
func (s *State) putScore(score *wire.Score, stamp Stamp) {
	s.Scores = put(s.Scores, score.ScoreSlot, stamp, Judgement{score.ScoreValue, score.Details})
}

// scores returns the scores that the record shows, by name and author.
func (s *State) scores() []wire.Score {
	all := s.allScores().All()
	if s.Same == nil || len(s.Same.Scores) == 0 {
		return all
	}
	for slot, value := range s.Same.Scores {
		all = append(all, wire.Score{ScoreSlot: slot, ScoreValue: value})
	}
	slices.SortFunc(all, wire.CompareScores)

	return all
}

// allScores returns the record's own scores and those that it was given.
func (s *State) allScores() Scores {
	if s.Given == nil {
		return s.Scores
	}
	all := maps.Clone(s.Given.Scores)
	for slot, score := range s.Scores {
		all = put(all, slot, score.Stamp, score.Value)
	}

	return all
}

// rowScoresMax bounds the scores in a record's row, which is written again
// with each score.
const rowScoresMax = 256

// rowScores returns the scores that lists show, without details: the first by name.
func (s *State) rowScores() []wire.Score {
	scores := s.scores()
	scores = scores[:min(len(scores), rowScoresMax)]
	for i := range scores {
		scores[i].Details = nil
	}

	return scores
}

// shortenScores leaves reasons to the body, and reports whether there were any.
func (e *Event) shortenScores() (long bool) {
	shorten := func(score *wire.Score) {
		if score.Reason() != "" {
			details := *score.Details
			details.Reason, details.Reasoned = "", true
			score.Details, long = &details, true
		}
	}
	if e.Score != nil {
		shorten(e.Score)
	}
	for i := range e.Scores {
		shorten(&e.Scores[i])
	}

	return long
}

// restoreScores puts back the reasons that are in these bodies of events.
func (s *State) restoreScores(bodies map[string]json.RawMessage) {
	// By event: one may have brought several.
	read := make(map[string][]wire.Score)
	for slot, score := range s.Scores {
		if score.Value.Details == nil || !score.Value.Details.Reasoned {
			continue
		}
		if read[score.ID] == nil {
			_, read[score.ID] = readLong(bodies[score.ID])
		}
		for i := range read[score.ID] {
			if from := &read[score.ID][i]; from.ScoreSlot == slot {
				details := *score.Value.Details
				details.Reason = from.Reason()
				score.Value.Details = &details
				s.Scores[slot] = score
			}
		}
	}
}
