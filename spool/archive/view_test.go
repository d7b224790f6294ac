package archive_test

import (
	"context"
	"fmt"
	"testing"

	"promptspool/api/wire"
	"promptspool/spool/archive"
	"promptspool/spool/database/databasetest"
)

// The row of a record is written with each of its scores, so it must not grow with them. The
// record shows all.
func TestARowShowsTheFirstScores(t *testing.T) {
	id := databasetest.ID(1000)
	events := []archive.Event{databasetest.Event(t, 0, wire.KindRequest, id, `{"function_name":"f"}`)}
	for i := range 400 {
		body := fmt.Sprintf(`{"name":"s%03d","score":1}`, 399-i)
		events = append(events, databasetest.Event(t, 1+i, wire.KindScore, id, body))
	}
	state := foldAll(events)

	row, _ := state.Row()
	if n := len(row.Scores); n != 256 || row.Scores[0].Name != "s000" || row.Scores[255].Name != "s255" {
		t.Errorf("the row has %d scores, from %q to %q", n, row.Scores[0].Name, row.Scores[n-1].Name)
	}
	if n := len(state.View(context.Background(), nil).Scores); n != 400 {
		t.Errorf("the record has %d scores", n)
	}
}
