package postgres

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"promptspool/api/wire"
	"promptspool/spool/archive"
	"promptspool/spool/archive/archivetest"
	"promptspool/spool/archive/postgres/postgrestest"
)

// A server commits the writes of several accounts together. Those whose worker is away must not
// hold up the others.
func TestWhileAWorkerIsAwayTheAccountsOfOthersAreWritten(t *testing.T) {
	dsn := postgrestest.DSN(t)
	db, err := Open(t.Context(), Config{DSN: dsn, Logger: silent})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	present, absent, setAway := workerOf(t, db, dsn)

	write := func(account string, n int) <-chan error {
		answer := make(chan error, 1)
		events := []archive.Event{
			archivetest.Event(t, n, wire.KindRequest, archivetest.ID(n), `{"function_name":"f"}`),
		}
		go func() {
			_, err := db.Apply(t.Context(), account, events)
			// As a sidecar does: the same again until it is acknowledged.
			for account == absent && wire.IsCode(err, wire.CodeUnavailable) && t.Context().Err() == nil {
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
	if err := db.pool.QueryRow(t.Context(), nil, []any{&records}, `SELECT count(*) FROM record_states`); err != nil ||
		records != 12+len(waiting) {
		t.Errorf("%d records, %v", records, err)
	}
}

// workerOf returns two accounts, and a function that takes the worker of the second away or brings
// it back. Elsewhere than on Citus a trigger fails as Citus does then.
func workerOf(t *testing.T, db *DB, dsn string) (present, absent string, setAway func(bool)) {
	t.Helper()
	if db.spread {
		conn := postgrestest.Connect(t, dsn)
		accounts := accountsByNode(t, conn)
		present, absent = accounts[0], accounts[len(accounts)-1]

		host := ""
		if err := conn.QueryRow(t.Context(), `
			SELECT nodename || ':' || nodeport FROM pg_dist_placement JOIN pg_dist_node USING (groupid)
			WHERE shardid = get_shard_id_for_distribution_column('record_states', $1::text)`,
			absent).Scan(&host); err != nil {
			t.Fatal(err)
		}
		var accept func()
		return present, absent, func(away bool) {
			for _, worker := range postgrestest.Workers(t, dsn) {
				switch {
				case !strings.Contains(worker, "@"+host+"/"):
				case away:
					accept = postgrestest.Refuse(t, worker)
				case accept != nil:
					accept()
				}
			}
		}
	}

	db.spread = true
	fail := func(when string) string {
		return fmt.Sprintf(`
			CREATE OR REPLACE FUNCTION reach() RETURNS trigger LANGUAGE plpgsql AS $$
			BEGIN
				IF %s THEN
					RAISE EXCEPTION 'connection to the remote node failed' USING ERRCODE = '08006';
				END IF;
				RETURN NEW;
			END $$`, when)
	}
	for _, sql := range []string{
		fail("false"),
		`CREATE TRIGGER reach BEFORE INSERT ON account_weeks FOR EACH ROW EXECUTE FUNCTION reach()`,
	} {
		if err := db.pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}

	return "present", "absent", func(away bool) {
		if err := db.pool.Exec(t.Context(), fail(fmt.Sprintf("%v AND NEW.account_id = 'absent'", away))); err != nil {
			t.Fatal(err)
		}
	}
}
