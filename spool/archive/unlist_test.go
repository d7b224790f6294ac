package archive_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"promptspool/api/wire"
	"promptspool/spool/archive"
	"promptspool/spool/database/databasetest"
)

// What a record lists depends neither on the order in which events come, nor on how often, nor
// on how the record is stored in between.
func TestTheSameEnrichmentsAreListedWhateverCameFirst(t *testing.T) {
	archive.ListEnrichments(t, 4)
	rapid.Check(t, func(t *rapid.T) {
		events := databasetest.Events(t, 1, 40)
		want := foldAll(distinct(events))
		listsTheLatest(t, want, events)

		var got archive.State
		for _, e := range rapid.Permutation(events).Draw(t, "order") {
			if rapid.Bool().Draw(t, "stored meanwhile") {
				got = *reread(t, &got)
			}
			got.Fold(e)
		}
		if encoded(t, &got) != encoded(t, want) {
			t.Fatalf("folded in another order:\n%s\nwant:\n%s", encoded(t, &got), encoded(t, want))
		}
		for _, e := range events {
			if got.Fold(e) {
				t.Fatalf("event %s changed the record again", e.ID)
			}
		}
		if got.Bytes() != reread(t, &got).Bytes() {
			t.Fatalf("its bodies have %d bytes, want %d", got.Bytes(), reread(t, &got).Bytes())
		}
	})

	t.Run("in parts", TestStatesJoinedInAnyOrderAreTheEventsFoldedIntoOne)
	t.Run("stored in parts", TestWhatIsStoredInPartsIsReadAsIfItWereWhole)
	t.Run("exported", exportsWhatStands)
}

// listsTheLatest fails unless the record lists the four latest enrichments, and of the others
// those alone that it needs.
func listsTheLatest(t *rapid.T, s *archive.State, events []archive.Event) {
	isEnrichment := func(kind wire.Kind) bool {
		return kind == wire.KindScore || kind == wire.KindMetadata || kind == wire.KindPrompt
	}
	var stamps []archive.Stamp
	for _, e := range distinct(events) {
		if isEnrichment(e.Kind) {
			stamps = append(stamps, e.Stamp())
		}
	}
	slices.SortFunc(stamps, func(a, b archive.Stamp) int { return b.Compare(a) })

	shown := s.Shown()
	for i, stamp := range stamps {
		isListed := slices.ContainsFunc(s.History, func(h archive.Entry) bool { return h.ID == stamp.ID })
		if want := i < 4 || slices.Contains(shown, stamp.ID); isListed != want {
			t.Fatalf("enrichment %d from the latest is listed: %v, want %v", i, isListed, want)
		}
	}
	others := slices.DeleteFunc(slices.Clone(s.History), func(h archive.Entry) bool { return isEnrichment(h.Kind) })
	if want := len(distinct(events)) - len(stamps); len(others) != want {
		t.Fatalf("%d other events are listed, want %d", len(others), want)
	}
}

// exportsWhatStands folds the exported events of a record into another one.
func exportsWhatStands(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		events := distinct(databasetest.Events(t, 1, 40))
		all := make(map[string]json.RawMessage)
		for _, e := range events {
			if e.Hash != "" {
				all[e.ID] = e.Body
			}
		}
		s := foldAll(events)
		kept := make(map[string]json.RawMessage)
		for _, h := range s.History {
			if h.Hash != "" {
				kept[h.ID] = all[h.ID]
			}
		}

		again := new(archive.State)
		for _, e := range s.Events(kept) {
			decoded, err := archive.Decode(e, databasetest.Start.Add(time.Hour))
			if err != nil {
				t.Fatal(err)
			}
			again.Fold(decoded)
		}
		for what, of := range map[string]func(*archive.State) any{
			"scores": func(s *archive.State) any {
				scores := map[wire.ScoreSlot]float64{}
				for name, v := range s.Scores {
					scores[name] = v.Value.Number
				}
				return scores
			},
			"metadata": func(s *archive.State) any { return s.Whole() },
			"groups":   func(s *archive.State) any { return s.GroupIDs },
		} {
			if got, want := encoded(t, of(again)), encoded(t, of(s)); got != want {
				t.Fatalf("%s of the copy are %s, want %s", what, got, want)
			}
		}
	})
}

// Text whose value stands is kept in its event's body, however many come after it.
func TestALongValueThatStandsStaysListed(t *testing.T) {
	archive.ListEnrichments(t, 2)
	long := strings.Repeat("x", 2000)
	var s archive.State
	s.Fold(event(t, 0, wire.KindRequest, `{"function_name":"f"}`))
	s.Fold(event(t, 1, wire.KindMetadata, `{"metadata":{"answer":"`+long+`"}}`))
	for n := range 5 {
		s.Fold(event(t, n+2, wire.KindScore, `{"score":1}`))
	}
	if len(s.History) != 4 || s.History[1].Kind != wire.KindMetadata || s.Bytes() < len(long) {
		t.Fatalf("listed are %+v", s.History)
	}

	s.Fold(event(t, 9, wire.KindMetadata, `{"metadata":{"answer":"short"}}`))
	if len(s.History) != 3 || s.Bytes() > len(long) {
		t.Errorf("once it is replaced, listed are %+v", s.History)
	}
}
