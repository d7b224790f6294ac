package databasetest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"promptspool/api/wire"
	"promptspool/spool/archive"
)

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
	if err != nil {
		t.Fatal(err)
	}
	withBody := slices.DeleteFunc(state.History, func(h archive.Entry) bool { return h.Hash == "" })
	if want := 2 + archive.RecordEventsMax/100; len(withBody) != want || len(bodies) != want {
		t.Errorf("%d bodies are kept of %d events, want %d", len(bodies), len(withBody), want)
	}

	// As of the moment at which it had a value of long ago.
	past := wire.Deletion{Key: "step", Value: "17 of 0", Before: Start.Add(seconds(2 + 17))}
	if deleted, err := archive.Delete(context.Background(), s, account, past); err != nil || deleted.Records != 1 {
		t.Errorf("a deletion by a value of long ago: %+v, %v", deleted, err)
	}
}
