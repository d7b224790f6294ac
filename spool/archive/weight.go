package archive

import (
	"errors"

	"promptspool/api/wire"
)

// HeldBytesMax bounds the weight of the states that a Store holds for one transaction,
// unless one alone weighs more.
const HeldBytesMax = 16 << 20

// ErrHeavy reports that records weigh too much to be changed in one transaction.
var ErrHeavy = errors.New("the records weigh too much to be changed together")

// Apart calls fn with all items or, if that fails with ErrHeavy, with each half of them.
func Apart[T any](items []T, fn func(items []T) error) error {
	err := fn(items)
	if !errors.Is(err, ErrHeavy) || len(items) < 2 {
		return err
	}

	// Changes of the first half stay even if the second fails.
	half := len(items) / 2
	if err := Apart(items[:half], fn); err != nil {
		return err
	}

	return Apart(items[half:], fn)
}

// The weights of things besides their texts: about as much as in a stored state.
const (
	entryBytes    = 300
	stampedBytes  = 100
	unlistedBytes = 22
)

// sums caches the totals of a state while it takes events. Code that changes a state
// other than by folding must do so before the state takes any.
type sums struct {
	known         bool
	bytes, weight int
	enrichments   int // in the history
}

// sum fills in the cache.
func (s *State) sum() {
	if !s.sums.known {
		s.sums = sums{true, s.Bytes(), s.Weight(), s.enrichments()}
	}
}

// enrichments counts those in the history.
func (s *State) enrichments() (n int) {
	for i := range s.History {
		if isEnrichment(s.History[i].Kind) {
			n++
		}
	}

	return n
}

// Weight returns about how many bytes the state has when it is stored.
func (s *State) Weight() (n int) {
	if s.sums.known {
		return s.sums.weight
	}

	// This must come to the same as adding up what events bring, one by one.
	for i := range s.History {
		n += weighEntry(&s.History[i])
	}
	for slot, score := range s.Scores {
		n += weighScore(slot, score)
	}
	for key, v := range s.Metadata {
		n += weighText(key) + len(v.Value)
	}
	for key, past := range s.Past {
		for _, v := range past {
			n += weighText(key) + len(v.Value)
		}
	}
	for i := range s.Rivals {
		n += weighRival(&s.Rivals[i])
	}
	for _, id := range s.GroupIDs {
		n += len(id)
	}

	n += len(s.Unlisted) / len(UUID{}) * unlistedBytes

	return n + weighPrompt(s.Prompt) + weighRequest(s.Request) + weighSpan(s.Span)
}

// weight returns at most what folding the event adds to Weight.
func (e *Event) weight() int {
	n := entryBytes + len(e.Sidecar) + len(e.GroupID)
	scores := e.Scores
	if e.Score != nil {
		scores = append(scores[:len(scores):len(scores)], *e.Score)
	}
	for _, score := range scores {
		n += weighScore(score.ScoreSlot, Stamped[Judgement]{Value: Judgement{score.ScoreValue, score.Details}})
	}
	for key, value := range e.Metadata {
		n += weighText(key) + len(value)
	}
	if e.Prompt != nil {
		n += stampedBytes + len(e.Prompt.InputVariables)
	}
	if e.Span != nil {
		n += entryBytes + e.Span.bytes()
	}
	if e.Request != nil {
		// As the record's request or as a rival, whichever weighs more.
		n += entryBytes + stampedBytes + textsBytes(e.Request.Metadata) + e.Request.excerptBytes()
	}

	return n
}

func weighEntry(h *Entry) int { return entryBytes + len(h.Sidecar) }

func weighScore(slot wire.ScoreSlot, score Stamped[Judgement]) int {
	n := weighText(slot.Name) + len(slot.Author) + len(score.Value.Text)
	if d := score.Value.Details; d != nil {
		n += len(d.Source) + len(d.AuthorVersion)
	}
	return n
}

func weighText(text string) int { return stampedBytes + len(text) }

func weighRival(r *Stamped[map[string]string]) int { return stampedBytes + textsBytes(r.Value) }

func weighPrompt(p *Stamped[Link]) int {
	if p == nil {
		return 0
	}
	return stampedBytes + len(p.Value.InputVariables)
}

func weighSpan(s *Stamped[Span]) int {
	if s == nil {
		return 0
	}
	return entryBytes + s.Value.bytes()
}

func weighRequest(r *Stamped[Request]) int {
	if r == nil {
		return 0
	}
	return entryBytes + textsBytes(r.Value.Metadata) + r.Value.excerptBytes()
}

func (r *Request) excerptBytes() int { return len(r.InputExcerpt) + len(r.OutputExcerpt) }

func textsBytes(texts map[string]string) (n int) {
	for key, value := range texts {
		n += len(key) + len(value)
	}

	return n
}
