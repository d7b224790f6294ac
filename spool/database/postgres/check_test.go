package postgres

import (
	"fmt"
	"strings"
	"testing"

	"promptspool/api/wire"
	"promptspool/spool/archive"
	"promptspool/spool/database/databasetest"
)

func TestCheckReadsEachRecordOfEachAccount(t *testing.T) {
	db := servers(t, 1)[0]
	accounts := map[string]int{"a": 1, "b": checkStep, "c": checkStep + 1}
	for account, records := range accounts {
		var events []archive.Event
		for n := range records {
			id := databasetest.ID(n)
			events = append(events, databasetest.Event(t, n, wire.KindRequest, id, `{"function_name":"f"}`))
		}
		if _, err := db.Apply(t.Context(), account, events); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Check(t.Context()); err != nil {
		t.Fatal(err)
	}

	// The last of each: its page or part must not be left out.
	for account, records := range accounts {
		last := databasetest.ID(records - 1)
		for _, orphan := range []bool{true, false} {
			err := db.pool.Exec(t.Context(),
				`UPDATE record_states SET orphan = $3 WHERE account_id = $1 AND request_id = $2`,
				account, last, orphan)
			if err != nil {
				t.Fatal(err)
			}
			err = db.Check(t.Context())
			if fault := fmt.Sprint(err); (err != nil) != orphan || orphan && !strings.Contains(fault, last) {
				t.Errorf("account %s: the check says %v", account, err)
			}
		}
	}
}
