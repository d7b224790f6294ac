package postgres

import (
	"strings"
	"testing"

	"promptspool/api/wire"
	"promptspool/spool/archive"
	"promptspool/spool/database/databasetest"
)

// A later version has changed the tables beside a running server.
func TestAServerBesideNewerTablesReadsAndWritesNothing(t *testing.T) {
	db := servers(t, 1)[0]
	event := databasetest.Event(t, 1, wire.KindRequest, databasetest.ID(1), `{"function_name":"f"}`)
	if _, err := db.Apply(t.Context(), "a", []archive.Event{event}); err != nil {
		t.Fatal(err)
	}
	step := func(number int) {
		t.Helper()
		err := db.pool.Exec(t.Context(), `UPDATE promptspool_schema SET number = number + $1`, number)
		if err != nil {
			t.Fatal(err)
		}
	}

	step(1)
	later := databasetest.Event(t, 2, wire.KindRequest, databasetest.ID(2), `{"function_name":"f"}`)
	_, applied := db.Apply(t.Context(), "a", []archive.Event{later})
	_, made := db.Account(t.Context(), "another")
	for what, err := range map[string]error{
		"events": applied, "an account": made, "a value": db.SetFilled(t.Context(), 1),
		"a deletion": db.Forget(t.Context(), "a", wire.Deletion{Key: "k", Value: "v"}),
	} {
		if !wire.IsCode(err, wire.CodeUnavailable) || !strings.Contains(err.Error(), "Upgrade this server") {
			t.Errorf("%s: %v", what, err)
		}
	}
	counts, err := db.Counts(t.Context(), "a")
	if err != nil || counts.Records != 1 {
		t.Errorf("it reads %+v (%v)", counts, err)
	}

	// The other server went back to a backup from before.
	step(-1)
	if _, err := db.Apply(t.Context(), "a", []archive.Event{later}); err != nil {
		t.Error(err)
	}
}
