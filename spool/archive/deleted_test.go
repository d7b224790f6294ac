package archive_test

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"promptspool/api/wire"
	"promptspool/spool/archive"
	"promptspool/spool/database/databasetest"
)

// Deleted must agree with its definition, which looks at each of the requests in turn, with
// every value that each key had. A record that is looked at with each event that it takes is
// deleted by the first one with which Deleted says so.
func TestDeletedFollowsItsDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s archive.State
		events := make([]archive.Event, rapid.IntRange(1, 12).Draw(t, "events"))
		for n := range events {
			events[n] = drawEvent(t, n)
		}
		deleted := drawDeletions(t, len(events))
		isGone := false
		for _, e := range rapid.Permutation(events).Draw(t, "order") {
			s.Fold(e)
			got, want := s.Deleted(deleted), isDeleted(&s, deleted)
			if got != want {
				t.Fatalf("Deleted is %v, by its definition %v", got, want)
			}
			if by := s.DeletedBy(&e, deleted); !isGone && by != got {
				t.Fatalf("with event %s DeletedBy is %v, Deleted %v", e.ID, by, got)
			}
			isGone = isGone || got
		}
	})
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
