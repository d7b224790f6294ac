package archive_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"promptspool/api/wire"
	"promptspool/spool/archive"
	"promptspool/spool/database/databasetest"
)

// Deleted must agree with its definition, which looks at each of the requests in turn, with
// every value that each key had.
func TestDeletedFollowsItsDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s archive.State
		most := rapid.IntRange(1, 12).Draw(t, "events")
		for _, n := range rapid.Permutation(numbers(most)).Draw(t, "order") {
			s.Fold(drawEvent(t, n))
		}

		deleted := drawDeletions(t, most)
		if got, want := s.Deleted(deleted), isDeleted(&s, deleted); got != want {
			t.Errorf("Deleted is %v, by its definition %v", got, want)
		}
	})
}

// A record that is looked at with each event that it takes is deleted by the first one with
// which Deleted says so.
func TestEachEventDeletesAsAllDo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s archive.State
		most := rapid.IntRange(1, 12).Draw(t, "events")
		deleted := drawDeletions(t, most)
		for _, n := range rapid.Permutation(numbers(most)).Draw(t, "order") {
			e := drawEvent(t, n)
			s.Fold(e)
			if got, want := s.DeletedBy(&e, deleted), s.Deleted(deleted); got != want {
				t.Fatalf("with event %d DeletedBy is %v, Deleted %v", n, got, want)
			} else if want {
				return
			}
		}
	})
}

// Once anything was deleted by its metadata, that is looked for with each event. One that
// sets a key must not cost more with each key that was set before.
func TestLookingForADeletionCostsByTheEventsOwnKeys(t *testing.T) {
	var s archive.State
	asked := 0
	for i := range 1000 {
		text := fmt.Sprintf(`{"metadata":{"k%d":"v"}}`, i)
		e := databasetest.Event(t, i, wire.KindMetadata, databasetest.ID(1000), text)
		s.Fold(e)
		s.DeletedBy(&e, func(string, string) (at time.Time, ok bool) { asked++; return at, ok })
	}

	if asked > 1000 {
		t.Errorf("1000 events with a key each ask for %d values", asked)
	}
}

// Two values of a key were deleted, the first before the second was set. The value of the
// request came after both, and undoes only the second deletion.
func TestADeletionStandsWhateverCameLater(t *testing.T) {
	var s archive.State
	id := databasetest.ID(1000)
	s.Fold(databasetest.Event(t, 1, wire.KindMetadata, id, `{"metadata":{"k":"first"}}`))
	s.Fold(databasetest.Event(t, 3, wire.KindMetadata, id, `{"metadata":{"k":"second"}}`))
	s.Fold(databasetest.Event(t, 4, wire.KindRequest, id, `{"metadata":{"k":"third"},"function_name":"x.y"}`))

	upTo := map[string]time.Time{
		"first":  databasetest.Start.Add(2 * time.Second),
		"second": databasetest.Start.Add(5 * time.Second),
	}
	for _, values := range [][]string{{"second"}, {"first"}, {"first", "second"}} {
		got := s.Deleted(func(_, value string) (time.Time, bool) { return upTo[value], slices.Contains(values, value) })
		if want := slices.Contains(values, "first"); got != want {
			t.Errorf("with %v deleted, the record is deleted: %v", values, got)
		}
	}
}

// drawEvent draws event n of one record: a request with metadata, or metadata alone.
func drawEvent(t *rapid.T, n int) archive.Event {
	body := map[string]any{"metadata": drawValues(t)}
	kind := wire.KindMetadata
	if rapid.Bool().Draw(t, "request") {
		kind = wire.KindRequest
		body["function_name"] = "x.y"
	}
	text, _ := json.Marshal(body)

	return databasetest.Event(t, n, kind, databasetest.ID(1000), string(text))
}

// drawDeletions draws deletions of values around the moments of so many events.
func drawDeletions(t *rapid.T, events int) func(key, value string) (time.Time, bool) {
	before := map[string]time.Time{}
	for range 3 { // several values of one key may be deleted
		for key, value := range drawValues(t) {
			moment := rapid.IntRange(-1, events+1).Draw(t, "moment")
			before[key+"="+value] = databasetest.Start.Add(time.Duration(moment) * time.Second)
		}
	}

	return func(key, value string) (time.Time, bool) {
		at, ok := before[key+"="+value]
		return at, ok
	}
}

// drawValues draws metadata of few keys and values.
func drawValues(t *rapid.T) map[string]string {
	word := rapid.SampledFrom([]string{"a", "b"})
	return rapid.MapOfN(word, word, 0, 2).Draw(t, "metadata")
}

func numbers(n int) (all []int) {
	for i := range n {
		all = append(all, i)
	}
	return all
}

// isDeleted defines State.Deleted.
func isDeleted(s *archive.State, deleted archive.Selectors) bool {
	if s.Request == nil {
		return isDeletedWith(s, nil, deleted)
	}

	requests := append(slices.Clone(s.Rivals),
		archive.Stamped[map[string]string]{Stamp: s.Request.Stamp, Value: s.Request.Value.Metadata})
	return slices.ContainsFunc(requests, func(r archive.Stamped[map[string]string]) bool {
		return isDeletedWith(s, &r, deleted)
	})
}

func isDeletedWith(s *archive.State, request *archive.Stamped[map[string]string], deleted archive.Selectors) bool {
	values := map[string][]archive.Stamped[string]{}
	for key, now := range s.Metadata {
		values[key] = append(slices.Clone(s.Past[key]), now)
	}
	if request != nil {
		for key, value := range request.Value {
			values[key] = append(values[key], archive.Stamped[string]{Stamp: request.Stamp, Value: value})
		}
	}

	for key, of := range values {
		slices.SortFunc(of, func(a, b archive.Stamped[string]) int { return a.Compare(b.Stamp) })
		for i, v := range of {
			before, ok := deleted(key, v.Value)
			last := i == len(of)-1
			asOf := !v.At.After(before) && (last || of[i+1].At.After(before))
			now := last && request != nil && !request.At.After(before)
			if ok && (asOf || now) {
				return true
			}
		}
	}

	return false
}

// Each event that reaches a record asks whether it is deleted. That must not look at all
// values once for each request.
func TestWhetherARecordIsDeletedCostsInProportion(t *testing.T) {
	// Memory, not time: it is the same however busy the machine is.
	cost := func(n int) uint64 {
		s := archive.State{}
		for i := range n {
			kind, body := wire.KindMetadata, fmt.Sprintf(`{"metadata":{"k":"v%d"}}`, i)
			if i%2 == 0 {
				kind, body = wire.KindRequest, fmt.Sprintf(`{"metadata":{"k":"v%d"},"function_name":"x.y"}`, i)
			}
			s.Fold(databasetest.Event(t, i, kind, databasetest.ID(1_000_000), body))
		}

		before := allocated()
		if s.Deleted(func(string, string) (time.Time, bool) { return time.Time{}, false }) {
			t.Error("the record is deleted")
		}

		return allocated() - before
	}

	if once, fourfold := cost(500), cost(2000); fourfold > 8*once {
		t.Errorf("four times as many events allocate %d bytes, want about four times %d", fourfold, once)
	}
}
