package postgres

import (
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"promptspool/api/wire"
	"promptspool/spool/archive"
	"promptspool/spool/database/databasetest"
	"promptspool/spool/database/postgres/postgrestest"
)

// A server commits the writes of several accounts together. Those whose worker is away must not
// hold up the others. Here a trigger fails as Citus does then.
func TestWhileAWorkerIsAwayTheAccountsOfOthersAreWritten(t *testing.T) {
	const present, absent = "present", "absent"
	db := openWith(t, postgrestest.Plain(t), patienceDefault)
	db.spread = true
	// The name appears in the context of the error, where Citus names the worker.
	const reach = `"while executing command on worker:5432"`
	setAway := func(away bool) {
		if err := db.pool.Exec(t.Context(), fmt.Sprintf(`
			CREATE OR REPLACE FUNCTION %s() RETURNS trigger LANGUAGE plpgsql AS $$
			BEGIN
				IF %v AND NEW.account_id = '%s' THEN
					RAISE EXCEPTION 'the worker fails' USING ERRCODE = '08006';
				END IF;
				RETURN NEW;
			END $$`, reach, away, absent)); err != nil {
			t.Fatal(err)
		}
	}
	setAway(false)
	if err := db.pool.Exec(t.Context(),
		`CREATE TRIGGER reach BEFORE INSERT ON account_weeks FOR EACH ROW EXECUTE FUNCTION `+reach+`()`); err != nil {
		t.Fatal(err)
	}

	write := func(account string, n int) <-chan error {
		answer := make(chan error, 1)
		events := []archive.Event{
			databasetest.Event(t, n, wire.KindRequest, databasetest.ID(n), `{"function_name":"f"}`),
		}
		go func() {
			_, err := db.Apply(t.Context(), account, events)
			// As a sidecar does: the same again until it is acknowledged.
			for account == absent && wire.IsCode(err, wire.CodeUnavailable) && t.Context().Err() == nil {
				if who := wire.AsError(err).Affects; who != wire.AffectsAccount {
					t.Errorf("%v affects %q, want the account", err, who)
					break
				}
				_, err = db.Apply(t.Context(), account, events)
			}
			answer <- err
		}()
		return answer
	}
	written := func(answer <-chan error) {
		t.Helper()
		if err := <-answer; err != nil {
			t.Fatal(err)
		}
	}
	written(write(present, 0)) // makes the partition, too

	// These are one group.
	setAway(true)
	var holds []func()
	for range lanes {
		release, _ := db.commits.Hold(nil)
		holds = append(holds, release)
	}
	var waiting []<-chan error
	for n := range 2 * lanes {
		waiting = append(waiting, write(absent, 1+n))
	}
	first := write(present, 1)
	for db.commits.Len() < len(waiting)+1 {
		runtime.Gosched()
	}
	for _, release := range holds {
		release()
	}

	// Each takes part in a group of its own, with more of those that wait.
	written(first)
	for n := range 10 {
		waiting = append(waiting, write(absent, 10+n))
		written(write(present, 10+n))
	}
	for _, answer := range waiting {
		select {
		case err := <-answer:
			t.Fatalf("a write ends while its account's worker is away: %v", err)
		default:
		}
	}

	setAway(false)
	for _, answer := range waiting {
		written(answer)
	}
	if err := db.Check(t.Context()); err != nil {
		t.Error(err)
	}
	records := 0
	if err := db.pool.QueryRow(t.Context(), []any{&records}, `SELECT count(*) FROM record_states`); err != nil ||
		records != 12+len(waiting) {
		t.Errorf("%d records, %v", records, err)
	}
}

// An account that is only slow may be isolated as well.
func TestAccountsThatAreIsolatedWithoutNeedAreWritten(t *testing.T) {
	dsn := Empty(t)
	db := openWith(t, dsn, time.Nanosecond)
	db.spread = true

	var writers sync.WaitGroup
	for n := range 12 {
		writers.Go(func() {
			for i := range 4 {
				event := databasetest.Event(t, i, wire.KindRequest, databasetest.ID(i), `{"function_name":"f"}`)
				if _, err := db.Apply(t.Context(), fmt.Sprint("account-", n), []archive.Event{event}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	writers.Wait()

	if err := db.Check(t.Context()); err != nil {
		t.Error(err)
	}
	// Having been written there, they are tried with the others again.
	db.isolated.accounts.Range(func(account, _ any) bool {
		t.Errorf("%v is still isolated", account)
		return true
	})
}

// openWith opens a database that waits only so long for the worker of one among several accounts.
func openWith(t *testing.T, dsn string, patience time.Duration) *DB {
	t.Helper()
	db, err := Open(t.Context(), Config{DSN: dsn, Logger: silent})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	db.patience = patience

	return db
}
