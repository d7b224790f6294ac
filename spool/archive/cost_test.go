package archive_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"promptspool/api/wire"
	"promptspool/spool/archive"
)

// allocates returns how many bytes do allocates. Memory, not time: it is the same however busy
// the machine is.
func allocates(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)

	return after.TotalAlloc - before.TotalAlloc
}

// costsInProportion fails unless what cost does of something four times as large allocates about
// four times as much.
func costsInProportion(t *testing.T, n int, of func(n int) (cost func())) {
	t.Helper()
	if once, fourfold := allocates(of(n)), allocates(of(4*n)); fourfold > 8*once {
		t.Errorf("four times as much allocates %d bytes, want about four times %d", fourfold, once)
	}
}

// A record may have thousands of scores and replaced metadata values, and an export writes the
// events of every record. Finding what one event did must not look at all the others.
func TestTheEventsOfARecordCostInProportion(t *testing.T) {
	for kind, body := range map[wire.Kind]func(i int) string{
		wire.KindScore:    func(i int) string { return fmt.Sprintf(`{"name":"n%d","score":1}`, i) },
		wire.KindMetadata: func(i int) string { return fmt.Sprintf(`{"metadata":{"k%d":"v%d"}}`, i/2, i) },
	} {
		costsInProportion(t, 1000, func(n int) func() {
			var s archive.State
			for i := range n {
				s.Fold(event(t, i, kind, body(i)))
			}
			return func() {
				if events := s.Events(nil); len(events) != n {
					t.Errorf("%d events of kind %s, want %d", len(events), kind, n)
				}
			}
		})
	}
}

// Each event that reaches a record asks whether it is deleted. That must not look at all
// values once for each request.
func TestWhetherARecordIsDeletedCostsInProportion(t *testing.T) {
	costsInProportion(t, 500, func(n int) func() {
		var s archive.State
		for i := range n {
			kind, body := wire.KindMetadata, fmt.Sprintf(`{"metadata":{"k":"v%d"}}`, i)
			if i%2 == 0 {
				kind, body = wire.KindRequest, fmt.Sprintf(`{"metadata":{"k":"v%d"},"function_name":"x.y"}`, i)
			}
			s.Fold(event(t, i, kind, body))
		}
		return func() {
			if s.Deleted(func(string, string) (at time.Time, ok bool) { return at, false }) {
				t.Error("the record is deleted")
			}
		}
	})
}

// A batch may set many keys of one record, one after the other. Whether an event deletes the
// record must cost by its own keys, not by those that were set before.
func TestAnEventCostsByItsOwnKeys(t *testing.T) {
	costs := func(keys int) uint64 {
		var s archive.State
		asked := 0
		for i := range keys {
			e := event(t, i, wire.KindMetadata, fmt.Sprintf(`{"metadata":{"k%d":"v"}}`, i))
			s.Fold(e)
			s.DeletedBy(&e, func(string, string) (at time.Time, ok bool) { asked++; return at, ok })
		}
		if asked > keys {
			t.Errorf("%d events with a key each ask for %d values", keys, asked)
		}

		e := event(t, keys, wire.KindMetadata, `{"metadata":{"k0":"w"}}`)
		s.Fold(e)
		if got := s.Hidden(); len(got) != 1 || got[0].Value != "v" {
			t.Errorf("with %d keys: %v is hidden", keys, got)
		}
		return allocates(func() {
			for range 100 {
				s.DeletedBy(&e, func(string, string) (at time.Time, ok bool) { return at, ok })
			}
		})
	}
	if few, many := costs(10), costs(4000); many > 4*few {
		t.Errorf("with 10 keys it allocates %d bytes, with 4,000 keys %d", few, many)
	}
}
