package postgres

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"promptspool/api/wire"
	"promptspool/spool/archive"
	"promptspool/spool/database/databasetest"
)

// refuse makes the database reject states for which a condition holds, as Citus rejects
// statements that it does not support. Where tables are spread, a COPY does not say why, as with
// Citus.
func refuse(t *testing.T, db *DB, condition string) {
	t.Helper()

	err := db.pool.Change(t.Context(), true, func(tx pgx.Tx) error {
		for _, sql := range []string{
			`SET LOCAL citus.enable_unsafe_triggers = on`, // means nothing elsewhere
			`CREATE OR REPLACE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
			BEGIN
				IF ` + condition + ` THEN
					RAISE EXCEPTION 'not supported' USING ERRCODE = CASE
						WHEN ` + fmt.Sprint(db.spread) + ` AND current_query() ILIKE 'copy%' THEN 'XX000'
						ELSE '0A000' END;
				END IF;
				RETURN NEW;
			END $$`,
			`CREATE OR REPLACE TRIGGER refuse BEFORE INSERT ON record_states FOR EACH ROW EXECUTE FUNCTION refuse()`,
		} {
			if _, err := tx.Exec(t.Context(), sql); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestAnEventThatTheDatabaseRefusesHoldsUpNoOther(t *testing.T) {
	db := servers(t, 1)[0]
	for n, spread := range []bool{db.spread, true} {
		db.spread = spread
		refusedAlone(t, db, fmt.Sprint("account-", n))
	}
}

func refusedAlone(t *testing.T, db *DB, account string) {
	t.Helper()
	const bad = 13
	refuse(t, db, fmt.Sprintf(`NEW.request_id = '%s'`, databasetest.ID(bad)))

	var events []archive.Event
	for n := range 2 * copyLeast {
		events = append(events, databasetest.Event(t, n, wire.KindRequest, databasetest.ID(n), `{"function_name":"f"}`))
	}
	results, err := db.Apply(t.Context(), account, events)
	if err != nil || len(results) != len(events) {
		t.Fatalf("%d results, %v", len(results), err)
	}

	for n, r := range results {
		want := wire.ResultAccepted
		if n == bad {
			want = wire.ResultLater
		}
		if r.Code != want || r.ID != events[n].ID {
			t.Errorf("event %d: %+v, want %s", n, r, want)
		}
	}
}

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

func TestADatabaseThatRefusesEverythingIsUnavailable(t *testing.T) {
	db := servers(t, 1)[0]
	refuse(t, db, `true`)

	var events []archive.Event
	for n := range 200 {
		events = append(events, databasetest.Event(t, n, wire.KindRequest, databasetest.ID(n), `{"function_name":"f"}`))
	}
	if _, err := db.Apply(t.Context(), "a", events); !wire.IsCode(err, wire.CodeUnavailable) {
		t.Errorf("%v, want unavailable", err)
	}
}
