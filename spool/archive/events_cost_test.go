package archive_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"promptspool/api/wire"
	"promptspool/spool/archive"
	"promptspool/spool/database/databasetest"
)

// A record may have thousands of scores and replaced metadata values, and an export writes the
// events of every record. Finding what one event did must not look at all the others.
func TestTheEventsOfARecordCostInProportion(t *testing.T) {
	event := func(s *archive.State, i int, kind wire.Kind, body string) {
		id := wire.NewIDAt(databasetest.Start.Add(time.Duration(i) * time.Millisecond))
		e := wire.Event{ID: id, Kind: kind, RequestID: s.RequestID, AcceptedAt: databasetest.Start, Body: []byte(body)}
		d, err := archive.Decode(e, databasetest.Start)
		if err != nil {
			t.Fatal(err)
		}
		if r := s.Take(d); r.Code != wire.ResultAccepted {
			t.Fatalf("event %d: %+v", i, r)
		}
	}

	for name, add := range map[string]func(s *archive.State, i int){
		"scores": func(s *archive.State, i int) {
			event(s, i, wire.KindScore, fmt.Sprintf(`{"request_id":%q,"name":"n%d","score":1}`, s.RequestID, i))
		},
		"replaced metadata": func(s *archive.State, i int) {
			event(s, i, wire.KindMetadata, fmt.Sprintf(`{"request_id":%q,"metadata":{`+
				`"k%d":"v%d"}}`, s.RequestID, i/2, i))
		},
	} {
		t.Run(name, func(t *testing.T) {
			// Memory, not time: it is the same however busy the machine is.
			cost := func(n int) uint64 {
				s := archive.State{RequestID: wire.NewIDAt(databasetest.Start)}
				for i := range n {
					add(&s, i)
				}

				before := allocated()
				if events := s.Events(nil); len(events) != n {
					t.Errorf("%d events, want %d", len(events), n)
				}

				return allocated() - before
			}

			if once, fourfold := cost(1000), cost(4000); fourfold > 8*once {
				t.Errorf("four times as many events allocate %d bytes, want about four times %d", fourfold, once)
			}
		})
	}
}

// allocated returns how many bytes this process has ever allocated.
func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)

	return m.TotalAlloc
}
