package archive

import "errors"

// HeldBytesMax bounds what the states weigh that a Store holds for one transaction, unless one alone weighs more.
const HeldBytesMax = 16 << 20

// ErrHeavy is a Store's error for records that weigh too much to be changed in one transaction.
var ErrHeavy = errors.New("the records weigh too much to be changed together")

// Apart calls fn with all items or, where it fails with ErrHeavy, with each half of them.
func Apart[T any](items []T, fn func(items []T) error) error {
	err := fn(items)
	if !errors.Is(err, ErrHeavy) || len(items) < 2 {
		return err
	}

	half := len(items) / 2
	if err := Apart(items[:half], fn); err != nil {
		return err
	}
	return Apart(items[half:], fn)
}

// What things weigh beside their texts: about as much as in a stored state.
const (
	entryBytes   = 300
	stampedBytes = 100
)

// Weight is about how many bytes the state has when it is stored.
func (s *State) Weight() int {
	n := entryBytes * len(s.History)
	for i := range s.History {
		n += len(s.History[i].Sidecar)
	}
	for name := range s.Scores {
		n += stampedBytes + len(name)
	}
	for key, v := range s.Metadata {
		n += stampedBytes + len(key) + len(v.Value)
	}
	for key, past := range s.Past {
		for _, v := range past {
			n += stampedBytes + len(key) + len(v.Value)
		}
	}
	for _, r := range s.Rivals {
		n += stampedBytes + textsBytes(r.Value)
	}
	for _, id := range s.GroupIDs {
		n += len(id)
	}
	if s.Prompt != nil {
		n += stampedBytes + len(s.Prompt.Value.InputVariables)
	}
	if s.Request != nil {
		n += entryBytes + textsBytes(s.Request.Value.Metadata)
	}

	return n
}

func textsBytes(texts map[string]string) (n int) {
	for key, value := range texts {
		n += len(key) + len(value)
	}

	return n
}
