package archive

import (
	"testing"
	"time"
)

// ListEnrichments makes records list so many enrichments until the test ends.
func ListEnrichments(t *testing.T, most int) {
	usual := enrichmentsMax
	enrichmentsMax = most
	t.Cleanup(func() { enrichmentsMax = usual })
}

// WeightAtMost returns what a state that takes events counts its weight as.
func (s *State) WeightAtMost() int { return s.sums.weight }

// FuzzStoredValue reads damaged values of states. They are refused, or read.
func FuzzStoredValue(f *testing.F) {
	stamp := Stamp{At: time.Unix(-1, 5).UTC(), ID: "0195529c-1c00-7000-8000-000000000001"}
	value, err := encodeState(&State{
		RequestID: stamp.ID,
		Past:      map[string][]Stamped[string]{"k": {{stamp, "a"}, {stamp, "b"}}},
		Unlisted:  make([]byte, 32),
	})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(value)
	f.Add([]byte("{}\x00\x00\x00\x02\x01"))

	f.Fuzz(func(t *testing.T, value []byte) {
		var s State
		if decodeState(value, &s) != nil {
			return
		}
		again, err := encodeState(&s)
		if err == nil {
			err = decodeState(again, new(State))
		}
		if err != nil {
			t.Errorf("what was read cannot be stored and read again: %v", err)
		}
	})
}
