package archive_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"promptspool/api/wire"
	"promptspool/spool/archive"
	"promptspool/spool/database/databasetest"
)

func TestFoldingAnExportMakesTheSameRecords(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		events := databasetest.Events(t, 3, 14)
		states, all := databasetest.Fold(events)

		var again []archive.Event
		for _, s := range states {
			bodies := map[string]json.RawMessage{}
			for _, h := range s.History {
				if h.Hash != "" {
					bodies[h.ID] = all[h.ID]
				}
			}
			for _, e := range s.Events(bodies) {
				line := e.AppendLine(nil)
				parsed, err := wire.ParseEvent(line)
				if err != nil {
					t.Fatalf("%s: %v", line, err)
				}
				d := databasetest.Decode(t, parsed, databasetest.Start.Add(100*time.Hour))
				if link := d.Prompt; link != nil && d.Version > 0 {
					link.Version = d.Version
				}
				if d.Request != nil && d.Request.Prompt != nil && d.Version > 0 {
					d.Request.Prompt.Version = d.Version
				}
				again = append(again, d)
			}
		}

		got, _ := databasetest.Fold(slices.Concat(databasetest.Batches(t, again)...))
		for id, want := range states {
			body := json.RawMessage(nil)
			if want.Listed() {
				body = all[want.Request.ID]
			}

			was, is := want.View(context.Background(), body), got[id].View(context.Background(), body)
			// The start of a clock that is ahead counts up to the arrival, which is another here.
			if was.StartTime != nil && was.ListTime.Before(*was.StartTime) {
				is.ListTime = was.ListTime
			}

			// No event has a price: the archive computes it when it records.
			if diff := cmp.Diff(was, is,
				cmpopts.IgnoreFields(wire.RecordEvent{}, "ArrivedAt"),
				cmpopts.IgnoreFields(wire.Record{}, "Price")); diff != "" {
				t.Fatalf("record %s, as it was (-) and from its export (+):\n%s", id, diff)
			}
			for i, h := range want.History {
				if !got[id].History[i].At.Equal(h.At) {
					t.Fatalf("event %s is ordered at %v, but was at %v", h.ID, got[id].History[i].At, h.At)
				}
			}
		}
	})
}
