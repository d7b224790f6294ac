package databasetest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"promptspool/api/wire"
	"promptspool/spool/archive"
)

// writer accepts events with a clock of its own, which like api.Clock never goes back.
type writer struct {
	name, clock string
	offset      time.Duration // of its system's clock from the server's
	direct      bool          // a server: events arrive when it accepts them
	last        time.Time
	accepted    []string // ids, in the order in which they were acknowledged
}

// tick returns the time of the next event.
func (w *writer) tick(now time.Time) time.Time {
	at := now.Add(w.offset)
	if earliest := w.last.Add(time.Microsecond); at.Before(earliest) {
		at = earliest
	}
	w.last = at
	return at
}

// Clocked is what several writers accepted for one record, and how it arrived.
type Clocked struct {
	Arrivals []archive.Event // in the order of arrival; every event at least once
	Events   map[string]archive.Event
	Accepted [][]string // the event ids of each writer, in the order in which they were acknowledged
	End      time.Time  // by the server's clock
}

// DrawClocked draws the writes of three sidecars and a server. Their clocks are up to a
// day off and change meanwhile. The writes are delivered in any order and batches, some
// of them again. Two sidecars have the same name.
func DrawClocked(t *rapid.T) Clocked {
	writers := []*writer{
		{name: "host-a", clock: "a1"},
		{name: "host-a", clock: "a2"},
		{name: "host-b"}, // an old version, which does not send its clock
		{name: "server", clock: "s1", direct: true},
	}

	const day = 24 * time.Hour
	offset := rapid.OneOf(
		rapid.SampledFrom([]time.Duration{0, time.Minute, -time.Minute, 5 * time.Second, day, -day}),
		rapid.Custom(func(t *rapid.T) time.Duration {
			return time.Duration(rapid.Int64Range(-int64(day), int64(day)).Draw(t, "nanoseconds"))
		}),
	)

	c := Clocked{Events: make(map[string]archive.Event)}
	now := Start
	var waiting, arrived []wire.Event

	deliver := func(events ...wire.Event) {
		for _, e := range events {
			c.Events[e.ID] = Decode(t, e, now)
			c.Arrivals = append(c.Arrivals, c.Events[e.ID])
		}
		arrived = append(arrived, events...)
	}
	take := func(most int) {
		waiting = rapid.Permutation(waiting).Draw(t, "order")
		n := rapid.IntRange(1, most).Draw(t, "batch")
		deliver(waiting[:n]...)
		waiting = waiting[n:]
	}

	// The server's time moves only in the steps "wait", so that many events share a
	// moment.
	step := rapid.SampledFrom([]string{"write", "write", "write", "wait", "clock", "deliver", "again"})
	for range rapid.IntRange(2, 20).Draw(t, "steps") {
		w := rapid.SampledFrom(writers).Draw(t, "writer")
		switch step.Draw(t, "step") {
		case "write":
			e := w.write(t, now, len(c.Events)+len(waiting))
			w.accepted = append(w.accepted, e.ID)
			if w.direct {
				deliver(e)
			} else {
				waiting = append(waiting, e)
			}
		case "wait":
			pauses := []time.Duration{1, time.Millisecond, time.Second, time.Minute, 13 * time.Hour}
			now = now.Add(rapid.SampledFrom(pauses).Draw(t, "pause"))
		case "clock":
			w.offset = offset.Draw(t, "offset")
		case "deliver":
			if len(waiting) > 0 {
				take(len(waiting))
			}
		case "again":
			if len(arrived) > 0 {
				deliver(rapid.SliceOfN(rapid.SampledFrom(arrived), 1, 3).Draw(t, "again")...)
			}
		}
	}

	// Everything arrives in the end.
	for len(waiting) > 0 {
		take(len(waiting))
	}

	c.End = now
	for _, w := range writers {
		c.Accepted = append(c.Accepted, w.accepted)
	}

	return c
}

// write accepts an event of the record ID(1000).
func (w *writer) write(t *rapid.T, now time.Time, n int) wire.Event {
	at := w.tick(now)
	e := wire.Event{
		RequestID:  ID(1000),
		AcceptedAt: at,
		Sidecar:    w.name,
		Clock:      w.clock,
		Kind:       rapid.SampledFrom(kinds).Draw(t, "kind"),
	}

	// The id follows the writer's time, and is random from then on, like that of real
	// events.
	const untilRandom = len("00000000-0000-7000-")
	random := rapid.IntRange(0, 9).Draw(t, "random")
	e.ID = wire.NewIDAt(at)[:untilRandom] + fmt.Sprintf("8%03x-%012x", random, n)

	const prompt = `{"request_id":%q,"prompt_name":"p","version":%d,"prompt_input_variables":{}}`
	score := `{"request_id":%q,"name":%q,"author":%q,"author_version":%d,"source":"model","reason":%q,"value":%d}`
	if n%5 == 4 { // it is taken back
		score = strings.Replace(score, `"value":%d`, `"value":null,"n":%d`, 1)
	}
	score = fmt.Sprintf(score, ID(1000), pick(t, names), pick(t, scoreAuthors), n, pick(t, values[:4]), n)
	bodies := map[wire.Kind]string{
		wire.KindRequest:  requestBody(fmt.Sprint(n)),
		wire.KindScore:    score,
		wire.KindMetadata: fmt.Sprintf(`{"request_id":%q,"metadata":{%q:"%d"}}`, ID(1000), pick(t, keys), n),
		wire.KindPrompt:   fmt.Sprintf(prompt, ID(1000), n+1),
		wire.KindGroup:    fmt.Sprintf(`{"request_id":%q,"group_id":"g%d"}`, ID(1000), n),
		wire.KindSpan:     SpanBody(traces[0], 1, fmt.Sprint(n)),
		wire.KindLog:      fmt.Sprintf(`{"log":{"timeUnixNano":"%d"}}`, n),
	}
	e.Body = json.RawMessage(bodies[e.Kind])

	return e
}

// Placed returns the events in the order and at the times that s gives them.
func (c *Clocked) Placed(s *archive.State) []archive.Event {
	events := make([]archive.Event, len(s.History))
	for i, h := range s.History {
		events[i] = c.Events[h.ID]
		events[i].OrderTime, events[i].ArrivedAt = h.At, h.ArrivedAt
	}
	return events
}

// Imported returns the events of s as another server reads them from an export at c.End.
func (c *Clocked) Imported(t rapid.TB, s *archive.State, bodies map[string]json.RawMessage) []archive.Event {
	t.Helper()
	var events []archive.Event
	for _, e := range s.Events(bodies) {
		parsed, err := wire.ParseEvent(e.AppendLine(nil))
		must(t, err)
		events = append(events, Decode(t, parsed, c.End))
	}

	return events
}

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
	for slot, v := range s.Scores {
		winners[fmt.Sprint("score ", slot)] = v.ID
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
			sets = fmt.Sprint("score ", e.Score.ScoreSlot)
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
		must(t, err)
		c.Check(t, &state)
		sameHistory(t, oracle, &state)
		sameViews(t, s, account, rapid.Permutation(c.Placed(&state)).Draw(t, "folded"))

		// An export must bring the same order to another server, whatever the lines'
		// order is.
		other := wire.NewID()
		apply(t, s, other, rapid.Permutation(c.Imported(t, &state, bodies)).Draw(t, "imported")...)
		imported, again, err := s.Bodies(t.Context(), other, ID(1000))
		must(t, err)
		sameHistory(t, &state, &imported)
		state.Restore(bodies)
		imported.Restore(again)
		if diff := cmp.Diff(state.Scores.All(), imported.Scores.All()); diff != "" {
			t.Fatalf("the scores, their authors and reasons (-want +got):\n%s", diff)
		}
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
