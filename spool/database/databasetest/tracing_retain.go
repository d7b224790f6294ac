package databasetest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"promptspool/api/wire"
	"promptspool/spool/archive"
)

// RunSpanRetention checks that spans go with the retention as requests do, by age and by
// bytes. open returns an empty store with this clock.
func RunSpanRetention(t *testing.T, open func(now time.Time) archive.Store) {
	const account = "a"
	const week = 7 * 24 * time.Hour
	now := Start.Add(20 * week)
	s := open(now)
	var events []archive.Event
	for i := range 20 {
		kind, body := wire.KindSpan, SpanBody(traces[0], i, fmt.Sprint(i))
		if i%4 == 3 {
			kind, body = wire.KindRequest, requestBody("x")
		}
		events = append(events, Event(t, i, kind, ID(1000+i), body))
	}
	apply(t, s, account, events...)

	bytes := int64(0)
	for _, e := range events[10:] {
		bytes += int64(len(e.Body))
	}
	if _, err := archive.Retain(t.Context(), s, archive.Retention{Bytes: bytes}, now); err != nil {
		t.Fatal(err)
	}
	if left := left(t, s, account); len(left) == 0 || len(left) > 10 || left[0] < ID(1009) {
		t.Errorf("of the newest ten these are left: %q", left)
	}

	dropped, err := archive.Retain(t.Context(), s, archive.Retention{Age: week}, now)
	if err != nil || dropped == 0 {
		t.Errorf("%d were dropped, %v", dropped, err)
	}
	if left := left(t, s, account); len(left) > 0 {
		t.Errorf("%q are too old and still there", left)
	}
}

// left returns the ids of the spans and requests of an account, in order.
func left(t *testing.T, s archive.Store, account string) []string {
	t.Helper()
	ids := allSpans(t, s, account)
	for _, row := range search(t, s, account, wire.Search{PerPage: 100}).Rows {
		ids = append(ids, row.RequestID)
	}
	slices.Sort(ids)

	return ids
}
