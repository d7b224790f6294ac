package databasetest

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"promptspool/api/wire"
	"promptspool/spool/archive"
)

// Check compares a record that took the arrivals with what each writer was told. Its
// events must be in the order of their acknowledgement, and none of its values may be one
// that the same writer replaced later.
func (c *Clocked) Check(t rapid.TB, s *archive.State) {
	t.Helper()
	place := make(map[string]int)
	for i, h := range s.History {
		place[h.ID] = i
	}

	// Events that came twice must be there once.
	if len(place) != len(c.Events) || len(s.History) != len(c.Events) {
		t.Fatalf("the history has %d events, %d of them distinct; want %d",
			len(s.History), len(place), len(c.Events))
	}

	winners := map[string]string{} // event id by the name of the value it set
	for name, v := range s.Scores {
		winners["score "+name] = v.ID
	}
	for key, v := range s.Metadata {
		winners["metadata "+key] = v.ID
	}
	if s.Prompt != nil {
		winners["prompt"] = s.Prompt.ID
	}

	for _, ids := range c.Accepted {
		if !slices.IsSortedFunc(ids, func(a, b string) int { return place[a] - place[b] }) {
			t.Fatalf("a writer's events %v stand in another order in the history: %+v", ids, s.History)
		}

		for value, id := range winners {
			c.checkLast(t, ids, value, id)
		}
		if s.Request != nil {
			c.checkFirst(t, ids, s.Request.ID)
		}
	}
}

// checkLast fails the test if a writer set a value again after the event that won.
func (c *Clocked) checkLast(t rapid.TB, ids []string, value, winner string) {
	t.Helper()
	at := slices.Index(ids, winner)
	if at < 0 {
		return // another writer's
	}

	for _, id := range ids[at+1:] {
		e := c.Events[id]

		// An event sets one value: random metadata has one key here.
		sets := string(e.Kind)
		if e.Score != nil {
			sets = "score " + e.Score.Name
		}
		for key := range e.Metadata {
			sets = "metadata " + key
		}
		if sets == value {
			t.Fatalf("%s is from the event %s, and its writer accepted %s later", value, winner, id)
		}
	}
}

// checkFirst fails the test if a writer has a request before the one that won.
func (c *Clocked) checkFirst(t rapid.TB, ids []string, winner string) {
	t.Helper()
	for _, id := range ids[:max(0, slices.Index(ids, winner))] {
		if c.Events[id].Kind == wire.KindRequest {
			t.Fatalf("the request is from the event %s, and its writer accepted %s earlier", winner, id)
		}
	}
}

// clocks lets writers with wrong clocks race for one record.
func clocks(t *testing.T, open Open) {
	s, _ := open(t)
	rapid.Check(t, func(t *rapid.T) {
		c := DrawClocked(t)
		if len(c.Events) == 0 {
			return
		}

		// Two batches are enough to have more than one commit: each event has its own
		// time of arrival.
		account, oracle := wire.NewID(), new(archive.State)
		cut := rapid.IntRange(0, len(c.Arrivals)).Draw(t, "cut")
		apply(t, s, account, c.Arrivals[:cut]...)
		apply(t, s, account, c.Arrivals[cut:]...)
		for _, e := range c.Arrivals {
			oracle.Take(e)
		}

		state, bodies, err := s.Bodies(t.Context(), account, ID(1000))
		if err != nil {
			t.Fatal(err)
		}
		c.Check(t, &state)
		sameHistory(t, oracle, &state)
		sameViews(t, s, account, rapid.Permutation(c.Placed(&state)).Draw(t, "folded"))

		// An export must bring the same order to another server, whatever the lines'
		// order is.
		other := wire.NewID()
		apply(t, s, other, rapid.Permutation(c.Imported(t, &state, bodies)).Draw(t, "imported")...)
		imported, _, err := s.Bodies(t.Context(), other, ID(1000))
		if err != nil {
			t.Fatal(err)
		}
		sameHistory(t, &state, &imported)
	})
}

// sameHistory compares the order of the events of two records.
func sameHistory(t rapid.TB, want, got *archive.State) {
	t.Helper()

	stamps := func(s *archive.State) (all []archive.Stamp) {
		for _, h := range s.History {
			all = append(all, h.Stamp)
		}
		return all
	}
	if diff := cmp.Diff(stamps(want), stamps(got)); diff != "" {
		t.Fatalf("the order of events (-want +got):\n%s", diff)
	}
}

// overtaken delivers two scores in the wrong order. The clock of their sidecar is a
// minute ahead.
func overtaken(t *testing.T, open Open) {
	s, _ := open(t)

	ahead := func(second int, kind wire.Kind, body string) archive.Event {
		at := Start.Add(time.Minute + seconds(second))
		return Decode(t, wire.Event{
			ID:         wire.NewIDAt(at),
			Kind:       kind,
			RequestID:  ID(1000),
			AcceptedAt: at,
			Sidecar:    "host-a",
			Clock:      "a1",
			Body:       json.RawMessage(strings.Replace(body, "{", `{"request_id":"`+ID(1000)+`",`, 1)),
		}, Start.Add(seconds(second)))
	}
	request := ahead(0, wire.KindRequest, requestBody("x"))
	ten, twelve := ahead(1, wire.KindScore, `{"score":10}`), ahead(2, wire.KindScore, `{"score":12}`)
	ten = Decode(t, ten.Event, Start.Add(seconds(3)))

	apply(t, s, account, request)
	apply(t, s, account, twelve)
	apply(t, s, account, ten)
	if got := view(t, s, account, ID(1000)).Scores; len(got) != 1 || got[0].Score != 12 {
		t.Errorf("a sidecar took the scores 10 and then 12, and the record shows %v", got)
	}
}
