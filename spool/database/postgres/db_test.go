package postgres_test

import (
	"context"
	"io"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"promptspool/api/wire"
	"promptspool/spool/archive"
	"promptspool/spool/database/databasetest"
	"promptspool/spool/database/postgres"
	"promptspool/spool/database/postgres/postgrestest"
)

func TestMain(m *testing.M) { os.Exit(postgrestest.Main(m)) }

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// open opens a database for one test.
func open(t testing.TB, dsn string) *postgres.DB {
	t.Helper()
	db, err := postgres.Open(context.Background(), postgres.Config{DSN: dsn, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// checked opens a database and checks that it agrees with itself when the test ends.
func checked(t testing.TB, dsn string) *postgres.DB {
	t.Helper()
	db := open(t, dsn)
	t.Cleanup(func() {
		if err := db.Check(context.Background()); err != nil {
			t.Errorf("Check: %v", err)
		}
	})
	return db
}

func TestArchiveOfManyWriters(t *testing.T) { databasetest.RunWriters(t, openEmpty) }

// openEmpty opens a store for a scene, on a database of its own.
func openEmpty(t *testing.T) (archive.Store, func() archive.Store) {
	dsn := postgres.Reused(t)
	return openSummed(t, dsn), func() archive.Store { return openSummed(t, dsn) }
}

// summed is a database that summarises everything immediately, so that small scenes meet
// summaries.
type summed struct{ *postgres.DB }

func openSummed(t *testing.T, dsn string) summed {
	db := checked(t, dsn)
	db.InSmallSteps()
	return summed{db}
}

func (s summed) Apply(ctx context.Context, account string, events []archive.Event) ([]wire.Result, error) {
	results, err := s.DB.Apply(ctx, account, events)
	// The scenes of this one account have many records, or few.
	if random := account != "account-a"; err == nil && random {
		err = s.SummarizeAccount(ctx, account)
	}
	return results, err
}

func execute(t testing.TB, dsn string, sql string) {
	t.Helper()
	if _, err := postgrestest.Connect(t, dsn).Exec(context.Background(), sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func TestServersThatStartTogetherMakeTheTablesOnce(t *testing.T) {
	dsn := postgrestest.DSN(t)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			db, err := postgres.Open(context.Background(), postgres.Config{DSN: dsn, Logger: quiet})
			if err != nil {
				t.Error(err)
				return
			}
			_ = db.Close()
		})
	}
	wg.Wait()
}

func TestTablesAreMadeWholeOrNotAtAll(t *testing.T) {
	dsn := postgrestest.DSN(t)
	execute(t, dsn, `CREATE TABLE small_values (of_somebody_else int)`) // the last that is made
	if db, err := postgres.Open(context.Background(), postgres.Config{DSN: dsn, Logger: quiet}); err == nil {
		_ = db.Close()
		t.Fatal("a table is there already, and gives no error")
	}

	execute(t, dsn, `DROP TABLE small_values`)
	open(t, dsn)
}

func TestTablesOfANewerVersionAreRefused(t *testing.T) {
	dsn := postgrestest.DSN(t)
	open(t, dsn)
	execute(t, dsn, `UPDATE promptspool_schema SET number = 17`)
	_, err := postgres.Open(context.Background(), postgres.Config{DSN: dsn, Logger: quiet})
	if err == nil || !strings.Contains(err.Error(), "schema 17") || !strings.Contains(err.Error(), "restore a dump") {
		t.Errorf("tables of a newer version: %v", err)
	}
}

// with adds parameters to a connection string.
func with(t testing.TB, dsn string, parameters ...string) string {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	for i := 0; i < len(parameters); i += 2 {
		q.Set(parameters[i], parameters[i+1])
	}
	u.RawQuery = q.Encode()
	return u.String()
}

func TestAStandbyIsSearchedWhileItAnswers(t *testing.T) {
	first := postgrestest.Start(t, postgrestest.Options{Fsync: true})
	second := first.Standby(t)
	hosts := make([]string, 2)
	for i, server := range []*postgrestest.Server{first, second} {
		u, err := url.Parse(server.DSN("postgres"))
		if err != nil {
			t.Fatal(err)
		}
		hosts[i] = u.Query().Get("host")
	}
	dsn := with(t, first.DSN("postgres"),
		"host", strings.Join(hosts, ","),
		"target_session_attrs", "read-write",
		"search", "prefer-standby")

	// What this one writes has been applied at the standby too when the write returns.
	db := open(t, with(t, dsn, "synchronous_commit", "remote_apply"))
	begin := time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)
	apply(t, db, requestAt(t, begin, 1))
	if n := total(t, db); n != 1 {
		t.Fatalf("%d records are found, want the one that the standby has too", n)
	}

	// The standby keeps what it receives, but does not show it.
	execute(t, second.DSN("postgres"), `SELECT pg_wal_replay_pause()`)
	state, standby := "", postgrestest.Connect(t, second.DSN("postgres"))
	for state != "paused" {
		if err := standby.QueryRow(t.Context(), `SELECT pg_get_wal_replay_pause_state()`).Scan(&state); err != nil {
			t.Fatal(err)
		}
	}

	db = open(t, dsn)
	late := requestAt(t, begin, 2)
	apply(t, db, late)
	if n := total(t, db); n != 1 {
		t.Errorf("%d records are found, want 1: the standby was not searched", n)
	}
	if _, _, err := db.Record(context.Background(), account, late.RequestID); err != nil {
		t.Errorf("a record must be read from where it was written: %v", err)
	}

	second.Kill(t)
	if n := total(t, db); n != 2 {
		t.Errorf("without a standby %d records are found, want 2", n)
	}
}

func TestWhatIsSearchedIsSpeltRight(t *testing.T) {
	dsn := with(t, postgrestest.DSN(t), "search", "standby")
	_, err := postgres.Open(context.Background(), postgres.Config{DSN: dsn, Logger: quiet})
	if err == nil || !strings.Contains(err.Error(), "prefer-standby") {
		t.Errorf("an unknown value of search: %v", err)
	}
}
