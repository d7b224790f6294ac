package databasetest

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"pgregory.net/rapid"

	"promptspool/api/wire"
	"promptspool/spool/archive"
)

// deletingInAnyOrder delivers events of a few records in any order, with a deletion by
// metadata among them. It compares the store with what folding the events says.
func deletingInAnyOrder(t *testing.T, open Open) {
	s, _ := open(t)
	rapid.Check(t, func(t *rapid.T) {
		account := wire.NewID()
		events := drawOwned(t)
		d := wire.Deletion{
			Key:    "user_id",
			Value:  "ann",
			Before: Start.Add(time.Duration(rapid.IntRange(-1, len(events)).Draw(t, "before")) * time.Second),
		}
		batches := Batches(t, events)
		when := rapid.IntRange(0, len(batches)).Draw(t, "when")

		// A record may be deleted only if it had the value at some time, and never comes
		// back.
		matched, gone := make(map[string]bool), make(map[string]bool)
		var arrived []archive.Event
		look := func() {
			for id, events := range byRequest(arrived) {
				matched[id] = matched[id] || matches(events, d)

				_, _, err := s.Record(context.Background(), account, id)
				if err != nil && !wire.IsCode(err, wire.CodeNotFound) {
					t.Fatal(err)
				}
				if gone[id] && err == nil {
					t.Fatalf("%s is back", id)
				}
				gone[id] = err != nil
				if gone[id] && !matched[id] {
					t.Fatalf("%s is deleted, and never had the value", id)
				}
			}
		}

		for i := range len(batches) + 1 {
			if i == when {
				remove(t, s, account, d)
				look()
			}
			if i == len(batches) {
				break
			}
			for _, e := range batches[i] {
				// One by one: what a store knows at each moment decides.
				apply(t, s, account, e)
				arrived = append(arrived, e)
				if i >= when {
					look()
				}
			}
		}

		for id, events := range byRequest(events) {
			if asOf(events, d) && !gone[id] {
				t.Fatalf("%s had the value as of the deletion's moment, and is still there", id)
			}
		}

		// Nor does it come back with events that are delivered again.
		apply(t, s, account, events...)
		look()
	})
}

// drawOwned draws requests, spans, traced calls and metadata of two records. Each has an
// owner or none, and is accepted a second after the one before.
func drawOwned(t *rapid.T) []archive.Event {
	events := make([]archive.Event, rapid.IntRange(1, 7).Draw(t, "events"))
	for i := range events {
		id := ID(1000 + rapid.IntRange(0, 1).Draw(t, "record"))
		metadata := ""
		owner := rapid.SampledFrom([]string{"ann", "ann", "bob", ""}).Draw(t, "owner")
		if owner != "" {
			metadata = `"metadata":{"user_id":"` + owner + `"},`
		}

		kind, body := wire.KindRequest, `{`+metadata+requestBody(ID(i))[1:]
		switch {
		case metadata != "" && rapid.Bool().Draw(t, "late"):
			kind, body = wire.KindMetadata, `{`+metadata+`"note":1}`
		case metadata == "" && rapid.Bool().Draw(t, "traced"):
			kind, body = wire.KindSpan, SpanBody(traces[0], i, "step")
		case owner == "ann" && rapid.Bool().Draw(t, "call"):
			kind, body = wire.KindSpan, CallBody(traces[0], i, "gpt-4o", "Hello")
		}
		events[i] = Event(t, i, kind, id, body)
	}

	return events
}

// byRequest returns the events of each record.
func byRequest(events []archive.Event) map[string][]archive.Event {
	by := make(map[string][]archive.Event)
	for _, e := range events {
		by[e.RequestID] = append(by[e.RequestID], e)
	}
	return by
}

// matches reports whether a deletion may delete a record with these events: it had the
// value at the deletion's moment, or has it now and is not newer.
func matches(events []archive.Event, d wire.Deletion) bool {
	if asOf(events, d) {
		return true
	}

	for _, part := range withEachRequest(events) {
		for _, e := range part {
			if e.Request != nil && !e.OrderTime.After(d.Before) && owner(part) == d.Value {
				return true
			}
		}
	}

	return false
}

// asOf reports whether a record had the value as of a deletion's moment.
func asOf(events []archive.Event, d wire.Deletion) bool {
	for _, part := range withEachRequest(events) {
		var until []archive.Event
		for _, e := range part {
			if !e.OrderTime.After(d.Before) {
				until = append(until, e)
			}
		}
		if len(until) > 0 && owner(until) == d.Value {
			return true
		}
	}

	return false
}

// withEachRequest returns the events of a record with each of its requests as the only
// one, and no span that is no call, which could replace it. Which of them had arrived when
// the deletion came is not known.
func withEachRequest(events []archive.Event) [][]archive.Event {
	var others, requests []archive.Event
	for _, e := range events {
		switch {
		case e.Request != nil:
			requests = append(requests, e)
		case e.Kind != wire.KindSpan:
			others = append(others, e)
		}
	}
	if len(requests) == 0 {
		return [][]archive.Event{others}
	}

	var all [][]archive.Event
	for _, r := range requests {
		all = append(all, append([]archive.Event{r}, others...))
	}

	return all
}

// owner returns the user that a record with these events has.
func owner(events []archive.Event) string {
	var s archive.State
	for _, e := range events {
		s.Fold(e)
	}
	return s.View(context.Background(), json.RawMessage(`{}`)).Metadata["user_id"]
}
