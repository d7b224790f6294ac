package databasetest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"promptspool/api/wire"
	"promptspool/spool/archive"
)

// account is the account of scenes that need only one.
const account = "account-a"

func seconds(n int) time.Duration { return time.Duration(n) * time.Second }

// anyOrder has two accounts with records of the same ids. One's name begins with the other's, which
// must not matter for keys that begin with an account.
func anyOrder(t *testing.T, open Open) {
	s, _ := open(t)
	rapid.Check(t, func(t *rapid.T) {
		account := wire.NewID()
		other := account + "b"
		histories := map[string][]archive.Event{}
		for _, account := range []string{account, other} {
			events := Events(t, 3, 12)
			histories[account] = events

			accepted := 0
			for _, batch := range Batches(t, events) {
				for _, r := range apply(t, s, account, batch...) {
					if r.Code == wire.ResultAccepted {
						accepted++
					}
				}
			}
			if accepted != len(events) {
				t.Fatalf("%d events were accepted, of %d", accepted, len(events))
			}
		}

		// The order in which they arrived must not be seen in anything.
		for account, events := range histories {
			if states := sameAsFold(t, s, account, events); len(states) != len(byRequest(events)) {
				t.Fatalf("there are %d records of %d", len(states), len(byRequest(events)))
			}
		}
		for id := range byRequest(histories[other]) {
			_, _, err := s.Record(t.Context(), account, id)
			if byRequest(histories[account])[id] == nil && !wire.IsCode(err, wire.CodeNotFound) {
				t.Fatalf("%s is another account's, and gives %v", id, err)
			}
		}
		sameAsFold(t, s, wire.NewID(), nil)
	})
}

func full(t *testing.T, open Open) {
	s, _ := open(t)

	// The body of a score is counted but not stored, so this stays quick.
	fits := Event(t, 1, wire.KindScore, ID(1000), `{"score":1}`)
	fits.Body = make([]byte, archive.RecordBytesMax-100)
	over := Event(t, 2, wire.KindScore, ID(1000), `{"score":2}`+strings.Repeat(" ", 100))
	small := Event(t, 3, wire.KindScore, ID(1000), `{"score":3}`)

	apply(t, s, account, fits)
	results := apply(t, s, account, over, small, fits)
	if results[0].Code != wire.ResultInvalid || results[0].Reason == "" {
		t.Errorf("the event that does not fit: %+v", results[0])
	}
	if results[1].Code != wire.ResultAccepted || results[2].Code != wire.ResultDuplicate {
		t.Errorf("an event that fits, and one that came before: %+v", results[1:])
	}

	state, _, err := s.Record(context.Background(), account, ID(1000))
	if err != nil || len(state.History) != 2 || state.Scores[wire.ScoreSlot{Name: "default"}].Value.Number != 3 {
		t.Errorf("the record is %+v (%v)", state, err)
	}
}

func large(t *testing.T, open Open) {
	s, _ := open(t)
	batch := make([]archive.Event, wire.BatchEventsMax)

	// First many values just too small for a database to store apart, then as many bytes
	// as a batch may have.
	bodies := []string{
		longBody(strings.Repeat("t", 300), 500),
		longBody("t", wire.BatchBytesMax/wire.BatchEventsMax),
	}
	for round, body := range bodies {
		e := Event(t, round, wire.KindRequest, ID(0), body)
		for i := range batch {
			e.ID, e.RequestID = ID(10_000*round+i), ID(100_000+10_000*round+i)
			batch[i] = e
		}
		apply(t, s, account, batch...)
	}

	one := Event(t, 50_000, wire.KindRequest, ID(300_000), longBody("x", wire.BodyBytesMax))
	apply(t, s, account, one)
	if page := search(t, s, account, wire.Search{PerPage: 1}); page.Total != 2*wire.BatchEventsMax+1 {
		t.Errorf("total %d, want %d", page.Total, 2*wire.BatchEventsMax+1)
	}
	sameViews(t, s, account, []archive.Event{one, batch[0], batch[len(batch)-1]})
}

// steps writes more steps of an agent to one record than it lists.
func steps(t *testing.T, open Open) {
	s, reopen := open(t)
	const batch, batches = 1000, 11
	long := strings.Repeat("long ", 300)

	apply(t, s, account, Event(t, 0, wire.KindRequest, ID(100_000), requestBody("x")))
	apply(t, s, account, Event(t, 1, wire.KindMetadata, ID(100_000), `{"metadata":{"kept":"`+long+`"}}`))
	write := func(b int) (results []wire.Result) {
		var events []archive.Event
		for n := range batch {
			body := fmt.Sprintf(`{"metadata":{"step":"%d of %d"}}`, n, b)
			if n%100 == 0 { // its body is kept until it is no longer listed
				body = fmt.Sprintf(`{"metadata":{"thought":"%s%d of %d"}}`, long, n, b)
			}
			events = append(events, Event(t, 2+b*batch+n, wire.KindMetadata, ID(100_000), body))
		}
		return apply(t, s, account, events...)
	}
	for b := range batches {
		for _, r := range write(b) {
			if r.Code != wire.ResultAccepted {
				t.Fatalf("a step of batch %d: %+v", b, r)
			}
		}
	}
	for _, r := range write(0) {
		if r.Code != wire.ResultDuplicate {
			t.Fatalf("a step that is no longer listed, sent again: %+v", r)
		}
	}

	s = reopen()
	shown := view(t, s, account, ID(100_000))
	if !shown.EventsTruncated || len(shown.Events) != 2+archive.RecordEventsMax ||
		shown.Metadata["kept"] != long || shown.Metadata["step"] != "999 of 10" {
		t.Errorf("of %d events %d are listed, truncated: %v; the metadata is %.200v",
			2+batch*batches, len(shown.Events), shown.EventsTruncated, shown.Metadata)
	}
	state, bodies, err := s.Bodies(context.Background(), account, ID(100_000))
	must(t, err)
	withBody := slices.DeleteFunc(state.History, func(h archive.Entry) bool { return h.Hash == "" })
	if want := 2 + archive.RecordEventsMax/100; len(withBody) != want || len(bodies) != want {
		t.Errorf("%d bodies are kept of %d events, want %d", len(bodies), len(withBody), want)
	}

	// As of the moment at which it had a value of long ago.
	past := wire.Deletion{Key: "step", Value: "17 of 0", Before: Start.Add(seconds(2 + 17))}
	if deleted := remove(t, s, account, past); deleted.Records != 1 {
		t.Errorf("a deletion by a value of long ago: %+v", deleted)
	}
}
