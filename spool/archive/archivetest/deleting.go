package archivetest

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"pgregory.net/rapid"

	"promptspool/api/wire"
	"promptspool/spool/archive"
)

// deletingInAnyOrder lets events of a few records come in any order, with a deletion by metadata among them, and compares the
// store with what folding the events says.
func deletingInAnyOrder(t *testing.T, open Open) {
	s, _ := open(t)
	rapid.Check(t, func(t *rapid.T) {
		account := wire.NewID()
		events := drawOwned(t)
		d := wire.Deletion{
			Key:    "user",
			Value:  "ann",
			Before: Start.Add(time.Duration(rapid.IntRange(-1, len(events)).Draw(t, "before")) * time.Second),
		}
		batches := Batches(t, events)
		when := rapid.IntRange(0, len(batches)).Draw(t, "when")

		matched, gone := make(map[string]bool), make(map[string]bool)
		var arrived []archive.Event
		look := func() {
			for id, of := range byRequest(arrived) {
				matched[id] = matched[id] || matches(of, d)
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
				if _, err := s.Delete(context.Background(), account, d); err != nil {
					t.Fatal(err)
				}
				look()
			}
			if i == len(batches) {
				break
			}
			for _, e := range batches[i] {
				apply(t, s, account, e)
				arrived = append(arrived, e)
				if i >= when {
					look()
				}
			}
		}

		for id, of := range byRequest(events) {
			if asOf(of, d) && !gone[id] {
				t.Fatalf("%s had the value as of the deletion's moment, and is still there", id)
			}
		}
		apply(t, s, account, events...)
		look()
	})
}

// drawOwned draws requests and metadata of two records, each with an owner, accepted one second after the other.
func drawOwned(t *rapid.T) []archive.Event {
	events := make([]archive.Event, rapid.IntRange(1, 7).Draw(t, "events"))
	for i := range events {
		id := ID(1000 + rapid.IntRange(0, 1).Draw(t, "record"))
		metadata := ""
		if owner := rapid.SampledFrom([]string{"ann", "ann", "bob", ""}).Draw(t, "owner"); owner != "" {
			metadata = `"metadata":{"user":"` + owner + `"},`
		}
		kind, body := wire.KindRequest, `{`+metadata+requestBody(ID(i))[1:]
		if metadata != "" && rapid.Bool().Draw(t, "late") {
			kind, body = wire.KindMetadata, `{`+metadata+`"note":1}`
		}
		events[i] = Event(t, i, kind, id, body)
	}

	return events
}

func byRequest(events []archive.Event) map[string][]archive.Event {
	by := make(map[string][]archive.Event)
	for _, e := range events {
		by[e.RequestID] = append(by[e.RequestID], e)
	}

	return by
}

// matches reports whether a deletion is for what has come of a record: now or as of its moment.
func matches(events []archive.Event, d wire.Deletion) bool {
	if asOf(events, d) {
		return true
	}
	for _, one := range withEachRequest(events) {
		for _, e := range one {
			if e.Request != nil && !e.OrderTime.After(d.Before) && owner(one) == d.Value {
				return true
			}
		}
	}

	return false
}

// asOf reports whether a record had the value as of a deletion's moment.
func asOf(events []archive.Event, d wire.Deletion) bool {
	for _, one := range withEachRequest(events) {
		var until []archive.Event
		for _, e := range one {
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

// withEachRequest are the events of a record with each of its requests as the only one.
func withEachRequest(events []archive.Event) [][]archive.Event {
	var others, requests []archive.Event
	for _, e := range events {
		if e.Request == nil {
			others = append(others, e)
		} else {
			requests = append(requests, e)
		}
	}
	all := [][]archive.Event{others}
	if len(requests) > 0 {
		all = nil
	}
	for _, r := range requests {
		all = append(all, append([]archive.Event{r}, others...))
	}

	return all
}

func owner(events []archive.Event) string {
	var s archive.State
	for _, e := range events {
		s.Fold(e)
	}

	return s.View(json.RawMessage(`{}`)).Metadata["user"]
}
