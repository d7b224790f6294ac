package archive_test

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"promptspool/api/wire"
	"promptspool/spool/archive"
	"promptspool/spool/database/databasetest"
)

// A deletion by metadata looks at each of a record's two requests, also at the one that has no
// metadata: with that one, the value that an event gave counts.
func TestARequestWithoutMetadataCountsForADeletion(t *testing.T) {
	id := databasetest.ID(1000)
	var s archive.State
	s.Fold(databasetest.Event(t, 1, wire.KindMetadata, id, `{"metadata":{"user":"ann"}}`))
	s.Fold(databasetest.Event(t, 2, wire.KindRequest, id, `{"metadata":{"user":"bob"},"function_name":"x.y"}`))
	s.Fold(databasetest.Event(t, 4, wire.KindRequest, id, `{"function_name":"x.y"}`))

	ann := func(key, value string) (time.Time, bool) {
		return databasetest.Start.Add(time.Hour), key == "user" && value == "ann"
	}
	if !s.Deleted(ann) {
		t.Error("the record is not deleted")
	}
}

// Traced calls under the id of a logged one are rivals before and behind it.
func TestALoggedCallThatAnotherReplacesIsHidden(t *testing.T) {
	logged := func(n int, value string) archive.Event {
		return event(t, n, wire.KindRequest, `{"function_name":"f","kwargs":{},"request_response":{},
			"request_start_time":1,"request_end_time":2,"metadata":{"person":"`+value+`"}}`)
	}
	var s archive.State
	s.Fold(event(t, 2, wire.KindSpan, tracedCall("a")))
	s.Fold(event(t, 4, wire.KindSpan, tracedCall("b")))
	s.Fold(logged(3, "ann"))

	first := logged(1, "bob")
	s.Fold(first)
	hidden := s.HiddenBy(&first)
	if !slices.Contains(hidden, wire.MetadataRow{Key: "person", Value: "ann"}) {
		t.Errorf("hidden are %v, without the logged call until now", hidden)
	}
}

// A batch may set many keys of one record, one after the other. Finding what an event hides
// must not cost more with each of them.
func TestWhatAnEventHidesCostsByItsOwnKeys(t *testing.T) {
	costs := func(keys int) float64 {
		id := databasetest.ID(1000)
		var s archive.State
		for i := range keys {
			s.Fold(databasetest.Event(t, i, wire.KindMetadata, id, fmt.Sprintf(`{"metadata":{"k%d":"v"}}`, i)))
		}

		e := databasetest.Event(t, keys, wire.KindMetadata, id, `{"metadata":{"k0":"w"}}`)
		s.Fold(e)
		if got := s.HiddenBy(&e); len(got) != 1 || got[0].Value != "v" {
			t.Errorf("with %d keys: %v is hidden", keys, got)
		}

		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range 100 {
			s.HiddenBy(&e)
		}
		runtime.ReadMemStats(&after)

		return float64(after.TotalAlloc-before.TotalAlloc) / 100
	}

	if few, many := costs(10), costs(4000); many > 4*few {
		t.Errorf("with 10 keys it allocates %v bytes, with 4,000 keys %v", few, many)
	}
}
