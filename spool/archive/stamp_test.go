package archive_test

import (
	"encoding/json"
	"testing"
	"time"

	"promptspool/api/wire"
	"promptspool/spool/archive"
	"promptspool/spool/database/databasetest"
)

// early returns a score of a clock that is a minute ahead.
func early(t *testing.T, id, clock string, second, value int) wire.Event {
	t.Helper()
	body, err := json.Marshal(map[string]any{"request_id": databasetest.ID(1000), "score": value})
	if err != nil {
		t.Fatal(err)
	}

	return wire.Event{
		ID: id, Kind: wire.KindScore, RequestID: databasetest.ID(1000), Sidecar: "pod", Clock: clock, Body: body,
		AcceptedAt: databasetest.Start.Add(time.Minute + time.Duration(second)*time.Second),
	}
}

// arriving takes events one after the other, a second apart. It returns the score that the
// record shows in the end.
func arriving(t *testing.T, events ...wire.Event) int {
	t.Helper()
	var s archive.State
	for i, e := range events {
		s.Take(databasetest.Decode(t, e, databasetest.Start.Add(time.Duration(i)*time.Second)))
	}

	return int(s.Scores[wire.ScoreSlot{Name: "default"}].Value.Number)
}

func TestAClocksOrderHoldsThoughItsIDsDescend(t *testing.T) {
	ten, twelve := early(t, databasetest.ID(9), "c", 1, 10), early(t, databasetest.ID(8), "c", 2, 12)
	for _, events := range [][]wire.Event{{ten, twelve}, {twelve, ten}} {
		if got := arriving(t, events...); got != 12 {
			t.Errorf("the score is %d", got)
		}
	}
}

func TestTwoClocksUnderOneNameDoNotOrderEachOther(t *testing.T) {
	ahead := early(t, databasetest.ID(9), "ahead", 600, 20)
	right := early(t, databasetest.ID(8), "right", -59, 30)
	if got := arriving(t, ahead, right); got != 30 {
		t.Errorf("the score is %d, want that of the other process, which came later", got)
	}
}

// The time of the first event, five seconds ahead, is accepted. That of the second is not, and
// it arrives before the time at which the first claims to have been accepted.
func TestAClockAtTheBoundOfWhatIsBelievedKeepsItsOrder(t *testing.T) {
	ten, twelve := early(t, databasetest.ID(1), "c", -55, 10), early(t, databasetest.ID(2), "c", -53, 12)
	if got := arriving(t, ten, twelve); got != 12 {
		t.Errorf("the score is %d", got)
	}
}
